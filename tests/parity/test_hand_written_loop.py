"""A loop written by hand from the objects is the packaged training: same rollouts, same parameters."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.config import ARMS, PPOConfig, TrainConfig
from thrust_rl.envs.pool import EnvPool
from thrust_rl.envs.registry import make
from thrust_rl.envs.stateful import StatefulEnv
from thrust_rl.maths.keys import environment_keys
from thrust_rl.policies.actor_critic import ActorCritic
from thrust_rl.policies.configs import LSTMConfig, MLPConfig
from thrust_rl.policies.facades import LSTMPolicy, MLPPolicy, sample_actions
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.buffers import RecurrentRolloutBuffer, RolloutBuffer
from thrust_rl.rollout.collect import collect
from thrust_rl.rollout.normalizers import ObsNormalizer
from thrust_rl.training.learning_rate import annealed_learning_rate
from thrust_rl.training.loop import initial_state, train_update
from thrust_rl.training.trainers import PPOTrainer, RecurrentPPOTrainer
from thrust_rl.types import Rollout

SEED = 5
UPDATES = 3
ENV = dataclasses.replace(make("FlickeringCartPole-v0"), max_steps=10)
LEARNING_RATE = 1e-3


class Run(NamedTuple):
    """What a run leaves: a rollout per window, the parameters at the end, the episodes."""

    rollouts: list[Rollout]
    policy: ActorCritic
    episodes: int


def settings(window_start):
    ppo = PPOConfig(n_epochs=2, envs_per_minibatch=2, batch_size=16, learning_rate=LEARNING_RATE)
    return TrainConfig(total_timesteps=UPDATES * 4 * 24, num_envs=4, num_steps=24, window_start=window_start, ppo=ppo)


def packaged(arm, config):
    """The packaged training, one update at a time, with each window collected once more to look at it."""
    state = initial_state(ENV, arm, config, jnp.asarray(SEED, jnp.uint32))
    streams = environment_keys(state.key, config.num_envs)
    look = jax.jit(
        lambda s: collect(
            ENV,
            Task.of(ENV, arm),
            s.learner.policy,
            s.actor,
            s.moments,
            streams,
            first_step=s.update * config.num_steps,
            config=config,
        )[2]
    )
    advance = jax.jit(lambda s: train_update(ENV, arm, config, s))
    rollouts, episodes = [], 0
    for _ in range(UPDATES):
        rollouts.append(look(state).rollout)
        state, record = advance(state)
        episodes += int((~np.isnan(record.episode_return)).sum())
    return Run(rollouts, state.learner.policy, episodes)


def recurrent_by_hand(config, window_start, zero_rows):
    """The recurrent loop; memory is forgotten by the flag, or by zeroing rows as the specification does."""
    pool = EnvPool(lambda: StatefulEnv(ENV), config.num_envs, seed=SEED)
    policy = LSTMPolicy(4, 2, LSTMConfig(seed=SEED))
    trainer = RecurrentPPOTrainer(config.ppo, policy)
    normalizer = ObsNormalizer(4)
    buffer = RecurrentRolloutBuffer(config.num_steps, config.num_envs, 4, 64)
    obs = normalizer.normalize(pool.reset())
    opens, state, rollouts = np.ones(config.num_envs, bool), policy.empty_memory(config.num_envs), []
    for update in range(UPDATES):
        buffer.reset()
        if window_start == "cold":
            state = policy.empty_memory(config.num_envs)
        for t in range(config.num_steps):
            buffer.add_recurrent_state(t, slice(None), *state)
            flags = None if zero_rows else opens
            logits, values, state = policy.forward_step(obs, state, episode_start=flags)
            actions, log_probs = sample_actions(logits, seed=SEED, step=update * config.num_steps + t)
            result = pool.step(actions)
            successors = normalizer.normalize(pool.reset_where(result.over))
            final_values = None
            if result.truncated.any():
                final = normalizer.normalize(result.obs, update=False)
                final_values = policy.forward_step(final, state)[1]
            rewards = result.reward * config.ppo.reward_scale
            over = result.terminated, result.truncated
            buffer.add(t, obs, actions, rewards, values, log_probs, *over, final_values)
            trainer.increment_episodes(int(result.over.sum()))
            obs, opens = successors, result.over
            if zero_rows:
                state.hidden[result.over] = 0.0
                state.cell[result.over] = 0.0
        last_values = policy.forward_step(obs, state, episode_start=opens)[1]
        buffer.compute_advantages(last_values, config.ppo.gamma, config.ppo.gae_lambda)
        rollouts.append(buffer.rollout)
        trainer.set_learning_rate(annealed_learning_rate(LEARNING_RATE, update=update, num_updates=UPDATES))
        trainer.train_step(buffer)
        buffer.seed_warm_start(config.num_steps - 1, *state)
    return Run(rollouts, policy.module, trainer.total_episodes)


def memoryless_by_hand(config):
    pool = EnvPool(lambda: StatefulEnv(ENV), config.num_envs, seed=SEED)
    policy = MLPPolicy(4, 2, MLPConfig(seed=SEED))
    trainer = PPOTrainer(config.ppo, policy)
    normalizer = ObsNormalizer(4)
    buffer = RolloutBuffer(config.num_steps, config.num_envs, 4)
    obs = normalizer.normalize(pool.reset())
    rollouts = []
    for update in range(UPDATES):
        buffer.reset()
        for t in range(config.num_steps):
            actions, log_probs, values = policy.get_action(obs)
            result = pool.step(actions)
            successors = normalizer.normalize(pool.reset_where(result.over))
            final_values = None
            if result.truncated.any():
                final_values = policy.predict_values(normalizer.normalize(result.obs, update=False))
            rewards = result.reward * config.ppo.reward_scale
            over = result.terminated, result.truncated
            buffer.add(t, obs, actions, rewards, values, log_probs, *over, final_values)
            trainer.increment_episodes(int(result.over.sum()))
            obs = successors
        buffer.compute_advantages(policy.predict_values(obs), config.ppo.gamma, config.ppo.gae_lambda)
        rollouts.append(buffer.rollout)
        trainer.set_learning_rate(annealed_learning_rate(LEARNING_RATE, update=update, num_updates=UPDATES))
        trainer.train_step(buffer)
    return Run(rollouts, policy.module, trainer.total_episodes)


def assert_same_run(mine, theirs):
    assert mine.episodes == theirs.episodes
    for rollout, expected in zip(mine.rollouts, theirs.rollouts, strict=True):
        assert_same_rollout(rollout, expected)
    for mine_leaf, leaf in zip(jax.tree.leaves(mine.policy), jax.tree.leaves(theirs.policy), strict=True):
        np.testing.assert_allclose(mine_leaf, leaf, rtol=0, atol=2e-5)


def assert_same_rollout(rollout, expected):
    for name in ("action", "episode_start", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(rollout, name), getattr(expected, name), err_msg=name)
    for name in ("obs", "log_prob", "value", "reward"):
        np.testing.assert_allclose(getattr(rollout, name), getattr(expected, name), rtol=0, atol=1e-5, err_msg=name)
    read = np.array(expected.truncated)
    read[:, -1] = ~np.asarray(expected.terminated)[:, -1]
    bootstrap = np.asarray(rollout.bootstrap_value)[read], np.asarray(expected.bootstrap_value)[read]
    np.testing.assert_allclose(*bootstrap, rtol=0, atol=1e-5)


@pytest.mark.parametrize("zero_rows", [False, True], ids=["by-flag", "by-hand"])
@pytest.mark.parametrize("window_start", ["cold", "stored"])
def test_recurrent_loop_is_packaged_training(window_start, zero_rows):
    config = settings(window_start)
    theirs = packaged(ARMS["lstm"], config)
    mine = recurrent_by_hand(config, window_start, zero_rows)
    assert_same_run(mine, theirs)
    # Beyond the parity itself: the run held what could have gone wrong.
    truncated = np.stack([r.truncated for r in mine.rollouts])
    terminated = np.stack([r.terminated for r in mine.rollouts])
    starts = np.stack([r.episode_start for r in mine.rollouts])
    assert truncated[:, :, :-1].any() and terminated.any()
    assert starts[:, :, 1:].any() and not starts[1:, :, 0].all()
    warm = [np.abs(r.memory.hidden).max() > 0 for r in mine.rollouts]
    assert warm == ([False] * 3 if window_start == "cold" else [False, True, True])


def test_memoryless_loop_is_packaged_training():
    config = settings("cold")
    theirs = packaged(ARMS["mlp"], config)
    mine = memoryless_by_hand(config)
    assert_same_run(mine, theirs)
    assert np.stack([r.truncated for r in mine.rollouts]).any()
