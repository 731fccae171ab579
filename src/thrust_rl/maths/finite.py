"""Whether everything in a tree is finite."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether no leaf holds a NaN or an infinity."""
    numbers = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.stack([jnp.ones((), bool), *(jnp.all(jnp.isfinite(leaf)) for leaf in numbers)]))
