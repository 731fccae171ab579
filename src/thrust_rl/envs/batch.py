"""Several streams of one functional environment as NumPy arrays in and out, one compiled call per step."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.streams import Stream, begin_all, restart_some, step_all, step_on_all
from thrust_rl.types import Frame, Transition


class Frames(NamedTuple):
    """What there is to act on."""

    obs: Any  # an array `[env, ...]`, or a tree of them
    info: dict[str, Any]  # arrays over environments; `blank` says which frames the sensor blanked


class StepResult(NamedTuple):
    """What one transition of every environment produced: a `Transition` as NumPy arrays over environments."""

    obs: Any  # the true successors o_{t+1}, before any reset: an array `[env, ...]`, or a tree of them
    reward: Float[np.ndarray, " env"]  # raw
    terminated: Bool[np.ndarray, " env"]  # absorbing state: the successor is worth 0
    truncated: Bool[np.ndarray, " env"]  # cut by a limit: the successor's value is bootstrapped
    info: dict[str, Any]  # arrays over environments; `blank` says which frames the sensor blanked

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which episodes ended, in either way."""
        return self.terminated | self.truncated


class Batch(Protocol):
    """What steps environments side by side. It never resets by itself and checks nothing."""

    def begin(self, seed: int) -> Frames:
        """Begin every environment anew; its random numbers derive from the seed and its index."""

    def restart(self, wanted: NDArray[np.bool_]) -> Frames:
        """A new episode where wanted: its first frames there, the current ones elsewhere."""

    def step(self, actions: NDArray[Any]) -> StepResult:
        """One transition of every environment."""


class CompiledBatch:
    """A `Batch` over a `FunctionalEnv`; environment i lives on stream i of the seed.

    Example:
        >>> import numpy as np
        >>> from thrust_rl.envs.registry import make
        >>> batch = CompiledBatch(make("CartPole-v1"), 3)
        >>> batch.begin(0).obs.shape, batch.step(np.array([0, 1, 0])).reward.tolist()
        ((3, 4), [1.0, 1.0, 1.0])
    """

    def __init__(self, functional: FunctionalEnv, num_envs: int) -> None:
        self.functional = functional
        self.num_envs = num_envs
        self.streams: Stream | None = None  # leaves `[env, ...]`; None before `begin`

    def begin(self, seed: int) -> Frames:
        """Begin the streams of a seed."""
        self.streams = begin_all(self.functional, np.uint32(seed), self.num_envs)
        return _frames(self.streams.frame)

    def reset(self, seed: int | None, *, first_seed: Callable[[], int]) -> Frames:
        """Begin the streams of a seed; without one, go on with those that run, or begin those of `first_seed()`."""
        if seed is None and self.streams is not None:
            return self.restart(np.ones(self.num_envs, bool))
        return self.begin(first_seed() if seed is None else seed)

    def restart(self, wanted: NDArray[np.bool_]) -> Frames:
        """A new episode where wanted, on the same streams: the frames to act on next, of every environment."""
        assert self.streams is not None, "the shells see to it that begin() comes first"
        if wanted.any():
            self.streams = restart_some(self.functional, self.streams, wanted)
        return _frames(self.streams.frame)

    def step(self, actions: NDArray[Any]) -> StepResult:
        """One transition; an episode that ends stays ended."""
        self.streams, result = step_all(self.functional, self.streams, actions)
        return _step_result(result)

    def step_on(self, actions: NDArray[Any]) -> tuple[StepResult, Frames]:
        """One transition, and a new episode where one ended: the transition, and the frames to act on next."""
        self.streams, result = step_on_all(self.functional, self.streams, actions)
        return _step_result(result), _frames(self.streams.frame)


def _frames(frame: Frame) -> Frames:
    return Frames(jax.tree.map(_on_host, frame.obs), {"blank": np.array(frame.blank)})


def _step_result(result: Transition) -> StepResult:
    return StepResult(
        obs=jax.tree.map(_on_host, result.obs),
        reward=_on_host(result.reward),
        terminated=np.array(result.terminated),
        truncated=np.array(result.truncated),
        info={"blank": np.array(result.blank)},
    )


def _on_host(array: jax.Array) -> NDArray[Any]:
    """A copy, because what JAX gives out is read-only; numbers as float32, choices and bytes as they are."""
    return np.array(array, dtype=np.float32 if jnp.issubdtype(array.dtype, jnp.floating) else array.dtype)
