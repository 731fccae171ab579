"""The terms of the PPO objective, each a function of one step; means are taken by the caller."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Steps = Float[Array, "*axes"]


def clipped_surrogate(log_prob: Steps, acting_log_prob: Steps, advantage: Steps, *, clip_range: float) -> Steps:
    """The pessimistic surrogate to *maximize*: min(ρ A, clip(ρ, 1−ε, 1+ε) A).

    Schulman et al. 2017, eq. 7. At ρ = 1 its gradient is the policy gradient; beyond the clip, on the side
    that the advantage favours, its gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> float(clipped_surrogate(jnp.log(2.0), jnp.log(1.0), jnp.array(3.0), clip_range=0.5))
        4.5
    """
    ratio = jnp.exp(log_prob - acting_log_prob)
    clipped = jnp.clip(ratio, 1.0 - clip_range, 1.0 + clip_range)
    return jnp.minimum(ratio * advantage, clipped * advantage)


def clipped_value_loss(value: Steps, acting_value: Steps, target: Steps, *, clip_range_vf: float | None) -> Steps:
    """Squared error of the value, made pessimistic beyond a move of `clip_range_vf` from the acting value.

    max((v − target)², (clip(v) − target)²), as in OpenAI Baselines' PPO2, without its factor ½: `vf_coef`
    multiplies the mean of this, as in Stable-Baselines3.
    """
    error = jnp.square(value - target)
    if clip_range_vf is None:
        return error
    clipped = acting_value + jnp.clip(value - acting_value, -clip_range_vf, clip_range_vf)
    return jnp.maximum(error, jnp.square(clipped - target))


def approximate_kl(log_prob: Steps, acting_log_prob: Steps) -> Steps:
    """The non-negative, low-variance estimate of KL(acting ‖ current): (ρ − 1) − log ρ.

    Schulman 2020, "Approximating KL divergence", estimator k3.
    """
    log_ratio = log_prob - acting_log_prob
    return jnp.expm1(log_ratio) - log_ratio


def clipped_fraction(log_prob: Steps, acting_log_prob: Steps, *, clip_range: float) -> Steps:
    """1 where the importance ratio lies outside the clip, else 0."""
    ratio = jnp.exp(log_prob - acting_log_prob)
    return (jnp.abs(ratio - 1.0) > clip_range).astype(ratio.dtype)


def mean_of(steps: Steps, valid: Bool[Array, "*axes"] | tuple[()] = ()) -> Float[Array, ""]:
    """The mean over the valid steps, which are all where nothing is said; 0 where there is none."""
    if isinstance(valid, tuple):
        return jnp.mean(steps)
    return jnp.sum(jnp.where(valid, steps, 0.0)) / jnp.maximum(jnp.sum(valid), 1)


def standardized(advantage: Steps, valid: Bool[Array, "*axes"] | tuple[()] = ()) -> Steps:
    """Zero mean and unit (population) standard deviation over the valid steps; constant input gives zeros."""
    if isinstance(valid, tuple):
        low, high = jnp.min(advantage), jnp.max(advantage)
    else:
        low = jnp.min(jnp.where(valid, advantage, jnp.inf))
        high = jnp.max(jnp.where(valid, advantage, -jnp.inf))
    centred = advantage - mean_of(advantage, valid)
    deviation = jnp.sqrt(mean_of(jnp.square(centred), valid))
    varies = high > low  # the mean of equal numbers may be off by a rounding error
    return jnp.where(varies, centred / (deviation + 1e-8), 0.0)
