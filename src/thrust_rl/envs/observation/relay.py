"""What the library's observation models have in common: they relay frames, as NumPy or as JAX arrays."""

import abc
from enum import IntEnum
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from thrust_rl.envs.core import SensorState
from thrust_rl.types import Frame, Key, Obs


class Relay(abc.ABC):
    """An `ObservationModel` that draws its random numbers by the clock alone; `relay` only applies them.

    So a block of steps can be drawn ahead in one compiled call, and every policy meets the same noise, delays and
    drops, not only the same blanks. `relay` is written once for NumPy and JAX arrays and draws nothing: compiled
    environments and Gymnasium wrappers run the same lines.

    A blank frame is all zeros and stays so, whatever models follow: nobody adds noise to a reading that never came.

    A subclass overrides what it needs; these defaults draw nothing, remember nothing and leave the space alone.
    """

    whole_frames: ClassVar[bool] = False
    """It shows frames that came, or zeros, and draws the same for frames of every space."""

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """The space of emitted frames, given the space of observations."""
        return space

    def init(self, key: Key, space: gymnasium.spaces.Box) -> SensorState:
        """The sensor at step 0 of a stream, given the space of observations."""
        return ()

    def advance(self, key: Key, state: SensorState) -> SensorState:
        """One tick of the clock; it leaves what is remembered of frames alone."""
        return state

    def begin_episode(self, state: SensorState) -> SensorState:
        """Forget the frames of the episode before; for NumPy and JAX arrays alike."""
        return state

    @abc.abstractmethod
    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """What arrives of a frame; for NumPy and JAX arrays alike."""

    def emit(self, key: Key, state: SensorState, obs: Obs) -> tuple[SensorState, Frame]:
        """What the agent receives of an observation; the key is not used."""
        return self.relay(state, Frame(obs, jnp.zeros((), bool)))


class Remembering(NamedTuple):
    """The state of a model that remembers frames."""

    clock: PyTree  # what was drawn for this step: `advance` alone writes it
    frames: PyTree  # of the running episode: `begin_episode` and `relay` alone write it


class Draw(IntEnum):
    """Who draws, so that two kinds of models in one stack do not share numbers. Append, never renumber.

    `Flicker` draws from the sensor's key itself, as it did before there were others.
    """

    NOISE = 1
    DELAY = 2
    DROP = 3
    AGAIN = 4  # a second model of the same kind, and so on


def draw_key(key: Key, draw: Draw) -> Key:
    """The key of one kind of draws at one step."""
    return jax.random.fold_in(key, draw.value)


def array_module(array: Any) -> ModuleType:
    """`numpy` for NumPy arrays and numbers, else `jax.numpy`."""
    return np if isinstance(array, np.ndarray | np.generic) else jnp


def box(low: Any, high: Any, *, like: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
    """A space with these bounds and the dtype of another."""
    dtype: Any = like.dtype
    return gymnasium.spaces.Box(low, high, np.shape(low), dtype=dtype)  # bounds that are scalars do not mean shape ()


def with_zeros(space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
    """The space, widened to hold a frame of zeros."""
    return box(np.minimum(space.low, 0), np.maximum(space.high, 0), like=space)
