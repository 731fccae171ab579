"""Action masks of compiled environments: obeyed, and a mask that leaves a choice nothing ends the run as what it is."""

import dataclasses

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from envs_for_tests import FOREVER
from thrust_rl.config import ArmConfig, PPOConfig, TrainConfig
from thrust_rl.envs.core import FullyObserved, FunctionalEnv
from thrust_rl.envs.task import CompiledTask
from thrust_rl.training.result import TrainingError
from thrust_rl.training.train import train

CONFIG = TrainConfig(total_timesteps=3 * 8, num_envs=2, num_steps=4, ppo=PPOConfig(n_epochs=1, batch_size=8))
ARM = ArmConfig("tiny", encoder_sizes=(4,), frame_stack=2)


@dataclasses.dataclass(frozen=True)
class Narrowing:
    """Two choices, of 2 and of 3; from one time on the first has no alternative. Pays for what it forbade."""

    empty_from: int
    observation_space = gymnasium.spaces.Dict(
        time=gymnasium.spaces.Box(0.0, np.inf, (1,)), action_mask=gymnasium.spaces.MultiBinary(5)
    )
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def init(self, key):
        return jnp.zeros(())

    def step(self, key, time, action):
        is_forbidden = (action[0] != 1) | (action[1] == 1)
        return time + 1, jnp.where(is_forbidden, 1.0, 0.0), jnp.zeros((), bool)

    def observe(self, time):
        left = jnp.array([False, True, True, False, True])
        return {"time": time[None], "action_mask": left & ((time < self.empty_from) | (jnp.arange(5) > 1))}


def trained(empty_from, *, compiled, max_steps=3):
    env = FunctionalEnv("Narrowing", Narrowing(empty_from), FullyObserved(), max_steps=max_steps)
    return train(env if compiled else CompiledTask(env), ARM, CONFIG)[0]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_choice_without_an_alternative_is_said_to_be_that(compiled):
    said = r"^action masks that leave some choice no alternative at update 2 of 3: allow one of every choice"
    with pytest.raises(TrainingError, match=said):
        trained(5, compiled=compiled, max_steps=FOREVER)


def test_nobody_acts_on_a_final_frame_so_its_mask_may_be_empty():
    """And no masked action is ever drawn: those alone are paid for."""
    result = trained(3, compiled=True)
    assert result.curve.episodes == 2 * 4 and result.curve.final == 0.0
