"""Any observation and any action: environments that sample their own spaces train, and their policies act alone."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from thrust_rl.config import ArmConfig, ConfigError, PPOConfig, TrainConfig
from thrust_rl.envs.named import make
from thrust_rl.envs.task import HostTask
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.train import train

EVERYTHING = Dict(
    camera=Box(0, 255, (9, 8, 3), np.uint8),
    nested=Tuple((Discrete(4, start=2), MultiDiscrete([2, 3]), MultiBinary(3))),
    speed=Box(-np.inf, np.inf, (2, 2)),
    action_mask=MultiBinary(5),
)
CONFIG = TrainConfig(
    total_timesteps=2 * 2 * 8,
    num_envs=2,
    num_steps=8,
    window_start="stored",
    ppo=PPOConfig(n_epochs=1, envs_per_minibatch=2, batch_size=16),
)


class Sampling(gymnasium.Env):
    """Any observation, any reward; episodes of five steps. It insists on actions from its space."""

    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time = 0
        return self._obs(), {}

    def step(self, action):
        assert self.action_space.contains(action), f"{action!r} is no action of {self.action_space}"
        self.time += 1
        return self._obs(), float(self.np_random.normal()), False, self.time == 5, {}

    def _obs(self):
        obs = self.observation_space.sample()
        if isinstance(obs, dict):
            obs["action_mask"] = np.array([1, 0, 1, 1, 0], np.int8)  # of 2 + 3 alternatives
        return obs


@pytest.mark.parametrize(
    ("observations", "actions", "arm"),
    [
        (EVERYTHING, MultiDiscrete([2, 3]), ArmConfig("a", cell="lstm", hidden_dim=4, previous_action=True)),
        (Box(0, 1, ()), Box(-2.0, 3.0, (2, 2)), ArmConfig("b", cell="gru", hidden_dim=4, previous_action=True)),  # F15
        (Tuple((Discrete(9000, start=-7), MultiDiscrete([4000, 200]))), Discrete(2), ArmConfig("d", frame_stack=2)),
        (Discrete(3), MultiBinary([2, 2]), ArmConfig("c", encoder_sizes=(4,), frame_stack=2, previous_reward=True)),
    ],
)
def test_an_environment_of_any_spaces_trains_and_its_policy_is_evaluated(observations, actions, arm):
    task = HostTask("sampling", lambda: Sampling(observations, actions))
    before, after = [], []
    (result,) = train(task, arm, CONFIG, on_progress=before.append)
    assert {progress.steps for progress in before} - {0} == {16, 32}  # a slow machine gives signs of life before
    assert result.curve.episodes == 2 * 3
    leaves = jax.tree.leaves(result.state.learner.policy)
    assert leaves and all(np.isfinite(leaf).all() for leaf in leaves)
    for greedy in (False, True):
        episodes = evaluate(task, arm, CONFIG, result.state, episodes=3, greedy=greedy)
        assert episodes.length.tolist() == [5, 5, 5] and not episodes.cut.any()
        after.append(episodes.episode_return)
    np.testing.assert_allclose(after[0], after[1], rtol=1e-6)  # rewards are drawn by the environments' own seeds


def test_an_environment_that_shows_nothing_is_refused_before_it_is_stepped():
    with pytest.raises(ConfigError, match="observation_space is .*, which holds nothing"):
        train(HostTask("dark", lambda: Sampling(Dict({}), Discrete(2))), ArmConfig("e", previous_action=True), CONFIG)


def test_a_masked_pendulum_trains_with_memory_and_is_driven_within_its_bounds():
    """F17: Gaussian actions from an LSTM, with what is hidden really hidden."""
    named, driven = make("VelocityMaskedPendulum-v1"), []

    class Watching(gymnasium.ActionWrapper):
        def action(self, action):
            driven.append(np.array(action))
            return action

    task = HostTask("pendulum", lambda: Watching(named.build()))
    assert task.observation_space.shape == (2,)
    (result,) = train(task, ArmConfig("tiny", cell="lstm", hidden_dim=4), CONFIG)
    leaves = jax.tree.leaves((result.state.learner.policy, result.state.moments))
    assert leaves and all(np.isfinite(leaf).all() for leaf in leaves)
    assert len(driven) == CONFIG.total_timesteps
    assert all(task.action_space.contains(action) for action in driven)
    assert len({float(action[0]) for action in driven}) > 1
