"""A categorical's log-probabilities are normalized, its samples follow them, its entropy is theirs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from thrust_rl.maths.distributions import Categorical

logits_of_4 = st.lists(st.floats(-30.0, 30.0, width=32), min_size=4, max_size=4)


def log_probs(logits):
    """Log-probabilities of every action."""
    logits = jnp.asarray(logits, jnp.float32)
    table = jnp.broadcast_to(logits, (logits.size, logits.size))
    return np.asarray(Categorical(table).log_prob(jnp.arange(logits.size)), np.float64)


@given(logits_of_4)
def test_probabilities_sum_to_1_and_keep_the_ratios_of_the_logits(logits):
    found = log_probs(logits)
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(found - found[0], np.array(logits) - logits[0], atol=1e-4)


@given(logits_of_4)
def test_entropy_is_the_mean_of_minus_log_prob(logits):
    shifted = np.array(logits) - max(logits)
    p = np.exp(shifted) / np.exp(shifted).sum()
    entropy = Categorical(jnp.array(logits)).entropy()
    assert entropy == pytest.approx(stats.entropy(p), abs=1e-4)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_entropy_of_the_uniform_is_log_n(n):
    assert Categorical(jnp.full(n, 3.0)).entropy() == pytest.approx(np.log(n), abs=1e-6)


def test_near_certainty_stays_finite():
    certain = Categorical(jnp.array([0.0, 1000.0]))
    assert certain.entropy() == 0.0
    assert certain.log_prob(jnp.array(1)) == 0.0
    assert certain.log_prob(jnp.array(0)) == -1000.0


def test_an_action_that_is_ruled_out_has_probability_0_and_no_share_in_the_entropy():
    # Between two equal alternatives the entropy is log 2, and each has log-probability -log 2.
    ruled = Categorical(jnp.array([1.0, -jnp.inf, 1.0]))
    assert ruled.entropy() == pytest.approx(np.log(2), abs=1e-6)
    assert log_probs([1.0, -np.inf, 1.0]).tolist() == pytest.approx([-np.log(2), -np.inf, -np.log(2)], abs=1e-6)
    gradient = jax.grad(lambda logits: Categorical(logits).entropy() + Categorical(logits).log_prob(jnp.array(0)))
    # Of log_prob: onehot - p = (1/2, 0, -1/2); of the entropy at its maximum: 0.
    np.testing.assert_allclose(gradient(ruled.logits), [0.5, 0.0, -0.5], atol=1e-6)
    draws = Categorical(jnp.broadcast_to(ruled.logits, (1000, 3))).sample(jax.random.key(0))
    assert set(draws.tolist()) == {0, 2}


def test_frequencies_of_samples_lie_within_the_binomial_bound():
    p, draws = np.array([0.05, 0.25, 0.7]), 20_000
    many = Categorical(jnp.broadcast_to(jnp.log(jnp.asarray(p)), (draws, 3)))
    counts = np.bincount(many.sample(jax.random.key(0)), minlength=3)
    assert np.all(np.abs(counts - draws * p) < 5 * np.sqrt(draws * p * (1 - p)))


def test_mode_is_the_likeliest_and_the_first_of_equals():
    batch = Categorical(jnp.array([[0.0, 2.0, 1.0], [1.0, 0.0, 1.0]]))
    assert batch.mode().tolist() == [1, 0]
