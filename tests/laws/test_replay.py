"""Replaying a rollout from its first memory gives back what the acting policy said (law 5, F1)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_for_tests import LSTM_ARM, MLP_ARM, QUICK, Short, act, environment, settings
from thrust_rl.training.loop import initial_state, train_update
from thrust_rl.training.ppo import experience_of, ppo_loss

# Episodes of 1 to 3 steps, some of them cut after 2: several starts in every window, none on a fixed step.
ENV = environment(Short(3), max_steps=2)


def replay(policy, rollout, ppo):
    has_memory = bool(jax.tree.leaves(rollout.memory))
    _, output = jax.vmap(policy.unroll)(rollout.memory, rollout.obs, rollout.episode_start)
    return output, ppo_loss(policy, experience_of(rollout, ppo, has_memory=has_memory), ppo)[1]


@pytest.mark.parametrize("normalize_obs", [True, False], ids=["normalized", "raw"])
@pytest.mark.parametrize("window_start", ["cold", "stored"])
@pytest.mark.parametrize("arm", [LSTM_ARM, MLP_ARM], ids=lambda arm: arm.name)
def test_replay_reproduces_what_was_acted(arm, window_start, normalize_obs):
    config = settings(num_steps=5, window_start=window_start, normalize_obs=normalize_obs)
    acted = act(ENV, arm, config, windows=4, drift=0.1)  # so that m_0 stems from an older policy
    rollout = jax.tree.map(lambda leaf: leaf[-1], acted.rollout)
    output, terms = jax.jit(replay, static_argnums=2, compiler_options=QUICK)(acted.policy, rollout, config.ppo)
    np.testing.assert_allclose(output.value, rollout.value, rtol=1e-5, atol=1e-5)
    log_prob = output.distribution.log_prob(rollout.action)
    np.testing.assert_allclose(log_prob, rollout.log_prob, rtol=1e-5, atol=1e-5)
    assert terms.clip_fraction == 0.0
    assert abs(terms.approx_kl) < 1e-6
    # At ratio 1 the surrogate is the mean advantage, which standardizing makes 0.
    assert abs(terms.policy_loss) < 1e-5

    # What the check would miss: windows without a start inside, or all memories alike.
    assert 0.2 < rollout.episode_start[:, 1:].mean() < 0.9
    remembers = [bool(jnp.any(leaf != 0.0)) for leaf in jax.tree.leaves(rollout.memory)]
    assert remembers == [window_start == "stored"] * len(remembers)
    assert len(remembers) == (2 if arm.has_memory else 0)
    assert np.std(rollout.log_prob) > 0.05


def test_training_starts_every_update_at_ratio_one():
    """One minibatch and one epoch: the update's own statistics are those of its very first look."""
    ppo = {"n_epochs": 1, "envs_per_minibatch": 4, "learning_rate": 0.1, "anneal_lr": False}
    config = settings(updates=6, window_start="stored", **ppo)
    step = jax.jit(functools.partial(train_update, ENV, LSTM_ARM, config), compiler_options=QUICK)
    state = jax.jit(functools.partial(initial_state, ENV, LSTM_ARM, config), compiler_options=QUICK)(jnp.uint32(3))
    first = state.learner.policy
    for _ in range(6):
        state, record = step(state)
        assert record.stats.losses.clip_fraction == 0.0
        assert abs(record.stats.losses.approx_kl) < 1e-6
        assert abs(record.stats.losses.policy_loss) < 1e-5
    moved = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), first, state.learner.policy)
    assert all(leaf > 1e-3 for leaf in jax.tree.leaves(moved))
