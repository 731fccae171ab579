"""Any Gymnasium environments as a batch: a Python loop over them."""

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl.envs.batch import Frames, StepResult
from thrust_rl.envs.faults import Bounds, Fault, env_error, fault_of, faulty_rows, one_number, taken_frame
from thrust_rl.envs.mask_faults import UNEXPECTED
from thrust_rl.envs.spaces import MASK_KEY, Numbers, ObsSpec

OnEnvError = Literal["stop", "restart"]
MAX_RESTARTS = 1000  # of one environment: then it is no accident


class HostBatch:
    """A `Batch` over separate environments; each is seeded with its own child of the base seed.

    `info` holds `blank` (from the environments' own infos, else False) and, for every other key that some environment
    reported, an object array with None where it did not.

    Args:
        envs: the environments.
        spec: what an observation is made of; float32 arrays by default.
        bounds: of every part of the spec, checked at every frame; None checks none.
        first_index: of the first environment, in messages and for its seed.
        remake: builds a new environment in the place of one that failed; None lets a failure through.
        refuse_masks: an action mask in an info is a fault: it would not be obeyed.

    Example:
        >>> import gymnasium
        >>> batch = HostBatch([gymnasium.make("CartPole-v1") for _ in range(2)])
        >>> batch.begin(0).obs.shape
        (2, 4)
    """

    def __init__(
        self,
        envs: Sequence[gymnasium.Env[Any, Any]],
        *,
        spec: ObsSpec | None = None,
        bounds: Sequence[Bounds | None] | None = None,
        first_index: int = 0,
        remake: Callable[[], gymnasium.Env[Any, Any]] | None = None,
        refuse_masks: bool = False,
    ) -> None:
        self._envs = list(envs)
        self._spec = spec or ObsSpec.of(Numbers(self._envs[0].observation_space.shape or ()))
        self._bounds = bounds or [None] * len(self._spec.parts)
        self._first, self._remake, self._refuse_masks = first_index, remake, refuse_masks
        count = len(self._envs)
        self._parts = self._spec.leaves(self._spec.zeros(count))  # the current frames: what there is to act on
        self._before = self._spec.leaves(self._spec.zeros(count))  # the last ones without a fault
        only = self._spec.parts[0] if self._spec.is_array else None
        self._plain = only.shape if isinstance(only, Numbers) else None
        self._infos: list[dict[str, Any]] = [{} for _ in self._envs]  # about the current frames
        self._rewards = np.zeros(count, np.float32)
        self._terminated, self._truncated = np.zeros(count, bool), np.zeros(count, bool)
        self.steps, self._seed = 0, 0
        self._new_seeds: dict[int, int] = {}  # of environments that were replaced and did not begin yet
        self.replaced = np.zeros(count, int)  # how often each environment was replaced
        self._place = np.zeros(1, np.int32)  # which environment is being reset or stepped

    def take_over(self, steps: int, replaced: NDArray[Any], *, place: NDArray[np.int32]) -> None:
        """Go on for environments that were lost: before `begin`.

        Args:
            steps: that they had made.
            replaced: how often each of them was replaced.
            place: one number, written before each environment is called: which one it is.
        """
        self.steps, self.replaced, self._place = steps, np.array(replaced, int), place

    def begin(self, seed: int) -> Frames:
        """Reset every environment with a seed of its own."""
        self._seed, everyone = seed, range(len(self._envs))
        self._reset(everyone, {i: self._child_seed(i) for i in everyone})
        return self._frames()

    def restart(self, wanted: NDArray[np.bool_]) -> Frames:
        """Reset the wanted environments, which go on with their own random numbers."""
        self._reset(np.flatnonzero(wanted).tolist(), {})
        return self._frames()

    def step(self, actions: NDArray[Any]) -> StepResult:
        """One transition of every environment."""
        rewards, terminated, truncated, place = self._rewards, self._terminated, self._truncated, self._place
        faults: dict[int, str] = {}
        self.steps += 1
        for i, (env, action) in enumerate(zip(self._envs, actions, strict=True)):
            place[0] = i
            try:
                obs, reward, terminated[i], truncated[i], self._infos[i] = env.step(action)
                self._take(i, obs)
                rewards[i] = one_number(reward)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # an environment may raise anything
                faults[i] = fault_of(error)
        finite = np.isfinite(rewards)
        if not finite.all():
            faults = {
                **{int(i): f"its reward is {rewards[i]}: it must be finite" for i in np.flatnonzero(~finite)},
                **faults,
            }
        faults = {**faulty_rows(self._spec, self._bounds, self._parts, terminated | truncated), **faults}
        if faults:
            self._replace(faults)
            for i in faults:  # the episode was cut where its last frame was seen
                rewards[i], terminated[i], truncated[i] = 0.0, False, True
        np.greater(truncated, terminated, out=truncated)  # what an environment ends in both ways, it terminates
        for part, before in zip(self._parts, self._before, strict=True):
            np.copyto(before, part)
        return StepResult(self._copy(), rewards.copy(), terminated.copy(), truncated.copy(), _gathered(self._infos))

    def close(self) -> None:
        """Close every environment; one that fails at this has given all it had to give, and is only warned of."""
        for i, env in enumerate(self._envs):
            try:
                env.close()
            except Exception as error:  # noqa: BLE001  # an environment may raise anything
                warnings.warn(f"environment {self._first + i} at its close: {fault_of(error)}", stacklevel=2)

    def _reset(self, wanted: Sequence[int], seeds: Mapping[int, int]) -> None:
        """Reset some environments; those that fail are replaced and reset again."""
        seeds = {**self._new_seeds, **seeds}
        self._new_seeds = {}
        while wanted:
            faults = {}
            for i in wanted:
                self._place[0] = i
                try:
                    obs, self._infos[i] = self._envs[i].reset(seed=seeds.get(i))
                    self._take(i, obs)
                except (Exception, SystemExit) as error:  # noqa: BLE001  # an environment may raise anything
                    faults[i] = fault_of(error)
            wrong = faulty_rows(self._spec, self._bounds, self._parts, np.zeros(len(self._envs), bool))
            faults = {**{i: fault for i, fault in wrong.items() if i in wanted}, **faults}
            self._replace(faults)
            wanted, seeds, self._new_seeds = list(faults), self._new_seeds, {}
        for part, before in zip(self._parts, self._before, strict=True):
            np.copyto(before, part)

    def _take(self, i: int, obs: Any) -> None:
        """Make this the current frame of environment i, which its info is about."""
        if self._refuse_masks and self._infos[i] and MASK_KEY in self._infos[i]:
            raise Fault(UNEXPECTED)
        if self._plain and type(obs) is np.ndarray and obs.shape == self._plain:  # what most environments give
            self._parts[0][i] = obs
            return
        for part, value in zip(self._parts, taken_frame(self._spec, obs), strict=True):
            part[i] = value

    def _replace(self, faults: Mapping[int, str]) -> None:
        """Put new environments in the place of those that failed; they begin at their next reset.

        Raises:
            EnvError: that is not wanted, or did not help.
        """
        for i, fault in faults.items():
            if self._remake is None or self.replaced[i] >= MAX_RESTARTS:
                raise env_error(self._first + i, int(self.steps), fault)
            self.replaced[i] += 1
            with contextlib.suppress(Exception):  # what failed may fail at this too
                self._envs[i].close()
            self._envs[i] = self._remake()
            self._new_seeds[i] = self._child_seed(i)
            for part, before in zip(self._parts, self._before, strict=True):
                part[i] = before[i]
            self._infos[i] = {}

    def _child_seed(self, i: int) -> int:
        """A seed that depends on the base seed, the environment's index and how often it was replaced."""
        restart = int(self.replaced[i])
        key = (self._first + i,) if restart == 0 else (self._first + i, restart)
        return int(np.random.SeedSequence(self._seed, spawn_key=key).generate_state(1)[0])

    def _frames(self) -> Frames:
        return Frames(self._copy(), _gathered(self._infos))

    def _copy(self) -> Any:
        return self._spec.treedef.unflatten([part.copy() for part in self._parts])


def _gathered(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Separate infos as arrays over environments."""
    if not any(infos):  # what most environments say
        return {"blank": np.zeros(len(infos), bool)}
    gathered: dict[str, Any] = {"blank": np.array([bool(info.get("blank", False)) for info in infos])}
    for key in sorted({key for info in infos for key in info} - {"blank"}):
        column = np.full(len(infos), None, dtype=object)
        for i, info in enumerate(infos):
            column[i] = info.get(key)
        gathered[key] = column
    return gathered
