"""Integers, such as the bytes of images: computed with as floats, then whole again and within their bounds."""

from typing import Any, NamedTuple

import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from thrust_rl.envs.observation.relay import array_module

EXACT = 2**24  # below it every integer is a float32


class Bounds(NamedTuple):
    """Of a space, as float32; one number for all coordinates where they are alike."""

    low: Float[Array, "..."]
    high: Float[Array, "..."]


def has_integers(space: gymnasium.spaces.Box) -> bool:
    """Whether what is computed has to be made whole again."""
    return not np.issubdtype(space.dtype, np.floating)


def bounds_of(space: gymnasium.spaces.Box) -> Bounds:
    """Bounds that a float32 within them can be cast back from: no wider than the space.

    Example:
        >>> bounds = bounds_of(gymnasium.spaces.Box(0, 255, (9, 9, 3), "uint8"))
        >>> float(bounds.low), float(bounds.high)
        (0.0, 255.0)
    """
    return Bounds(_inside(space.low, -np.inf), _inside(space.high, np.inf))


def as_floats(obs: Any) -> Any:
    """As float32: exact below 2^24, which is as policies read them."""
    return obs.astype(np.float32)


def as_integers(numbers: Any, bounds: Bounds, *, like: Any) -> Any:
    """The nearest whole numbers, halves to even, clipped to the bounds; of the dtype of `like`."""
    xp = array_module(numbers)
    return xp.clip(xp.round(numbers), bounds.low, bounds.high).astype(like.dtype)


def _inside(bound: Any, outwards: float) -> Float[Array, "..."]:
    floats = np.asarray(bound, np.float32)  # large ones may have been rounded out of the space: one step back
    floats = np.where(np.abs(floats) < EXACT, floats, np.nextafter(floats, np.float32(-outwards)))
    return jnp.asarray(floats.flat[0] if len(np.unique(floats)) == 1 else floats)
