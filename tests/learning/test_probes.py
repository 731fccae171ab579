"""Learning probes: tasks of seconds whose right answer is known, each sensitive to one link of the chain."""

import jax.numpy as jnp
import numpy as np
import pytest

from envs_for_tests import LSTM_ARM, MLP_ARM, Constant, Cue, Echo, environment, settings
from thrust_rl import ARMS, ArmConfig, TrainConfig, make, train

pytestmark = pytest.mark.learning
PLAIN = {"reward_scale": 1.0, "normalize_obs": False, "n_epochs": 4}


def values(result, obs):
    policy = result.state.learner.policy
    _, output = policy.unroll(policy.initial(), jnp.asarray(obs, jnp.float32), jnp.arange(len(obs)) == 0)
    return np.asarray(output.value)


def test_a_time_limit_does_not_shorten_the_future():
    """F4: reward ½ for ever is worth ½ / (1 − 0.9) = 5 at each of the 10 steps; taking the limit for an end
    makes it at most ½ (1 − 0.9¹⁰) / (1 − 0.9) = 3.3."""
    config = settings(updates=150, num_steps=16, gamma=0.9, clip_range_vf=None, learning_rate=3e-2, **PLAIN)
    (result,) = train(environment(Constant(0.5), max_steps=10), LSTM_ARM, config)
    np.testing.assert_allclose(values(result, np.ones((10, 1))), 5.0, atol=0.5)


def test_an_action_that_must_follow_the_observation_is_learnt():
    """Chance is 8 of 16, the best policy 16."""
    config = settings(updates=60, num_steps=16, gamma=0.0, **{**PLAIN, "batch_size": 32})
    (result,) = train(environment(Echo(), max_steps=16), MLP_ARM, config)
    assert result.curve.final > 14.0


@pytest.fixture(scope="module", name="recall")
def recall_results():
    """Both arms on a cue that was shown three steps ago."""
    ppo = {**PLAIN, "gamma": 0.9, "envs_per_minibatch": 4, "batch_size": 64}
    config = settings(updates=150, num_envs=8, num_steps=32, **ppo)
    arms = {"lstm": ArmConfig("lstm", cell="lstm", hidden_dim=16), "mlp": MLP_ARM}
    return {name: train(environment(Cue(length=4)), arm, config)[0] for name, arm in arms.items()}


def test_recall_needs_memory(recall):
    """No memoryless policy names a fair cue better than half of the time; memory does always."""
    assert recall["lstm"].curve.final > 0.95
    assert recall["mlp"].curve.final < 0.65


def test_a_reward_to_come_is_discounted_once_a_step(recall):
    """Once recall is perfect, 1 at the end of step 3 is worth 0.9³, 0.9², 0.9 and 1 at steps 0 to 3."""
    for cue in (-1.0, 1.0):
        seen = values(recall["lstm"], [[cue, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
        np.testing.assert_allclose(seen, [0.729, 0.81, 0.9, 1.0], atol=0.1)


def test_memory_helps_on_flickering_cartpole():
    """60k steps: over seeds 0 to 9 the final return was 217 to 305 with memory and 128 to 162 without."""
    config = TrainConfig(total_timesteps=61_440)
    env = make("FlickeringCartPole-v0")
    finals = {name: train(env, ARMS[name], config)[0].curve.final for name in ("lstm", "mlp")}
    assert finals["lstm"] > finals["mlp"] + 40.0
