"""Gaussian noise on every coordinate of every frame."""

import dataclasses
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from thrust_rl.envs.core import SensorState
from thrust_rl.envs.observation.integers import as_floats, as_integers, bounds_of, has_integers
from thrust_rl.envs.observation.relay import Draw, Relay, Remembering, array_module, box, draw_key
from thrust_rl.envs.observation.settings import per_coordinate, require_length
from thrust_rl.types import Frame, Key


@dataclasses.dataclass(frozen=True)
class GaussianNoise(Relay):
    """Adds N(0, std²) to every number, independently over coordinates and steps; `std` in the observation's units.

    Coordinates of different scales want different noise: a tuple gives one `std` per entry of the last axis.
    Blank frames stay zeros. The final frame of an episode and the first of the next, which share a step, share the
    noise too.

    Integers, such as the bytes of images, stay integers: the sum is rounded to the nearest whole number and clipped to
    the bounds of their space. So noise far below half a unit is none, and near a bound it leads inwards on average.

    Raises:
        ConfigError: a std is negative or not finite; from `space`, when their number does not fit.

    Example:
        >>> import gymnasium, jax, jax.numpy as jnp
        >>> noise, space = GaussianNoise((0.0, 0.1)), gymnasium.spaces.Box(-1, 1, (2,))
        >>> state = noise.init(jax.random.key(0), space)
        >>> noisy = noise.emit(jax.random.key(0), state, jnp.ones(2))[1].obs
        >>> bool(noisy[0] == 1.0), bool(noisy[1] == 1.0)
        (True, False)
    """

    std: float | tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the deviations."""
        object.__setattr__(self, "std", per_coordinate("std", self.std, least=0.0))

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """Without bounds: there is no largest normal number; of integers, the same."""
        require_length("std", self.std, space)
        if has_integers(space):
            return space
        return box(np.full_like(space.low, -np.inf), np.full_like(space.high, np.inf), like=space)

    def init(self, key: Key, space: gymnasium.spaces.Box) -> SensorState:
        """The noise of step 0; for integers beside the bounds of their space."""
        if has_integers(space):
            return Remembering(self._drawn(key, jnp.zeros(space.shape, jnp.float32)), bounds_of(space))
        return self._drawn(key, jnp.zeros(space.shape, space.dtype))

    def advance(self, key: Key, state: SensorState) -> SensorState:
        """The noise of the next step."""
        if isinstance(state, Remembering):
            return state._replace(clock=self._drawn(key, state.clock))
        return self._drawn(key, state)

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """The frame with its noise."""
        if array_module(frame.obs) is np:
            return state, frame if frame.blank else frame._replace(obs=_noisy(frame.obs, state))
        return state, frame._replace(obs=jnp.where(frame.blank, frame.obs, _noisy(frame.obs, state)))

    def _drawn(self, key: Key, like: Float[Array, "..."]) -> Float[Array, "..."]:
        normal = jax.random.normal(draw_key(key, Draw.NOISE), like.shape, like.dtype)
        return _rounded(jnp.asarray(self.std, like.dtype) * normal)


def _noisy(obs: Any, state: SensorState) -> Any:
    if isinstance(state, Remembering):
        return as_integers(as_floats(obs) + state.clock, state.frames, like=obs)
    return (obs if array_module(obs) is np else _rounded(obs)) + state


def _rounded(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The same numbers, rounded to floats here and now.

    Without it the compiler may fuse a product with the sum that follows into one operation that rounds once, and a
    compiled environment would differ in the last bit from a wrapper. Nothing else stops it: it removes barriers.
    """
    largest = np.finfo(x.dtype).max
    return lax.clamp(-largest, x, largest)
