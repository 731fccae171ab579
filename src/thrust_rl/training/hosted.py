"""Training in environments that the host steps: the updates of compiled training, window by window."""

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.envs.hosted import HostedEnvs
from thrust_rl.envs.task import AnyTask
from thrust_rl.policies.actor_critic import count_parameters
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.hosted import HostCollector
from thrust_rl.training.beating import Beating
from thrust_rl.training.curve import LearningCurve
from thrust_rl.training.keeping import Checkpoints, Keeper, kept_on_error
from thrust_rl.training.loop import TrainState, initial_learner, learn
from thrust_rl.training.ppo import Learner
from thrust_rl.training.result import Progress, TrainResult, non_finite, progress_of


def train_hosted(
    task: AnyTask,
    arm: ArmConfig,
    config: TrainConfig,
    seed: int,
    *,
    report: Callable[[Progress], None],
    checkpoints: Checkpoints | None,
) -> TrainResult:
    """Train one seed in environments that the host steps.

    Raises:
        TrainingError: a number was not finite.
        EnvError: an environment failed.
    """
    keeper = Keeper(checkpoints, task, arm, config, seed)
    found = keeper.found
    if found is not None and found.steps >= config.num_updates * config.steps_per_update:
        return found
    envs = task.start(config.num_envs)
    try:
        before = progress_of((seed,), [], 0 if found is None else found.steps // config.steps_per_update, config, 0.0)
        beating = Beating(envs, functools.partial(report, before))
        run = _Run(task, beating, arm, config, seed, found)
        with kept_on_error([keeper], lambda: [run.result()]):
            while run.stand.done < config.num_updates:
                due = keeper.updates_until_due(run.stand.done) == 1
                run.update()
                if due:
                    keeper.keep(run.result())
                progress = progress_of((seed,), [run.stand.curve], run.stand.done, config, run.seconds)
                report(progress)
                beating.heard(functools.partial(report, progress))
        keeper.keep(run.result())
    finally:
        envs.close()
    return run.result()


class _Stand(NamedTuple):
    """Where a run stands between two updates: replaced as a whole, for Ctrl-C may come at any moment."""

    learner: Learner
    moments: PyTree
    curve: LearningCurve
    done: int  # updates


class _Run:
    """One seed in the making.

    Args:
        task: what is trained in.
        envs: its environments, started.
        arm: what is trained.
        config: budget, window and PPO settings.
        seed: of the run.
        found: what it goes on from, if anything: in environments that begin anew.
    """

    def __init__(
        self,
        task: AnyTask,
        envs: HostedEnvs,
        arm: ArmConfig,
        config: TrainConfig,
        seed: int,
        found: TrainResult | None,
    ) -> None:
        self._started = time.monotonic()
        self._envs, self._config, self._seed, self._found = envs, config, seed, found
        what, self._key = Task.of(task, arm), jax.random.key(np.uint32(seed))
        learner = _first_learner(what, config, self._key) if found is None else found.state.learner
        self._first = 0 if found is None else found.steps // config.steps_per_update
        self._collector = HostCollector(
            envs,
            what,
            learner.policy,
            config,
            seed=seed,
            after=self._first * config.num_steps,
            moments=None if found is None else found.state.moments,
        )
        curve = LearningCurve() if found is None else found.curve
        self.stand = _Stand(learner, self._collector.moments, curve, self._first)
        self._learn = _compiled_learn(arm, config)
        self._seconds_compile = 0.0

    @property
    def seconds(self) -> float:
        """Of running, compiling excluded; the share of this process's first update is estimated by the others."""
        before, done = 0.0 if self._found is None else self._found.seconds_run, self.stand.done - self._first
        now = time.monotonic() - self._started
        return before + (now * done / max(done - 1, 1) if done else 0.0)

    def update(self) -> None:
        """Collect one window and learn from it.

        Raises:
            EnvError: an environment failed; the run stands where it stood.
            TrainingError: a number was not finite; likewise.
        """
        learner, _, curve, done = self.stand
        window = self._collector.collect(learner.policy)
        learner, record = self._learn(learner, window, key=self._key, update=np.int32(done))
        broken = [name for name, sound in jax.block_until_ready(record).sound.items() if not sound]
        if broken:
            raise non_finite(broken, done + 1, self._config)
        curve = curve.copy()
        curve.add((done + 1) * self._config.steps_per_update, np.asarray(record.episode_return))
        self.stand = _Stand(learner, self._collector.moments, curve, done + 1)
        if done == self._first:  # what took long in the first update was compiling
            now = time.monotonic()
            self._seconds_compile, self._started = now - self._started, now

    def result(self) -> TrainResult:
        """The run so far; the environments' own state is not in it."""
        learner, moments, curve, done = self.stand
        found, per_update = self._found, self._config.steps_per_update
        state = TrainState(learner, self._collector.actor, moments, self._key, jnp.asarray(done, jnp.int32))
        before = () if found is None else found.resumed_at
        return TrainResult(
            seed=self._seed,
            curve=curve,
            params=count_parameters(learner.policy),
            steps=done * per_update,
            seconds_compile=self._seconds_compile,
            seconds_run=self.seconds,
            state=state,
            env_restarts=self._envs.restarts() + (0 if found is None else found.env_restarts),
            resumed_at=(*before, self._first * per_update) if self._first else before,
        )


_first_learner = functools.partial(jax.jit, static_argnums=(0, 1))(initial_learner)


@functools.lru_cache(maxsize=16)
def _compiled_learn(arm: ArmConfig, config: TrainConfig):  # type: ignore[no-untyped-def]  # jit has no simple type
    return jax.jit(functools.partial(learn, arm, config))
