"""Advantages and returns of one trajectory; `vmap` for batches."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float


class Advantages(NamedTuple):
    """Advantages and the value targets that go with them, at times [0, T-1]."""

    advantage: Float[Array, " time"]
    value_target: Float[Array, " time"]  # advantage + value: the λ-return


def generalized_advantages(
    reward: Float[Array, " time"],
    value: Float[Array, " time"],
    *,
    terminated: Bool[Array, " time"],
    truncated: Bool[Array, " time"],
    bootstrap_value: Float[Array, " time"],
    gamma: float,
    gae_lambda: float,
) -> Advantages:
    """Generalized advantage estimation with terminations and truncations told apart.

    δ_t = r_{t+1} + γ V(s_{t+1}) − V(s_t) and A_t = δ_t + γλ A_{t+1} (Schulman et al. 2016, eqs. 11-16), where

    - a termination makes V(s_{t+1}) zero and ends the sum;
    - a truncation takes V(s_{t+1}) from `bootstrap_value`, because o_{t+1} of the window already belongs to
      the next episode, and ends the sum;
    - the last step of the window takes V(s_{t+1}) from `bootstrap_value` too.

    λ=0 is the TD error; with λ=1, A + V is the discounted return with its bootstrap.

    Args:
        reward: r_{t+1} for t in [0, T-1], in the units of `value`.
        value: V(o_≤t) for t in [0, T-1].
        terminated: the transition t → t+1 ended in an absorbing state.
        truncated: the transition t → t+1 was cut by a limit.
        bootstrap_value: V of the true successor; read only where truncated or at the last step.
        gamma: discount factor.
        gae_lambda: λ.

    Example:
        >>> import jax.numpy as jnp
        >>> never = jnp.zeros(2, bool)
        >>> generalized_advantages(jnp.ones(2), jnp.zeros(2), terminated=never, truncated=never,
        ...     bootstrap_value=jnp.array([0.0, 8.0]), gamma=0.5, gae_lambda=1.0).advantage.tolist()
        [3.5, 5.0]
    """
    within = jnp.concatenate([value[1:], bootstrap_value[-1:]])
    successor = jnp.where(terminated, 0.0, jnp.where(truncated, bootstrap_value, within))
    delta = reward + gamma * successor - value
    carry_on = gamma * gae_lambda * ~(terminated | truncated)

    def backward(advantage: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        delta_t, carry_on_t = step
        advantage = delta_t + carry_on_t * advantage
        return advantage, advantage

    _, advantage = lax.scan(backward, jnp.zeros_like(delta[0]), (delta, carry_on), reverse=True)
    return Advantages(advantage, advantage + value)


def explained_variance(
    value: Float[Array, "*axes"], target: Float[Array, "*axes"], valid: Bool[Array, "*axes"] | tuple[()] = ()
) -> Float[Array, ""]:
    """1 − Var[target − value] / Var[target]: 1 is a perfect critic, 0 no better than the mean.

    NaN where the targets do not vary. Taken over the valid steps, which are all where nothing is said.
    """
    where = None if isinstance(valid, tuple) else valid
    variance = jnp.var(target, where=where)
    return jnp.where(variance > 0, 1.0 - jnp.var(target - value, where=where) / variance, jnp.nan)
