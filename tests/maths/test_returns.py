"""Generalized advantages are the λ-returns of each episode on its own, whatever the window cuts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrust_rl.maths.returns import explained_variance, generalized_advantages

T = 12
_compiled = jax.jit(generalized_advantages, static_argnames=("gamma", "gae_lambda"))


def gae(reward, value, *, terminated=(), truncated=(), bootstrap=None, gamma=1.0, gae_lambda=1.0):
    """Call with flags given as the indices where they are true."""
    n = len(reward)
    flags = [jnp.asarray(np.isin(np.arange(n), index)) for index in (terminated, truncated)]
    bootstrap = np.zeros(n) if bootstrap is None else bootstrap
    arrays = [jnp.asarray(x, jnp.float32) for x in (reward, value, bootstrap)]
    return _compiled(
        arrays[0],
        arrays[1],
        terminated=flags[0],
        truncated=flags[1],
        bootstrap_value=arrays[2],
        gamma=gamma,
        gae_lambda=gae_lambda,
    )


def random_trajectory(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=T), rng.normal(size=T), rng.normal(size=T)


def lambda_return(reward, value, terminated, truncated, bootstrap, gamma, gae_lambda):
    """The definition, O(T²): a λ-weighted mixture of the n-step returns that the episode or window allows."""
    target = np.zeros(len(reward))
    for t in range(len(reward)):
        discounted, mixture = 0.0, 0.0
        for n in range(1, len(reward) - t + 1):
            k = t + n - 1
            discounted += gamma ** (n - 1) * reward[k]
            final = terminated[k] or truncated[k] or k == len(reward) - 1
            successor = 0.0 if terminated[k] else (bootstrap[k] if final else value[k + 1])
            n_step = discounted + gamma**n * successor
            if final:
                mixture += gae_lambda ** (n - 1) * n_step
                break
            mixture += (1 - gae_lambda) * gae_lambda ** (n - 1) * n_step
        target[t] = mixture
    return target


flags = st.lists(st.booleans(), min_size=T, max_size=T)


@given(
    st.integers(0, 2**32 - 1),
    flags,
    flags,
    st.sampled_from([(0.99, 0.95), (0.9, 0.5), (1.0, 1.0), (0.7, 0.0)]),
)
def test_equals_the_definition(seed, terminated, truncated, factors):
    reward, value, bootstrap = random_trajectory(seed)
    found = gae(
        reward,
        value,
        terminated=np.flatnonzero(terminated),
        truncated=np.flatnonzero(truncated),
        bootstrap=bootstrap,
        gamma=factors[0],
        gae_lambda=factors[1],
    )
    expected = lambda_return(reward, value, terminated, truncated, bootstrap, *factors)
    np.testing.assert_allclose(found.value_target, expected, atol=2e-5)
    np.testing.assert_allclose(found.advantage, expected - value, atol=2e-5)


def test_a_termination_belongs_to_the_transition_that_leaves_its_step():
    # Two episodes of three rewards of 1: 3 2 1 to go, twice. A flag read one step late gives 4 3 2 1 2 1.
    found = gae(np.ones(6), np.zeros(6), terminated=[2])
    assert found.value_target.tolist() == [3, 2, 1, 3, 2, 1]


def test_nothing_leaks_through_a_truncation():
    # 1+1+1 = 3 and 10+10+10 = 30 to go. A leak gives 33 32 31 30 20 10.
    reward = np.array([1.0, 1, 1, 10, 10, 10])
    assert gae(reward, np.zeros(6), truncated=[2]).advantage.tolist() == [3, 2, 1, 30, 20, 10]
    # The true final observation is worth 5: every step of that episode gains 5, no step of the next one does.
    bootstrap = np.array([0.0, 0, 5, 0, 0, 0])
    found = gae(reward, np.zeros(6), truncated=[2], bootstrap=bootstrap)
    assert found.advantage.tolist() == [8, 7, 6, 30, 20, 10]


def test_a_time_limit_is_not_the_end_of_the_world():
    # Reward 1 for ever, γ = 0.9, cut every 10 steps: V = 1/(1-0.9) = 10. Ten steps seen as all there is would be
    # worth (1-0.9^10)/(1-0.9) = 6.5 from the first of them.
    value = 0.0
    for _ in range(30):
        constant = np.full(30, value)
        found = gae(np.ones(30), constant, truncated=[9, 19], bootstrap=constant, gamma=0.9, gae_lambda=0.95)
        value = float(found.value_target.mean())
    assert value == pytest.approx(10.0, abs=1e-3)
    np.testing.assert_allclose(found.advantage, 0.0, atol=1e-2)


def test_lambda_0_is_the_td_error():
    reward, value, bootstrap = random_trajectory(0)
    found = gae(reward, value, bootstrap=bootstrap, gamma=0.9, gae_lambda=0.0)
    successor = np.append(value[1:], bootstrap[-1])
    np.testing.assert_allclose(found.advantage, reward + 0.9 * successor - value, atol=1e-6)


def test_lambda_1_plus_value_is_the_discounted_return():
    reward, value, bootstrap = random_trajectory(1)
    found = gae(reward, value, bootstrap=bootstrap, gamma=0.9, gae_lambda=1.0)
    to_go = [sum(0.9 ** (k - t) * reward[k] for k in range(t, T)) + 0.9 ** (T - t) * bootstrap[-1] for t in range(T)]
    np.testing.assert_allclose(found.advantage + value, to_go, atol=1e-5)
    np.testing.assert_allclose(found.value_target, to_go, atol=1e-5)


@pytest.mark.parametrize("end", ["terminated", "truncated"])
@pytest.mark.parametrize("cut", [1, 5, T - 1])
def test_an_end_in_the_middle_equals_two_trajectories(end, cut):
    arrays = random_trajectory(2)
    factors = dict(gamma=0.9, gae_lambda=0.8)
    whole = gae(arrays[0], arrays[1], bootstrap=arrays[2], **{end: [cut - 1]}, **factors)
    first = gae(arrays[0][:cut], arrays[1][:cut], bootstrap=arrays[2][:cut], **{end: [cut - 1]}, **factors)
    second = gae(arrays[0][cut:], arrays[1][cut:], bootstrap=arrays[2][cut:], **factors)
    for field in ("advantage", "value_target"):
        parts = np.concatenate([getattr(first, field), getattr(second, field)])
        np.testing.assert_allclose(getattr(whole, field), parts, atol=1e-6)


@pytest.mark.parametrize("at", [0, 1])  # in the middle of the window, and as its last step
def test_truncation_bootstraps_and_termination_does_not(at):
    # r = 1, γ = 0.5, successor worth 8: δ = 1 + 0.5·8 = 5 if truncated, 1 if terminated, 1 if both.
    delta = {}
    for name, ends in {"truncated": ("truncated",), "terminated": ("terminated",)}.items():
        delta[name] = gae(np.ones(2), np.zeros(2), bootstrap=[8.0, 8.0], gamma=0.5, **{e: [at] for e in ends})
    both = gae(np.ones(2), np.zeros(2), bootstrap=[8.0, 8.0], gamma=0.5, terminated=[at], truncated=[at])
    assert delta["truncated"].advantage[at] == 5.0
    assert delta["terminated"].advantage[at] == 1.0
    assert both.advantage[at] == 1.0


def test_the_bootstrap_value_is_not_read_elsewhere():
    reward, value, bootstrap = random_trajectory(3)
    elsewhere = np.full(T, np.nan)
    elsewhere[[4, T - 1]] = bootstrap[[4, T - 1]]
    ends = dict(truncated=[4], terminated=[7], gamma=0.9, gae_lambda=0.8)
    found = gae(reward, value, bootstrap=elsewhere, **ends)
    np.testing.assert_array_equal(found.advantage, gae(reward, value, bootstrap=bootstrap, **ends).advantage)


def test_explained_variance():
    target = jnp.array([1.0, 2.0, 3.0, 6.0])  # mean 3, variance (4+1+0+9)/4 = 3.5
    assert explained_variance(target, target) == 1.0
    assert explained_variance(jnp.full(4, 3.0), target) == 0.0
    assert explained_variance(target + 7.0, target) == 1.0  # a constant offset is not a loss of variance
    # Halved: what is left is half the target, a quarter of its variance.
    assert explained_variance(target / 2, target) == pytest.approx(0.75)
    assert explained_variance(-target, target) == pytest.approx(-3.0)  # (2·target): 1 - 4
    assert np.isnan(explained_variance(target, jnp.ones(4)))
