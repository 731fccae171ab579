"""What a training loop on the host steps: environments that are always ready to act in, whoever resets them."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from thrust_rl.envs.batch import Batch, Frames, StepResult


class Hosted(NamedTuple):
    """What one step of every environment produced."""

    result: StepResult  # the transitions, with their true successors
    frames: Frames  # to act on next
    episode_start: NDArray[np.bool_]  # the frame opens an episode
    valid: NDArray[np.bool_] | tuple[()]  # a transition, not a reset that took a step; () where none ever does


class HostedEnvs(Protocol):
    """Environments side by side in which there is always a frame to act on."""

    def begin(self, seed: int) -> Frames:
        """Begin every environment anew; its random numbers derive from the seed and its index."""

    def step(self, actions: NDArray[Any]) -> Hosted:
        """One step of every environment."""

    def restarts(self) -> int:
        """How many environments failed and were replaced."""

    def close(self) -> None:
        """End everything that was started."""


class SteppedInProcess:
    """A `Batch`, with a new episode begun wherever one is over.

    Example:
        >>> import gymnasium
        >>> from thrust_rl.envs.host import HostBatch
        >>> envs = SteppedInProcess(HostBatch([gymnasium.make("CartPole-v1") for _ in range(2)]))
        >>> frames = envs.begin(0)
        >>> envs.step(np.array([0, 1])).episode_start.tolist()
        [False, False]
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def begin(self, seed: int) -> Frames:
        """Begin every environment."""
        return self._batch.begin(seed)

    def step(self, actions: NDArray[Any]) -> Hosted:
        """Step, and reset where an episode is over."""
        result = self._batch.step(actions)
        over = result.over
        frames = self._batch.restart(over) if over.any() else Frames(result.obs, result.info)
        return Hosted(result, frames, over, ())

    def restarts(self) -> int:
        """Of the batch, if it can replace environments."""
        return int(np.sum(getattr(self._batch, "replaced", 0)))

    def close(self) -> None:
        """Close the batch, if it can be closed."""
        close = getattr(self._batch, "close", None)
        if close is not None:
            close()
