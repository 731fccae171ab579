"""Windows that cannot fit are refused with their size, wherever a run begins."""

import gymnasium
import jax
import numpy as np
import pytest

from thrust_rl.config import ConfigError, TrainConfig, arm_from
from thrust_rl.envs.actions import action_spec
from thrust_rl.envs.named import make
from thrust_rl.envs.spaces import obs_spec
from thrust_rl.experiment.plan import Options, plan
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.footprint import NOTED, machine_memory, require_fits, window_bytes
from thrust_rl.training.train import train

SMALL = TrainConfig(total_timesteps=32, num_envs=4, num_steps=8)
HUGE = TrainConfig(total_timesteps=10**12, num_envs=10**7, num_steps=10**4)


SPACE = gymnasium.spaces.Dict(
    where=gymnasium.spaces.Discrete(3), picture=gymnasium.spaces.Box(0, 255, (8, 8, 3), "uint8")
)
FRAME = obs_spec(SPACE)


@pytest.mark.parametrize("name", ["lstm", "framestack:3"])
def test_a_window_takes_what_its_arrays_take(name):
    arm = arm_from(name)
    arrays = jax.tree.leaves(
        Task(arm, FRAME, action_spec(SPACE["where"])).inputs.zeros(SMALL.num_envs, SMALL.num_steps)
    )
    frames = sum(np.asarray(array).nbytes for array in arrays)
    assert window_bytes(FRAME, arm, SMALL) == frames + NOTED * SMALL.num_envs * SMALL.num_steps


def test_the_limit_is_the_memory_that_there_is():
    arm = arm_from("framestack:2")
    size = window_bytes(FRAME, arm, SMALL)
    require_fits(FRAME, arm, SMALL, memory=2 * size + 1)
    with pytest.raises(ConfigError, match=r"a window of framestack:2 takes .* 420 bytes each.*or the frame stack"):
        require_fits(FRAME, arm, SMALL, memory=2 * size)
    assert machine_memory() is None or machine_memory() > 2**28


@pytest.mark.parametrize("name", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_training_and_plans_refuse_what_cannot_fit(name):
    with pytest.raises(ConfigError, match="10,000,000 environments"):
        train(make(name), "mlp", HUGE)
    with pytest.raises(ConfigError, match="10,000,000 environments"):
        plan(name, Options(arms=["mlp"], config=HUGE))
