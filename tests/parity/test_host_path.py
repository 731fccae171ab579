"""The host path collects what the compiled path collects, and learns what it learns, for the same seed."""

import jax
import numpy as np
import pytest

from thrust_rl.config import PPOConfig, TrainConfig, arm_from
from thrust_rl.envs.registry import make
from thrust_rl.envs.task import CompiledTask
from thrust_rl.training.train import train

ENV = make("FlickeringCartPole-v0")
PPO = PPOConfig(n_epochs=2, envs_per_minibatch=2, batch_size=32, gamma=0.9)


@pytest.mark.parametrize(("arm", "window_start"), [("lstm+action+reward", "stored"), ("framestack:3", "cold")])
def test_three_updates_give_the_same_run(arm, window_start):
    config = TrainConfig(total_timesteps=3 * 4 * 32, num_envs=4, num_steps=32, window_start=window_start, ppo=PPO)
    (compiled,), (hosted,) = (train(env, arm_from(arm), config, seeds=(5,)) for env in (ENV, CompiledTask(ENV)))
    assert compiled.curve.episodes == hosted.curve.episodes > 0
    np.testing.assert_allclose(hosted.curve.mean_return, compiled.curve.mean_return, rtol=1e-6)
    learned = (hosted.state.learner.policy, compiled.state.learner.policy)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5), *learned)
    acting = [
        (run.state.actor._replace(env_state=(), episode_return=()), run.state.moments) for run in (hosted, compiled)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4), *acting)
