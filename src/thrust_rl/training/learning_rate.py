"""The learning rate: how it is annealed, and where an optimizer's state keeps it, as data that compiles nothing."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Integer

from thrust_rl.arrays import positive, whole
from thrust_rl.config import require

LR_FLOOR = 0.05  # annealing never goes below this share of the initial learning rate

_REMEDY = "build the optimizer as optax.inject_hyperparams(optax.adam)(learning_rate=1e-3), for example"


def annealed(learning_rate: Float[Array, ""], *, update: Integer[Array, ""], num_updates: int) -> Float[Array, ""]:
    """Linear in the share of the budget already spent, down to a floor of 5 %."""
    return learning_rate * jnp.maximum(1.0 - update / num_updates, LR_FLOOR)


def annealed_learning_rate(initial: float, *, update: int, num_updates: int) -> float:
    """The learning rate of one update as packaged training sets it, to the last bit: `annealed`, compiled.

    Args:
        initial: the first update's learning rate.
        update: which update comes, counted from 0.
        num_updates: updates in the whole run.

    Raises:
        TypeError: a count is not an integer.
        ConfigError: a number lies outside its range.

    Example:
        >>> [round(annealed_learning_rate(0.01, update=u, num_updates=100), 6) for u in (0, 50, 99)]
        [0.01, 0.005, 0.0005]
    """
    total, now = positive("num_updates", num_updates), whole("update", update)
    require(0 <= now < total, f"update is {now}: {total} updates are counted from 0 to {total - 1}")
    require(math.isfinite(initial) and initial >= 0.0, f"initial is {initial}: it must be finite and at least 0")
    return float(_annealed(np.float32(initial), update=np.int32(now), num_updates=total))


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


# XLA divides by a constant as it multiplies by the reciprocal. Packaged training knows the number of updates when it is
# compiled; so must this, or every other rate would differ in the last bit.
_annealed = jax.jit(annealed, static_argnames="num_updates")


def _rates(opt_state: optax.OptState) -> list[object]:
    return [rate for _, rate in optax.tree_utils.tree_get_all_with_path(opt_state, "learning_rate")]
