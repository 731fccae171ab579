"""The learning rate inside an optimizer's state: data, so reading or setting it never compiles anything again."""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

_REMEDY = "build the optimizer as optax.inject_hyperparams(optax.adam)(learning_rate=1e-3), for example"


def learning_rate_of(opt_state: optax.OptState) -> Float[Array, ""]:
    """The learning rate that `optax.inject_hyperparams` keeps; NaN where there is none, the first of several."""
    rates = _rates(opt_state)
    return jnp.asarray(rates[0], jnp.float32) if rates else jnp.full((), jnp.nan)


def settable(opt_state: optax.OptState) -> bool:
    """Whether there is a learning rate and no schedule overrules it."""
    rates = _rates(opt_state)
    return bool(rates) and all(isinstance(rate, jax.Array) and rate.ndim == 0 for rate in rates)


def set_learning_rate(opt_state: optax.OptState, learning_rate: Float[Array, ""]) -> optax.OptState:
    """The optimizer's state with every learning rate in it set.

    Raises:
        ValueError: there is none to set, or a schedule sets it at every step.
    """
    if not _rates(opt_state):
        raise ValueError(f"this optimizer's learning rate is part of its code and cannot be set: {_REMEDY}")
    if not settable(opt_state):
        raise ValueError(f"this optimizer's learning rate follows a schedule, which would overrule it: {_REMEDY}")
    return optax.tree_utils.tree_set(opt_state, learning_rate=jnp.asarray(learning_rate, jnp.float32))


def _rates(opt_state: optax.OptState) -> list[object]:
    return [rate for _, rate in optax.tree_utils.tree_get_all_with_path(opt_state, "learning_rate")]
