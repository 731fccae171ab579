"""Any Gymnasium environments as a batch: a Python loop over them."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl.envs.batch import Frames, StepResult


class HostBatch:
    """A `Batch` over separate environments; each is seeded with its own child of the base seed.

    Observations arrive as float32. `info` holds `blank` (from the environments' own infos, else False) and, for every
    other key that some environment reported, an object array with None where it did not.

    Example:
        >>> import gymnasium
        >>> batch = HostBatch([gymnasium.make("CartPole-v1") for _ in range(2)])
        >>> batch.begin(0).obs.shape
        (2, 4)
    """

    def __init__(self, envs: Sequence[gymnasium.Env[Any, Any]]) -> None:
        self._envs = tuple(envs)
        shape = self._envs[0].observation_space.shape or ()
        self._obs = np.zeros((len(self._envs), *shape), np.float32)  # the current frames: what there is to act on
        self._infos: list[dict[str, Any]] = [{} for _ in self._envs]  # about them

    def begin(self, seed: int) -> Frames:
        """Reset every environment with a seed of its own."""
        children = np.random.SeedSequence(seed).spawn(len(self._envs))
        seeds = [int(child.generate_state(1)[0]) for child in children]
        outcomes = [env.reset(seed=own) for env, own in zip(self._envs, seeds, strict=True)]
        return self._begun(range(len(self._envs)), outcomes)

    def restart(self, wanted: NDArray[np.bool_]) -> Frames:
        """Reset the wanted environments, which go on with their own random numbers."""
        indices = np.flatnonzero(wanted).tolist()
        return self._begun(indices, [self._envs[i].reset() for i in indices])

    def step(self, actions: NDArray[Any]) -> StepResult:
        """One transition of every environment."""
        outcomes = [env.step(action) for env, action in zip(self._envs, actions, strict=True)]
        obs, reward, terminated, truncated, infos = zip(*outcomes, strict=True)
        rewards = np.array(reward, np.float32)
        if rewards.shape != (len(self._envs),):
            raise ValueError(f"rewards came as an array of shape {rewards.shape}: every step must give one number")
        if not np.isfinite(rewards).all():
            where = np.flatnonzero(~np.isfinite(rewards)).tolist()
            raise ValueError(f"rewards of environments {where} are {rewards[where].tolist()}: they must be finite")
        self._take(range(len(self._envs)), obs, infos)
        return StepResult(
            obs=self._obs.copy(),
            reward=rewards,
            terminated=np.array(terminated, bool),
            truncated=np.array(truncated, bool),
            info=_gathered(infos),
        )

    def close(self) -> None:
        """Close every environment."""
        for env in self._envs:
            env.close()

    def _begun(self, indices: Sequence[int], outcomes: Sequence[tuple[Any, dict[str, Any]]]) -> Frames:
        self._take(indices, [obs for obs, _ in outcomes], [info for _, info in outcomes])
        return Frames(self._obs.copy(), _gathered(self._infos))

    def _take(self, indices: Sequence[int], observations: Sequence[Any], infos: Sequence[dict[str, Any]]) -> None:
        """Make these the current frames."""
        for i, obs, info in zip(indices, observations, infos, strict=True):
            row = np.asarray(obs)
            if row.shape != self._obs.shape[1:]:
                raise ValueError(
                    f"environment {i} gave an observation of shape {row.shape}: its space says {self._obs.shape[1:]};"
                    " fix the environment or its observation_space"
                )
            if not np.isfinite(row).all():
                raise ValueError(f"environment {i} gave an observation that is not finite: {row}")
            self._obs[i], self._infos[i] = row, info


def _gathered(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Separate infos as arrays over environments."""
    gathered: dict[str, Any] = {"blank": np.array([bool(info.get("blank", False)) for info in infos])}
    for key in sorted({key for info in infos for key in info} - {"blank"}):
        column = np.full(len(infos), None, dtype=object)
        for i, info in enumerate(infos):
            column[i] = info.get(key)
        gathered[key] = column
    return gathered
