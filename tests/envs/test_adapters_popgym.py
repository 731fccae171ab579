"""POPGym behind `popgym:`: every kind of space trains, and the hidden state is known as the twin."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from thrust_rl.config import ConfigError, PPOConfig, TrainConfig, arm_from
from thrust_rl.envs.actions import action_spec
from thrust_rl.envs.adapters.popgym import popgym_ids
from thrust_rl.envs.named import make, twin_of_task
from thrust_rl.envs.spaces import obs_spec
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.train import train

pytest.importorskip("popgym", reason="POPGym is not installed: pip install 'thrust-rl[popgym]'")


def easy():
    return [name for name in popgym_ids() if name.endswith("Easy-v0")]


def test_all_of_them_are_there():
    assert len(easy()) == 16  # the two labyrinths among them, which need mazelib
    assert len(popgym_ids()) == 48


# POPGym's labyrinths warn that they can be solved without memory.
@pytest.mark.filterwarnings("ignore:Maze environments have been shown:DeprecationWarning")
def test_observations_and_hidden_states_can_be_read():
    """Every easy one, seen and fully observed: some steps stay in spaces that policies read."""
    for name in easy():
        task = make(f"popgym:{name}")
        for one in (task, twin_of_task(task)):
            env = one.build()
            env.action_space.seed(0)
            obs, _ = env.reset(seed=0)
            spec = obs_spec(one.observation_space)
            assert action_spec(one.action_space).num_outputs >= 1
            for _ in range(20):
                assert env.observation_space.contains(obs), (one.name, obs)
                for part, leaf in zip(spec.parts, spec.leaves(obs), strict=True):
                    assert part.take(leaf).shape == part.shape
                obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
                if terminated or truncated:
                    break


def test_the_twin_shows_the_cards_that_have_to_be_remembered():
    task = make("popgym:popgym-RepeatPreviousEasy-v0")
    assert task.observation_space == gymnasium.spaces.Discrete(4)
    seen, shown = task.build(), twin_of_task(task).build()
    suits = [seen.reset(seed=5)[0]]
    cards, _ = shown.reset(seed=5)[0]
    for _ in range(10):
        suits.append(seen.step(0)[0])
        (cards, _), *_ = shown.step(0)
    assert cards.tolist() == suits[-4:]  # the last four, which no single observation shows


def test_a_twin_has_no_twin_and_observation_models_are_left_out_of_it():
    task = make("popgym:popgym-PositionOnlyPendulumEasy-v0", observe="noise:0.1")
    assert task.observation_space.shape == (2,)
    twin = twin_of_task(task)
    assert twin.observation_space.shape == (3,)
    assert twin_of_task(twin) is None


def test_the_name_says_whose_it_is():
    assert make("popgym-HigherLowerEasy-v0").observation_space == gymnasium.spaces.Discrete(13)
    with pytest.raises(ConfigError, match="did you mean 'popgym-HigherLowerEasy-v0'"):
        make("popgym:popgym-HigherLowerEazy-v0")


@pytest.mark.parametrize(
    ("name", "twin", "arm"),
    [
        ("popgym-BattleshipEasy-v0", False, "gru+action"),  # Discrete, MultiDiscrete actions
        ("popgym-CountRecallEasy-v0", True, "mlp"),  # a Tuple of Box and MultiDiscrete
    ],
)
def test_they_train_and_are_evaluated(name, twin, arm):
    config = TrainConfig(total_timesteps=256, num_envs=2, num_steps=64, ppo=PPOConfig(n_epochs=1, envs_per_minibatch=2))
    task = make(f"popgym:{name}")
    task = twin_of_task(task) if twin else task
    [result] = train(task, arm, config)
    assert result.curve.episodes == 4
    episodes = evaluate(task, arm_from(arm), config, result.state, episodes=2)
    assert not episodes.cut.any() and np.isfinite(episodes.episode_return).all()


def test_a_missing_package_is_named_with_its_extra():
    code = """
import sys
sys.modules |= {"popgym": None, "minigrid": None, "gymnax": None}  # as if they were not installed
from thrust_rl.config import ConfigError
from thrust_rl.envs.adapters import adapter_names
from thrust_rl.envs.named import make
for name in ("popgym:popgym-HigherLowerEasy-v0", "minigrid:MiniGrid-MemoryS7-v0", "gymnax:Pong-misc"):
    package = name.partition(":")[0]
    remedy = f"pip install 'thrust-rl[{package}]'"
    assert remedy in adapter_names()[package]
    try:
        make(name)
    except ConfigError as error:
        assert remedy in str(error), error
    else:
        raise AssertionError(f"{name} was made")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
