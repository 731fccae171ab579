"""Training in environments that the host steps: the updates of compiled training, window by window."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.envs.hosted import HostedEnvs
from thrust_rl.policies.inputs import Spaces, Task
from thrust_rl.rollout.hosted import HostCollector
from thrust_rl.training.loop import TrainState, UpdateRecord, initial_learner, learn


class HostedRun:
    """One seed in the making.

    Args:
        spaces: of one environment.
        envs: the environments, started.
        arm: what to train.
        config: budget, window and PPO settings.
        seed: of the run.
    """

    def __init__(self, spaces: Spaces, envs: HostedEnvs, arm: ArmConfig, config: TrainConfig, seed: int) -> None:
        task = Task.of(spaces, arm)
        self._key = jax.random.key(np.uint32(seed))
        self._learner = _first_learner(task, config, self._key)
        self._collector = HostCollector(envs, task, self._learner.policy, config, seed=seed)
        self._learn = _compiled_learn(arm, config)
        self._done = 0

    def update(self) -> UpdateRecord:
        """Collect one window and learn from it.

        Raises:
            EnvError: an environment failed.
        """
        window = self._collector.collect(self._learner.policy)
        self._learner, record = self._learn(self._learner, window, key=self._key, update=np.int32(self._done))
        self._done += 1
        return jax.block_until_ready(record)

    @property
    def state(self) -> TrainState:
        """What training is, as one pytree; the environments' own state is not in it."""
        actor, moments = self._collector.actor, self._collector.moments
        return TrainState(self._learner, actor, moments, self._key, jnp.asarray(self._done, jnp.int32))


_first_learner = functools.partial(jax.jit, static_argnums=(0, 1))(initial_learner)


@functools.lru_cache(maxsize=16)
def _compiled_learn(arm: ArmConfig, config: TrainConfig):  # type: ignore[no-untyped-def]  # jit has no simple type
    return jax.jit(functools.partial(learn, arm, config))
