"""Gymnasium vector environments, whichever way they reset: the same transitions from all three modes."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from thrust_rl.config import require
from thrust_rl.envs.batch import Frames, StepResult
from thrust_rl.envs.faults import Bounds, EnvError, Fault, env_error, faulty_rows, taken_part
from thrust_rl.envs.guarded import Guarded
from thrust_rl.envs.hosted import Hosted
from thrust_rl.envs.mask_faults import MISSING, UNEXPECTED, reported_masks
from thrust_rl.envs.spaces import MASK_KEY, ActionMask, ObsSpec, Part

Infos = dict[str, Any]


class SteppedVector:
    """A Gymnasium `VectorEnv` of any autoreset mode as `HostedEnvs`.

    - DISABLED: the environments that ended are reset through `reset(options={"reset_mask": ...})`.
    - SAME_STEP: the true successors are taken from `info["final_obs"]`, an object array or a dense one.
    - NEXT_STEP: a `SyncVectorEnv` or `AsyncVectorEnv` is reset as in DISABLED, before a step of its own would. Of
      others, the step that resets is not a transition; it is marked so, and the frame before it counts nowhere.

    Args:
        vector: the environments.
        spec: what an observation of one of them is made of.
        bounds: of every part of the spec; None where they are not checked.
        mask_in_info: the action mask of the spec comes in `info["action_mask"]`.
        steps: that environments made before, of a run in which these take their places.

    Raises:
        ConfigError: the mode is none of these.
    """

    def __init__(
        self,
        vector: VectorEnv[Any, Any, Any],
        spec: ObsSpec,
        bounds: list[Bounds | None],
        *,
        mask_in_info: bool = False,
        steps: int = 0,
    ) -> None:
        self._vector, self._spec, self._bounds, self._mask_in_info = vector, spec, bounds, mask_in_info
        self._mode, self._guarded = autoreset_mode(vector), Guarded(vector)
        if self._mode == AutoresetMode.NEXT_STEP and _resets_when_told(vector):
            self._mode = AutoresetMode.DISABLED
        self._ended = np.zeros(vector.num_envs, bool)  # by the last step
        self._steps = steps

    @property
    def spends_steps_on_resets(self) -> bool:
        """Whether some of its steps are no transitions."""
        return self._mode == AutoresetMode.NEXT_STEP

    def begin(self, seed: int) -> Frames:
        """Reset every environment with a seed of its own."""
        obs, info = self._guarded.call(self._steps, self._vector.reset, seed=self._seed(seed))
        self._ended[:] = False
        return self._checked(Frames(self._taken(obs, info, ~self._ended), self._info(info)), self._ended)

    def step(self, actions: NDArray[Any]) -> Hosted:
        """Step; what resets, resets."""
        self._steps += 1
        raw, reward, terminated, truncated, info = self._guarded.call(self._steps, self._vector.step, actions)
        terminated, truncated = np.array(terminated, bool), np.array(truncated, bool)
        np.greater(truncated, terminated, out=truncated)  # what ends in both ways, terminates
        over, before = terminated | truncated, self._ended
        acted_on = np.ones_like(over) if self._mode == AutoresetMode.SAME_STEP else ~over
        obs, known = self._taken(raw, info, acted_on), self._info(info)
        reward = self._rewards(reward)
        self._ended = over
        if self.spends_steps_on_resets:
            # Between an end and the reset there is a frame that nobody acts on: as a blank one it enters no moments.
            frames = Frames(self._unmasked(over, obs), {**known, "blank": known["blank"] | over})
            result = StepResult(obs, np.where(before, 0, reward), terminated & ~before, truncated & ~before, known)
            self._checked(frames, over)
            return Hosted(result, frames, before, ~before)
        if self._mode == AutoresetMode.SAME_STEP:
            frames = self._checked(Frames(obs, known), np.zeros_like(over))
            successors = self._checked(self._successors(frames, info, over), over)
        else:
            successors = self._checked(Frames(obs, known), over)
            frames = self._checked(self._reset_where(over, successors), np.zeros_like(over))
        return Hosted(StepResult(successors.obs, reward, terminated, truncated, successors.info), frames, over, ())

    def restarts(self) -> int:
        """None: a vector environment is one object."""
        return 0

    def close(self) -> None:
        """Close the vector environment."""
        self._guarded.close()

    def _reset_where(self, over: NDArray[np.bool_], current: Frames) -> Frames:
        if not over.any():
            return current
        wanted = {"reset_mask": over.copy()}
        obs, info = self._guarded.call(self._steps, self._vector.reset, options=wanted)
        fresh = Frames(self._taken(obs, info, over), self._info(info))
        return Frames(_chosen(over, fresh.obs, current.obs), _merged(over, fresh.info, current.info))

    def _successors(self, frames: Frames, info: Infos, over: NDArray[np.bool_]) -> Frames:
        """The frames, with the final ones where an episode ended."""
        if not over.any():
            return frames
        if "final_obs" not in info:
            raise self._fault("episodes ended, but there is no final_obs in info: a same-step autoreset must give it")
        obs = jax.tree.map(np.copy, frames.obs)
        parts = self._spec.leaves(obs)
        for i in np.flatnonzero(over).tolist():
            final = self._leaves(self._with_mask(_row(info["final_obs"], i), self._nothing_masked()))
            for part, values, value in zip(self._spec.parts, parts, final, strict=True):
                values[i] = self._part(i, part, value)
        blank = frames.info["blank"].copy()
        final_info = info.get("final_info", {})
        blank[over] = np.asarray(final_info.get("blank", np.zeros_like(blank)), bool)[over]
        return Frames(obs, {**frames.info, "blank": blank})

    def _checked(self, frames: Frames, over: NDArray[np.bool_]) -> Frames:
        faults = faulty_rows(self._spec, self._bounds, self._spec.leaves(frames.obs), over)
        for i, fault in faults.items():
            raise env_error(i, self._steps, fault)
        return frames

    def _rewards(self, reward: Any) -> NDArray[np.float32]:
        rewards, count = np.asarray(reward, np.float32), self._vector.num_envs
        if rewards.shape != (count,):
            raise self._fault(f"its rewards have shape {rewards.shape}: every step must give {count} numbers")
        for i in np.flatnonzero(~np.isfinite(rewards)).tolist():
            raise env_error(i, self._steps, f"its reward is {rewards[i]}: it must be finite")
        return rewards

    def _taken(self, obs: Any, info: Infos, acted_on: NDArray[np.bool_]) -> Any:
        """A batch of observations as the arrays of the spec; copied, since Gymnasium may write into its own again."""
        values = self._leaves(self._with_mask(obs, self._masks(info, acted_on)))
        parts = []
        for part, rows in zip(self._spec.parts, values, strict=True):
            if len(rows) != self._vector.num_envs:
                what = "action masks" if isinstance(part, ActionMask) else "observations"
                raise self._fault(f"it gave {len(rows)} {what} for {self._vector.num_envs} environments")
            parts.append(np.array([self._part(i, part, row) for i, row in enumerate(rows)]))
        return self._spec.treedef.unflatten(parts)

    def _leaves(self, obs: Any) -> list[Any]:
        try:
            return self._spec.leaves(obs)
        except ValueError as error:
            raise self._fault(f"its observation has another structure than its space: {error}") from None

    def _part(self, i: int, part: Part, value: Any) -> NDArray[Any]:
        """A part of an observation of environment i."""
        try:
            return taken_part(part, value)
        except Fault as fault:
            raise env_error(i, self._steps, str(fault)) from None

    def _fault(self, fault: str) -> EnvError:
        """Of all environments together."""
        return EnvError(f"the vector environment at step {self._steps}: {fault}")

    def _with_mask(self, obs: Any, mask: Any) -> Any:
        """With the action mask, where it does not come in the observation."""
        return {"obs": obs, MASK_KEY: mask} if self._mask_in_info else obs

    def _masks(self, info: Infos, acted_on: NDArray[np.bool_]) -> list[Any]:
        """The action masks that come in the info; a frame that nobody acts on needs none.

        Raises:
            EnvError: one is missing, or there is one where the first reset had none.
        """
        if self._mask_in_info:
            masks = reported_masks(info, self._vector.num_envs)
            for i, mask in enumerate(masks):
                if mask is None and i < len(acted_on) and acted_on[i]:
                    raise env_error(i, self._steps, MISSING)
            return [self._nothing_masked() if mask is None else mask for mask in masks]
        if self._spec.mask is None and MASK_KEY in info:
            for i, mask in enumerate(reported_masks(info, self._vector.num_envs)):
                if mask is not None:
                    raise env_error(i, self._steps, UNEXPECTED)
        return []

    def _nothing_masked(self) -> NDArray[np.bool_]:
        return np.ones(self._spec.parts[self._spec.mask or 0].shape, bool)

    def _unmasked(self, where: NDArray[np.bool_], obs: Any) -> Any:
        """With every action allowed in some environments; a policy may then look at frames whose mask allows none."""
        if self._spec.mask is None or not where.any():
            return obs
        parts = self._leaves(obs)
        parts[self._spec.mask] = parts[self._spec.mask] | where[:, None]
        return self._spec.treedef.unflatten(parts)

    def _seed(self, seed: int) -> Any:
        """One seed for each environment where the vector environment takes them; else one for all."""
        sequence = np.random.SeedSequence(seed)
        if not isinstance(self._vector.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            return int(sequence.generate_state(1)[0])
        return [int(child.generate_state(1)[0]) for child in sequence.spawn(self._vector.num_envs)]

    def _info(self, info: Infos) -> Infos:
        blank = np.asarray(info.get("blank", np.zeros(self._vector.num_envs)), bool)
        return {"blank": blank.copy()}


def autoreset_mode(vector: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """The mode that the metadata name; of a `SyncVectorEnv` or `AsyncVectorEnv`, what it was built with.

    Those two write it into metadata that all environments of a class share, where the next one built writes over it.

    Raises:
        ConfigError: the metadata name none that there is.
    """
    mode = (vector.metadata or {}).get("autoreset_mode")
    found = next((each for each in AutoresetMode if mode in (each, each.value)), None)
    require(
        found is not None,
        f"the autoreset mode in the metadata of {vector} is {mode!r}: it must be one of"
        f" {', '.join(each.name for each in AutoresetMode)} (gymnasium.vector.AutoresetMode), or nobody knows which"
        " observations end an episode",
    )
    assert found is not None
    inner = vector.unwrapped
    if isinstance(inner, SyncVectorEnv | AsyncVectorEnv) and vector.metadata is inner.metadata:
        return AutoresetMode(inner.autoreset_mode)
    return found


def _resets_when_told(vector: VectorEnv[Any, Any, Any]) -> bool:
    """Whether one in NEXT_STEP takes a `reset_mask` between two steps, and then spends none on the reset.

    Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv` do. Not where observations come through pipes instead of shared
    memory, or there is nothing in that to share: then the process resets once more; nor with a worker of one's own,
    which may know nothing of it. Wrappers may count on a step after each end, or on a `reset` of all, unless they say
    that they know of the mask, as `PartialVectorObservation` does.
    """
    while isinstance(vector, VectorWrapper) and getattr(vector, "knows_reset_mask", False):
        vector = vector.env
    if type(vector) is AsyncVectorEnv:
        shares = vector.shared_memory and gymnasium.spaces.flatdim(vector.single_observation_space) > 0
        return bool(shares) and vector.worker is None
    return type(vector) is SyncVectorEnv


def _row(values: Any, i: int) -> Any:
    """Environment i's observation, from an object array or from a tree of dense arrays."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        return values[i]
    return jax.tree.map(lambda leaf: leaf[i], values)


def _chosen(where: NDArray[np.bool_], new: Any, old: Any) -> Any:
    def pick(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        return np.where(where.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, new, old)


def _merged(where: NDArray[np.bool_], new: Infos, old: Infos) -> Infos:
    return {"blank": np.where(where, new["blank"], old["blank"])}
