"""Initialization of weights: orthogonal (Saxe et al. 2014), as PPO implementations use it, or uniform."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from thrust_rl.types import Key

RELU_GAIN = math.sqrt(2.0)
ACTOR_GAIN = 0.01  # near-uniform first policy
CRITIC_GAIN = 1.0


def orthogonal(key: Key, rows: int, columns: int, *, gain: float) -> Float[Array, "rows columns"]:
    """A matrix whose shorter side is orthonormal times `gain`."""
    return jax.nn.initializers.orthogonal(scale=gain)(key, (rows, columns), jnp.float32)


def uniform(key: Key, rows: int, columns: int, *, gain: float) -> Float[Array, "rows columns"]:
    """Independent uniform entries of variance gain² / rows; gain √2 is He et al. 2015."""
    return jax.nn.initializers.variance_scaling(gain**2, "fan_in", "uniform")(key, (rows, columns), jnp.float32)
