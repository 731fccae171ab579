"""Running mean and variance, merged batch by batch."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

MIN_STD = 1e-4
CLIP = 10.0


class Moments(NamedTuple):
    """Mean and population variance per coordinate of everything counted so far."""

    mean: Float[Array, "*obs"]
    var: Float[Array, "*obs"]
    count: Float[Array, ""]  # type: ignore[assignment]  # hides tuple.count, which nobody calls


def initial_moments(shape: tuple[int, ...]) -> Moments:
    """Moments of nothing."""
    return Moments(jnp.zeros(shape), jnp.zeros(shape), jnp.zeros(()))


def merge(moments: Moments, batch: Float[Array, "row *obs"], include: Bool[Array, " row"]) -> Moments:
    """Take the included rows of a batch into the moments.

    Chan, Golub & LeVeque 1979, eqs. 2.1: exact up to rounding, in any grouping of the rows.

    Args:
        moments: so far.
        batch: new rows.
        include: which rows count; the others change nothing, whatever they hold.
    """
    counts = jnp.reshape(include, (-1,) + (1,) * (batch.ndim - 1))
    added = jnp.sum(include, dtype=batch.dtype)
    # Selected rather than weighted by 0, which would let a NaN through.
    batch_mean = jnp.sum(jnp.where(counts, batch, 0.0), axis=0) / jnp.maximum(added, 1.0)
    batch_m2 = jnp.sum(jnp.where(counts, jnp.square(batch - batch_mean), 0.0), axis=0)
    total = moments.count + added
    share = added / jnp.maximum(total, 1.0)
    delta = batch_mean - moments.mean
    var = moments.var * (1.0 - share) + batch_m2 / jnp.maximum(total, 1.0) + jnp.square(delta) * share * (1.0 - share)
    return Moments(moments.mean + delta * share, var, total)


def standardize(moments: Moments, obs: Float[Array, "*obs"]) -> Float[Array, "*obs"]:
    """(obs − mean) / std with std at least 1e-4, clipped to ±10."""
    std = jnp.maximum(jnp.sqrt(moments.var), MIN_STD)
    return jnp.clip((obs - moments.mean) / std, -CLIP, CLIP)
