"""Masks: some coordinates are never seen. `Mask` lists those that are visible, `Hide` those that are not."""

import dataclasses
import functools

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import require
from thrust_rl.envs.core import SensorState
from thrust_rl.envs.observation.relay import Relay, box
from thrust_rl.envs.observation.settings import indices, require_coordinates
from thrust_rl.types import Frame


@dataclasses.dataclass(frozen=True)
class Mask(Relay):
    """Shows only the coordinates `visible` of the last axis, in the given order; frames get shorter.

    Raises:
        ConfigError: a coordinate is negative or given twice; from `space`, when observations lack one.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> Mask((0, 2)).emit(jax.random.key(0), (), jnp.arange(4.0))[1].obs.tolist()
        [0.0, 2.0]
    """

    visible: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the coordinates."""
        object.__setattr__(self, "visible", indices("visible", self.visible))

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """The visible coordinates' bounds."""
        require_coordinates("visible", self.visible, space)
        return _selected(space, self.kept(0))

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """The visible coordinates."""
        return state, frame._replace(obs=frame.obs[..., self.kept(0)])

    def kept(self, size: int) -> NDArray[np.intp]:
        """Which coordinates are shown, however many there are."""
        return _array(self.visible)


@dataclasses.dataclass(frozen=True)
class Hide(Relay):
    """Hides the coordinates `hidden` of the last axis and shows the others in their order; frames get shorter.

    Raises:
        ConfigError: a coordinate is negative or given twice; from `space`, when observations lack one or nothing
            would be left to see.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> Hide((1, 3)).emit(jax.random.key(0), (), jnp.arange(4.0))[1].obs.tolist()
        [0.0, 2.0]
    """

    hidden: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the coordinates."""
        object.__setattr__(self, "hidden", indices("hidden", self.hidden))

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """The other coordinates' bounds."""
        size = require_coordinates("hidden", self.hidden, space)
        require(
            len(self.hidden) < size,
            f"hidden {self.hidden} hides all {size} coordinates: leave at least one to see, or blank every frame with"
            " Flicker(1.0)",
        )
        return _selected(space, self.kept(size))

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """The other coordinates."""
        return state, frame._replace(obs=frame.obs[..., self.kept(frame.obs.shape[-1])])

    def kept(self, size: int) -> NDArray[np.intp]:
        """Which of `size` coordinates are shown."""
        return _others(self.hidden, size)


def _selected(space: gymnasium.spaces.Box, kept: NDArray[np.intp]) -> gymnasium.spaces.Box:
    return box(space.low[..., kept], space.high[..., kept], like=space)


# Indices are shared: nobody writes to them.
@functools.cache
def _array(visible: tuple[int, ...]) -> NDArray[np.intp]:
    return np.array(visible, np.intp)


@functools.cache
def _others(hidden: tuple[int, ...], size: int) -> NDArray[np.intp]:
    return np.array([i for i in range(size) if i not in hidden], np.intp)
