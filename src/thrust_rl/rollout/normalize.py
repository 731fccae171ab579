"""Observation normalizing that passes blanked frames through."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from thrust_rl.maths.moments import Moments, merge, standardize


def is_blank(obs: Float[Array, "env *obs"]) -> Bool[Array, " env"]:
    """Frames that are exactly zero everywhere."""
    return jnp.all(obs == 0.0, axis=tuple(range(1, obs.ndim)))


def standardize_visible(moments: Moments, obs: Float[Array, "env *obs"]) -> Float[Array, "env *obs"]:
    """Standardize the visible frames by the moments as they are; zeros stay zeros."""
    standardized = jax.vmap(standardize, in_axes=(None, 0))(moments, obs)
    blank = jnp.reshape(is_blank(obs), (-1,) + (1,) * (obs.ndim - 1))
    return jnp.where(blank, 0.0, standardized)


def observe_and_standardize(
    moments: Moments, obs: Float[Array, "env *obs"]
) -> tuple[Moments, Float[Array, "env *obs"]]:
    """Take arriving frames into the moments, then standardize them; blanks neither count nor change.

    Example:
        >>> import jax.numpy as jnp
        >>> from thrust_rl.maths.moments import initial_moments
        >>> frames = jnp.array([[1.0], [0.0], [3.0]])
        >>> moments, seen = observe_and_standardize(initial_moments((1,)), frames)
        >>> seen.ravel().tolist(), float(moments.count)
        ([-1.0, 0.0, 1.0], 2.0)
    """
    moments = merge(moments, obs, ~is_blank(obs))
    return moments, standardize_visible(moments, obs)
