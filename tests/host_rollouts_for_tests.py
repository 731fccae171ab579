"""Windows of acting in environments that the host steps, as a first policy sees them."""

import jax
import numpy as np

from host_envs_for_tests import Telling
from thrust_rl.config import ArmConfig, PPOConfig, TrainConfig
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.hosted import HostCollector
from thrust_rl.training.loop import initial_learner

ARM = ArmConfig("tiny", cell="lstm", hidden_dim=6, previous_action=True, previous_reward=True)
CONFIG = TrainConfig(
    total_timesteps=48,
    num_envs=3,
    num_steps=16,
    window_start="stored",
    ppo=PPOConfig(normalize_obs=False, reward_scale=0.01, envs_per_minibatch=3),
)


class Mixed(Telling):
    """Some episodes terminate, some are truncated, by the tag."""

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        self.ends, self.limit = (3, 9) if self.tag < 0.5 else (9, 4)
        return obs, info


def acted(task, config=CONFIG, *, windows=1, scale=3.0, held=None):
    """The windows of a first policy, and the moments afterwards.

    The policy's numbers are multiplied by `scale`, so that what it sees decides what it does; 0 is blind. Moments that
    are to be `held` are those to begin with, and of so many frames that no further one moves them.
    """
    envs = task.start(config.num_envs)
    what = Task.of(task, ARM)
    policy = jax.jit(initial_learner, static_argnums=(0, 1))(what, config, jax.random.key(3)).policy
    policy = jax.tree.map(lambda leaf: scale * leaf, policy)
    try:
        collector = HostCollector(envs, what, policy, config, seed=3, moments=held)
        seen = [jax.tree.map(np.asarray, collector.collect(policy)) for _ in range(windows)]
        return seen, jax.tree.map(np.asarray, collector.moments)
    finally:
        envs.close()


def collected(task, **options):
    """The windows alone."""
    return acted(task, **options)[0]
