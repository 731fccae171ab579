"""A recorded episode is the first one of the evaluation, whoever steps it, and tells what was really there."""

import dataclasses

import jax
import numpy as np
import pytest

from thrust_rl import make
from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.envs.named import GymMaker
from thrust_rl.envs.task import HostTask
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.loop import initial_state
from thrust_rl.training.record import MAX_NUMBERS, record

CONFIG = TrainConfig(total_timesteps=128, num_envs=4, num_steps=32)
ARM = ArmConfig("tiny", cell="lstm", hidden_dim=4, previous_action=True)


@pytest.fixture(scope="module")
def flickering():
    env = make("FlickeringCartPole-v0")
    return env, jax.jit(initial_state, static_argnums=(0, 1, 2))(env, ARM, CONFIG, np.uint32(0))


def test_it_is_the_first_evaluation_episode(flickering):
    env, state = flickering
    kept = record(env, ARM, CONFIG, state)
    played = evaluate(env, ARM, CONFIG, state, episodes=3)
    assert len(kept.reward) == played.length[0] == played.episode_return[0] == kept.reward.sum()


def test_it_is_cut_where_the_evaluation_cuts(flickering):
    env, state = flickering
    whole, kept = record(env, ARM, CONFIG, state), record(env, ARM, CONFIG, state, max_steps=5)
    played = evaluate(env, ARM, CONFIG, state, episodes=3, max_steps=5)
    assert len(kept.reward) == played.length[0] == 5 < len(whole.reward)
    np.testing.assert_array_equal(kept.obs, whole.obs[:5])
    np.testing.assert_array_equal(kept.state, whole.state[:5])


def test_what_was_blank_is_zero_and_the_rest_is_the_true_state(flickering):
    kept = record(*flickering[:1], ARM, CONFIG, flickering[1])
    assert 0 < kept.blank.sum() < len(kept.blank)
    assert (kept.obs[kept.blank] == 0).all()
    np.testing.assert_array_equal(kept.obs[~kept.blank], kept.state[~kept.blank])


def test_two_policies_meet_the_same_stream(flickering):
    env, state = flickering
    one, two = record(env, ARM, CONFIG, state), record(env, ARM, CONFIG, state, greedy=True)
    both = min(len(one.blank), len(two.blank))
    np.testing.assert_array_equal(one.state[0], two.state[0])
    np.testing.assert_array_equal(one.blank[:both], two.blank[:both])
    assert len(one.blank) != len(two.blank) or (one.action != two.action).any(), "they are two"


def test_a_host_environment_is_recorded_without_a_hidden_state(flickering):
    task = HostTask("CartPole-v1", GymMaker("CartPole-v1", observe=("flicker:0.5",)))
    _, state = flickering  # the same spaces, so the same policy
    kept = record(task, ARM, CONFIG, state)
    played = evaluate(task, ARM, dataclasses.replace(CONFIG, num_envs=2), state, episodes=1)
    assert kept.state is None
    assert len(kept.reward) == played.length[0] and kept.blank.any()
    assert MAX_NUMBERS >= kept.obs.shape[1] == 4
