"""The PPO terms: policy gradient at ratio 1, no gradient beyond the clip, pessimistic value, non-negative KL."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrust_rl.maths.losses import (
    approximate_kl,
    clipped_fraction,
    clipped_surrogate,
    clipped_value_loss,
    mean_of,
    standardized,
)
from thrust_rl.maths.returns import explained_variance


def surrogate(ratio, advantage):
    """Value and derivative with respect to the log-probability, ε = 0.2."""
    return jax.value_and_grad(clipped_surrogate)(
        jnp.log(jnp.float32(ratio)), jnp.float32(0.0), jnp.float32(advantage), clip_range=0.2
    )


def test_at_ratio_1_the_gradient_is_the_policy_gradient():
    # Softmax policy: ∇ log π(a) = onehot(a) - π, so the policy gradient is the mean of A (onehot(a) - π).
    logits = jnp.array([0.3, -1.0, 0.7])
    action, advantage = jnp.array([0, 2, 1, 2]), jnp.array([1.0, -2.0, 0.5, 3.0])
    acting = jax.nn.log_softmax(logits)[action]

    def objective(logits):
        return clipped_surrogate(jax.nn.log_softmax(logits)[action], acting, advantage, clip_range=0.2).mean()

    probs = np.exp(logits) / np.exp(logits).sum()
    expected = np.mean(np.asarray(advantage)[:, None] * (np.eye(3)[np.asarray(action)] - probs), axis=0)
    np.testing.assert_allclose(jax.grad(objective)(logits), expected, atol=1e-6)


# d(ρA)/d log π = ρA while unclipped, 0 where the clip rules.
@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (1.3, 2.0, 2.4, 0.0),  # good action, already favoured enough: 1.2·2, no further push
        (0.7, 2.0, 1.4, 1.4),  # good action, out of favour: pulled back
        (0.7, -2.0, -1.6, 0.0),  # bad action, already avoided enough: 0.8·(-2), no further push
        (1.3, -2.0, -2.6, -2.6),  # bad action in favour: pushed away
        (1.1, 2.0, 2.2, 2.2),  # inside the clip
        (0.9, -2.0, -1.8, -1.8),
    ],
)
def test_the_clip_stops_the_gradient_on_the_favoured_side_only(ratio, advantage, value, slope):
    found_value, found_slope = surrogate(ratio, advantage)
    assert found_value == pytest.approx(value, abs=1e-6)
    assert found_slope == pytest.approx(slope, abs=1e-6)


# value, acting value, target, clip; loss by hand; derivative by value: 2(v - target), or 0 where the clip rules.
@pytest.mark.parametrize(
    ("value", "acting", "target", "clip", "loss", "slope"),
    [
        (3.0, 0.0, 1.0, None, 4.0, 4.0),  # (3-1)² whole, not halved
        (1.0, 0.0, 2.0, 0.2, 3.24, 0.0),  # moved far towards the target: (0.2-2)² is worse than (1-2)²
        (1.0, 0.0, 0.0, 0.2, 1.0, 2.0),  # moved far away from it: (1-0)² is worse than (0.2-0)²
        (-1.0, 0.0, -2.0, 0.2, 3.24, 0.0),
        (0.1, 0.0, 2.0, 0.2, 3.61, -3.8),  # inside: (0.1-2)²
        (5.1, 5.0, 7.0, 0.2, 3.61, -3.8),  # the clip goes with the acting value
    ],
)
def test_value_loss_by_hand(value, acting, target, clip, loss, slope):
    found, derivative = jax.value_and_grad(clipped_value_loss)(
        jnp.float32(value), jnp.float32(acting), jnp.float32(target), clip_range_vf=clip
    )
    assert found == pytest.approx(loss, rel=1e-5)
    assert derivative == pytest.approx(slope, abs=1e-5)


@given(st.floats(-20.0, 5.0, width=32), st.floats(-20.0, 5.0, width=32))
def test_kl_estimate_is_never_negative(log_prob, acting):
    assert approximate_kl(jnp.float32(log_prob), jnp.float32(acting)) >= 0.0


def test_kl_estimate_by_hand_and_at_equality():
    assert approximate_kl(jnp.float32(-1.5), jnp.float32(-1.5)) == 0.0
    # ρ = 2: (2-1) - log 2 = 0.30685; ρ = 1/2: -1/2 + log 2 = 0.19315. Of (acting ‖ current), so not symmetric.
    assert approximate_kl(jnp.log(2.0), jnp.log(1.0)) == pytest.approx(0.306853, abs=1e-6)
    assert approximate_kl(jnp.log(1.0), jnp.log(2.0)) == pytest.approx(0.193147, abs=1e-6)


def test_kl_estimate_is_unbiased():
    acting, current = np.array([0.1, 0.2, 0.7]), np.array([0.5, 0.3, 0.2])
    estimate = approximate_kl(jnp.log(jnp.asarray(current)), jnp.log(jnp.asarray(acting)))
    kl = np.sum(acting * np.log(acting / current))  # KL(acting ‖ current)
    assert np.sum(acting * np.asarray(estimate)) == pytest.approx(kl, rel=1e-5)


def test_clipped_fraction_counts_ratios_outside_on_either_side():
    ratio = jnp.array([0.5, 0.79, 0.81, 1.0, 1.19, 1.21, 3.0])
    found = clipped_fraction(jnp.log(ratio), jnp.zeros(7), clip_range=0.2)
    assert found.tolist() == [1, 1, 0, 0, 0, 1, 1]


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 100.0), st.floats(-100.0, 100.0))
def test_standardized_forgets_scale_and_offset(seed, scale, offset):
    x = np.random.default_rng(seed).normal(size=(4, 8)).astype(np.float32)
    found = np.asarray(standardized(jnp.asarray(x)), np.float64)
    assert found.mean() == pytest.approx(0.0, abs=1e-6)
    assert found.std() == pytest.approx(1.0, abs=1e-5)  # over the whole population, not n-1
    moved = standardized(jnp.asarray(np.float32(scale) * x + np.float32(offset)))
    np.testing.assert_allclose(moved, found, atol=1e-3)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, -1000.1, 1e-6])
def test_standardized_finds_nothing_in_a_constant(constant):
    # The mean of 100 equal float32 need not equal them: rounding must not be scaled up to order 1.
    np.testing.assert_allclose(standardized(jnp.full(100, constant)), 0.0, atol=1e-3)


@given(st.integers(0, 2**32 - 1))
def test_what_is_taken_over_the_valid_steps_is_what_they_alone_give(seed):
    """Whatever the other steps hold, infinities included."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 6, 5)).astype(np.float32)
    valid = rng.random((6, 5)) < 0.6
    valid[0, :2] = True
    garbage = rng.choice(np.array([np.inf, -np.inf, np.nan, 1e9, -1e9], np.float32), (2, 6, 5))
    a, b = (jnp.asarray(np.where(valid, good, bad)) for good, bad in zip((x, y), garbage, strict=True))
    x, y, valid = x[valid], y[valid], jnp.asarray(valid)
    assert mean_of(a, valid) == pytest.approx(x.mean(), abs=1e-5)
    np.testing.assert_allclose(standardized(a, valid)[valid], standardized(jnp.asarray(x)), atol=1e-4)
    expected = explained_variance(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(explained_variance(a, b, valid), expected, rtol=1e-4, atol=1e-5)


def test_where_no_step_is_valid_nothing_is_learned():
    nothing = jnp.zeros(3, bool)
    assert mean_of(jnp.array([1.0, jnp.nan, jnp.inf]), nothing) == 0.0
    assert standardized(jnp.array([1.0, 2.0, 3.0]), nothing).tolist() == [0.0, 0.0, 0.0]
