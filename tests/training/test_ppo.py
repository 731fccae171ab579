"""PPO: the loss in closed form, what rows and permutations may not change, clipping, early stop, annealing."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from envs_for_tests import LSTM_ARM, MLP_ARM, QUICK, Short, act, environment, settings
from thrust_rl.config import PPOConfig
from thrust_rl.training.ppo import (
    Experience,
    Learner,
    experience_of,
    make_optimizer,
    minibatch_indices,
    ppo_loss,
    update,
    with_learning_rate,
)

ENV = environment(Short(6), max_steps=4)
CONFIG = settings(normalize_obs=False, window_start="stored").ppo
loss_and_gradient = jax.jit(jax.value_and_grad(ppo_loss, has_aux=True), static_argnums=2, compiler_options=QUICK)


def acted(arm):
    result = act(ENV, arm, settings(normalize_obs=False, window_start="stored"))
    return result.policy, jax.tree.map(lambda leaf: leaf[-1], result.rollout)


def close(a, b, tolerance=1e-5):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance), a, b)


def moved(policy):
    """Away from the acting policy, so that ratios are not 1."""
    return jax.tree.map(lambda leaf: 1.2 * leaf + 0.05, policy)


def column(*numbers):
    return jnp.array(numbers)[:, None]


def test_loss_of_a_hand_made_batch():
    """Ratios 2 and 1/2 by ε 0.2; values 0 against targets 3 and 1; two equally likely actions."""
    policy = jax.tree.map(jnp.zeros_like, acted(MLP_ARM)[0])
    batch = Experience(
        obs=jnp.ones((2, 1, 2)),
        episode_start=jnp.zeros((2, 1), bool),
        action=jnp.zeros((2, 1), jnp.int32),
        log_prob=jnp.log(column(0.25, 1.0)),
        value=column(0.0, 0.0),
        advantage=column(4.0, 10.0),
        value_target=column(3.0, 1.0),
        memory=(),
    )
    config = PPOConfig(normalize_advantage=False, clip_range=0.2, clip_range_vf=None, vf_coef=0.5, ent_coef=0.1)
    loss, terms = ppo_loss(policy, batch, config)
    close(terms.policy_loss, -(1.2 * 4.0 + 0.5 * 10.0) / 2)
    close(terms.value_loss, (9.0 + 1.0) / 2)
    close(terms.entropy, math.log(2.0))
    close(terms.approx_kl, (2 - 1 - math.log(2.0) + 0.5 - 1 + math.log(2.0)) / 2)
    close(terms.clip_fraction, 1.0)
    close(loss, -4.9 + 0.5 * 5.0 - 0.1 * math.log(2.0))
    standardized = PPOConfig(normalize_advantage=True, clip_range=0.2, vf_coef=0.0, ent_coef=0.0)
    close(ppo_loss(policy, batch, standardized)[0], -(-2.0 + 0.5) / 2)  # advantages -1 and 1: min(2, 1.2)(-1), 0.5


def test_gradient_at_ratio_one_is_the_policy_gradient():
    policy, rollout = acted(LSTM_ARM)
    config = dataclasses.replace(CONFIG, vf_coef=0.0, ent_coef=0.0, normalize_advantage=False)
    experience = experience_of(rollout, config, has_memory=True)

    def reinforce(policy):
        _, output = jax.vmap(policy.unroll)(rollout.memory, rollout.obs, rollout.episode_start)
        return -jnp.mean(experience.advantage * output.distribution.log_prob(rollout.action))

    close(loss_and_gradient(policy, experience, config)[1], jax.jit(jax.grad(reinforce))(policy), 1e-6)


def test_single_steps_and_windows_teach_a_memoryless_agent_the_same():
    policy, rollout = acted(MLP_ARM)
    by_rows = [experience_of(rollout, CONFIG, has_memory=has_memory) for has_memory in (False, True)]
    assert [e.action.shape for e in by_rows] == [(32, 1), (4, 8)]
    steps, windows = (loss_and_gradient(moved(policy), e, CONFIG) for e in by_rows)
    close(steps, windows)


@pytest.mark.parametrize("arm", [LSTM_ARM, MLP_ARM], ids=lambda arm: arm.name)
def test_the_order_of_environments_does_not_matter(arm):
    policy, rollout = acted(arm)
    order = np.array([2, 0, 3, 1])
    permuted = jax.tree.map(lambda leaf: leaf[order], rollout)
    found, expected = (
        loss_and_gradient(moved(policy), experience_of(r, CONFIG, has_memory=arm.has_memory), CONFIG)
        for r in (permuted, rollout)
    )
    close(found, expected)


@pytest.mark.parametrize("size", [0.01, 0.499, 0.6, 300.0])
def test_the_global_norm_is_bounded_and_the_direction_kept(size):
    """F18. Adam's first moment after one step is 0.1 times the gradient that reached it."""
    optimizer = make_optimizer(PPOConfig(max_grad_norm=0.5))
    grads = {"a": jnp.array([3.0, -4.0]), "b": jnp.array([[0.0, 12.0]])}  # norm 13
    grads = jax.tree.map(lambda leaf: leaf * size / 13.0, grads)
    _, state = optimizer.update(grads, optimizer.init(grads), grads)
    reached = jax.tree.map(lambda leaf: leaf / 0.1, optax.tree.get(state, "mu"))
    close(reached, jax.tree.map(lambda leaf: leaf * min(1.0, 0.5 / size), grads), 1e-6)


def learner_of(policy, config, learning_rate=3e-2):
    return Learner(policy, with_learning_rate(make_optimizer(config).init(policy), jnp.asarray(learning_rate)))


@functools.partial(jax.jit, static_argnums=(2, 3), compiler_options=QUICK)
def run(learner, experience, config, rows):
    optimizer = make_optimizer(config)
    key = jax.random.key(0)
    return update(learner, experience, key, optimizer=optimizer, config=config, rows_per_minibatch=rows)


def test_early_stop_takes_no_further_step_and_counts_none():
    """F14: one full-batch step goes too far; the epochs that remain change nothing and do not count."""
    policy, rollout = acted(MLP_ARM)
    patient = dataclasses.replace(CONFIG, n_epochs=1, target_kl=None)
    hasty = dataclasses.replace(CONFIG, n_epochs=5, target_kl=1e-6)
    experience = experience_of(rollout, patient, has_memory=False)
    once, _ = run(learner_of(policy, patient), experience, patient, 32)
    stopped, stats = run(learner_of(policy, hasty), experience, hasty, 32)
    assert (int(stats.n_updates), bool(stats.early_stopped)) == (1, True)
    assert int(optax.tree.get(stopped.opt_state, "ScaleByAdamState").count) == 1
    close(stopped.policy, once.policy, 1e-6)
    # Looked at: the first minibatch at KL 0, and the second that said stop; the mean is half of the latter.
    _, terms = ppo_loss(once.policy, experience, hasty)
    assert terms.approx_kl > 1.5e-6
    close(stats.losses.approx_kl, terms.approx_kl / 2, 1e-6)


def test_an_unreachable_target_kl_is_no_target_kl():
    policy, rollout = acted(MLP_ARM)
    experience = experience_of(rollout, CONFIG, has_memory=False)
    never = dataclasses.replace(CONFIG, target_kl=1e9)
    free, free_stats = run(learner_of(policy, CONFIG), experience, CONFIG, 8)
    bound, bound_stats = run(learner_of(policy, never), experience, never, 8)
    assert int(free_stats.n_updates) == int(bound_stats.n_updates) == 2 * 4
    assert not free_stats.early_stopped and not bound_stats.early_stopped
    close(free.policy, bound.policy, 1e-6)
    close(free_stats.losses, bound_stats.losses, 1e-5)


def test_another_learning_rate_is_obeyed_without_compiling_again():
    policy, rollout = acted(MLP_ARM)
    experience = experience_of(rollout, CONFIG, has_memory=False)
    results = [run(learner_of(policy, CONFIG, 0.0), experience, CONFIG, 8)]
    compiled = run._cache_size()
    results += [run(learner_of(policy, CONFIG, rate), experience, CONFIG, 8) for rate in (1e-3, 1e-2)]
    assert run._cache_size() == compiled
    close(results[0][0].policy, policy, 0.0)
    assert np.any(results[1][0].policy.actor.weight != results[2][0].policy.actor.weight)
    close([stats.learning_rate for _, stats in results], [0.0, 1e-3, 1e-2])


def test_explained_variance_is_of_the_acting_values():
    policy, rollout = acted(MLP_ARM)
    experience = experience_of(rollout, CONFIG, has_memory=False)
    _, stats = run(learner_of(policy, CONFIG), experience, CONFIG, 8)
    target, value = np.asarray(experience.value_target), np.asarray(experience.value)
    close(stats.explained_variance, 1.0 - np.var(target - value) / np.var(target), 1e-4)


TERMINATED, TRUNCATED = np.zeros((2, 4, 8), bool)
TERMINATED[1, 6] = TERMINATED[2, 4] = TRUNCATED[0, 2] = TRUNCATED[2, 1] = True
INVALID = np.roll(TERMINATED | TRUNCATED, 1, axis=1)  # the resets that took a step
INVALID[3, 0] = True  # of an episode that ended with the window before


def with_resets(rollout):
    """The same rollout, in which a step is a reset after every end, and the frame after it opens an episode."""
    flags = {"terminated": TERMINATED, "truncated": TRUNCATED, "episode_start": np.roll(INVALID, 1, axis=1)}
    return rollout._replace(**jax.tree.map(jnp.asarray, flags), valid=jnp.asarray(~INVALID))


def with_garbage(rollout):
    """Anything at all in the invalid steps."""
    rng = np.random.default_rng(0)

    def spoiled(leaf):
        garbage = rng.normal(2.0, 3.0, leaf.shape).astype(leaf.dtype)
        where = INVALID.reshape(*INVALID.shape, *[1] * (leaf.ndim - 2))
        return jnp.where(where, garbage, leaf)

    return rollout._replace(
        obs=spoiled(rollout.obs),
        action=jnp.where(INVALID, 1 - rollout.action, rollout.action),
        log_prob=spoiled(rollout.log_prob),
        value=spoiled(rollout.value),
        reward=spoiled(rollout.reward),
        bootstrap_value=spoiled(rollout.bootstrap_value),
    )


@pytest.mark.parametrize("arm", [LSTM_ARM, MLP_ARM], ids=lambda arm: arm.name)
def test_garbage_in_the_invalid_steps_changes_nothing_that_is_learned_or_reported(arm):
    """F9. Neither loss, gradient and statistics, nor a whole update: what a reset said is no experience."""
    policy, rollout = acted(arm)
    rollout = with_resets(rollout)
    by_rows = [experience_of(r, CONFIG, has_memory=arm.has_memory) for r in (rollout, with_garbage(rollout))]
    one, other = (loss_and_gradient(moved(policy), experience, CONFIG) for experience in by_rows)
    close(other, one)
    rows = len(by_rows[0].action) // 2
    (learned, stats), (same, same_stats) = (run(learner_of(policy, CONFIG), e, CONFIG, rows) for e in by_rows)
    assert np.any(learned.policy.critic.weight != policy.critic.weight)
    close(same.policy, learned.policy)
    close(same_stats, stats)


def test_every_epoch_visits_every_row_once_in_another_order():
    indices = minibatch_indices(jax.random.key(0), num_rows=12, rows_per_minibatch=3, n_epochs=3)
    epochs = np.asarray(indices).reshape(3, 12)
    np.testing.assert_array_equal(np.sort(epochs, axis=1), np.broadcast_to(np.arange(12), (3, 12)))
    assert len({tuple(epoch) for epoch in [*epochs, np.arange(12)]}) == 4
