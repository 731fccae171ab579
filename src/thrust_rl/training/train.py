"""`train`: run compiled chunks one after the other, with progress, curves and stopping in between."""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from thrust_rl.config import ArmConfig, TrainConfig, arm_from, require
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.spaces import obs_spec
from thrust_rl.envs.task import AnyTask
from thrust_rl.policies.actor_critic import count_parameters
from thrust_rl.rollout.footprint import require_fits
from thrust_rl.training.beating import Beating
from thrust_rl.training.curve import LearningCurve
from thrust_rl.training.hosted import HostedRun
from thrust_rl.training.loop import CHUNK_CAPACITY, TrainState, UpdateRecord, initial_state, train_chunk

Tree = TypeVar("Tree")

CHUNK_SECONDS = 1.0  # how long one compiled call should take: progress and Ctrl-C wait for it


class TrainingError(RuntimeError):
    """Training cannot go on; the message says at which update and why."""


class Progress(NamedTuple):
    """Where a run stands after a chunk."""

    seeds: tuple[int, ...]
    steps: int  # environment steps done, per seed
    total_steps: int
    mean_return: float | None  # of the last ≤100 episodes, mean over the seeds
    seconds: float  # running so far, compiling excluded


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """What training one seed gave."""

    seed: int
    curve: LearningCurve
    params: int  # trainable scalars
    steps: int  # environment steps
    seconds_compile: float  # 0 where the program was compiled before
    seconds_run: float
    state: TrainState  # final; `state.learner.policy` is the trained policy
    env_restarts: int = 0  # host environments that failed and were replaced

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second of running."""
        return self.steps / self.seconds_run


class _Program(NamedTuple):
    """The two compiled functions of training, and what compiling them took."""

    init: Callable[..., TrainState]
    chunk: Callable[..., tuple[TrainState, UpdateRecord]]
    seconds: float


def train(
    env: FunctionalEnv | AnyTask,
    arm: str | ArmConfig,
    config: TrainConfig | None = None,
    *,
    seeds: Sequence[int] = (0,),
    on_progress: Callable[[Progress], None] | None = None,
    vectorize_seeds: bool | None = None,
) -> list[TrainResult]:
    """Train one arm on one environment, once per seed.

    Args:
        env: a compiled environment, for example `make("FlickeringCartPole-v0")`, or one that the host steps, for
            example `make("gymnasium:CartPole-v1")`.
        arm: a preset's name or an `ArmConfig`.
        config: budget, window and PPO settings.
        seeds: every seed gives an independent run, reproducible bit for bit on one machine.
        on_progress: called after every compiled chunk, about once a second, and within a long window of host
            environments now and then; what it raises ends the training.
        vectorize_seeds: run all seeds in one compiled program. None does so on accelerators; on a CPU, where it gains
            nothing, seeds run one after the other through the same compiled program. Host environments always do.

    Raises:
        ConfigError: a setting breaks a rule.
        TrainingError: a non-finite number appeared; the message names the update and the quantity.
        EnvError: a host environment failed; the message names the environment, its step and the fault.

    Example:
        >>> from thrust_rl import TrainConfig, make, train
        >>> config = TrainConfig(total_timesteps=256, num_envs=4, num_steps=32)
        >>> [result] = train(make("CartPole-v1"), "lstm", config)
        >>> result.steps, result.params
        (256, 17859)
    """
    arm, config = arm_from(arm), config or TrainConfig()
    require(len(seeds) > 0, "seeds is empty: give at least one")
    config.rows_per_minibatch(arm)
    require_fits(obs_spec(env.observation_space), arm, config)
    report = on_progress or (lambda progress: None)
    if not isinstance(env, FunctionalEnv):
        return [_train_hosted(env, arm, config, seed, report) for seed in seeds]
    vectorize = jax.default_backend() != "cpu" if vectorize_seeds is None else vectorize_seeds
    groups = [tuple(seeds)] if vectorize else [(seed,) for seed in seeds]
    return [result for group in groups for result in _train_group(env, arm, config, group, vectorize, report)]


def _train_group(
    env: FunctionalEnv,
    arm: ArmConfig,
    config: TrainConfig,
    seeds: tuple[int, ...],
    vectorized: bool,
    report: Callable[[Progress], None],
) -> list[TrainResult]:
    """Train the seeds of one program; leaves have a leading seed axis where it is vectorized."""
    compiled_before = _compiled.cache_info().hits
    program = _compiled(env, arm, config, len(seeds) if vectorized else None)
    seconds_compile = 0.0 if _compiled.cache_info().hits > compiled_before else program.seconds
    started = time.monotonic()
    curves = [LearningCurve() for _ in seeds]
    state = program.init(jnp.asarray(seeds if vectorized else seeds[0], jnp.uint32))
    done, length = 0, 1
    while done < config.num_updates:
        chunk_started = time.monotonic()
        length = min(length, config.num_updates - done)
        state, records = jax.block_until_ready(program.chunk(state, jnp.asarray(length, jnp.int32)))
        _take_in(records, length, curves, done, config, vectorized)
        done += length
        now = time.monotonic()
        report(_progress(seeds, curves, done, config, now - started))
        length = max(1, min(CHUNK_CAPACITY, int(length * CHUNK_SECONDS / max(now - chunk_started, 1e-3))))
    seconds_run = time.monotonic() - started
    states = [_of_seed(state, i) for i in range(len(seeds))] if vectorized else [state]
    return [
        TrainResult(
            seed=seed,
            curve=curve,
            params=count_parameters(final.learner.policy),
            steps=config.num_updates * config.steps_per_update,
            seconds_compile=seconds_compile,
            seconds_run=seconds_run,
            state=final,
        )
        for seed, curve, final in zip(seeds, curves, states, strict=True)
    ]


@functools.lru_cache(maxsize=8)
def _compiled(env: FunctionalEnv, arm: ArmConfig, config: TrainConfig, num_seeds: int | None) -> _Program:
    """Compile training for these settings; `num_seeds` adds a leading seed axis everywhere."""
    started = time.monotonic()
    init = functools.partial(initial_state, env, arm, config)
    chunk = functools.partial(train_chunk, env, arm, config)
    seed_shape = () if num_seeds is None else (num_seeds,)
    mapped_init: Callable[..., Any] = init if num_seeds is None else jax.vmap(init)
    mapped_chunk: Callable[..., Any] = chunk if num_seeds is None else jax.vmap(chunk, in_axes=(0, None))
    seed = jax.ShapeDtypeStruct(seed_shape, jnp.uint32)
    state = jax.eval_shape(mapped_init, seed)
    compiled_init = jax.jit(mapped_init).lower(seed).compile()
    compiled_chunk = jax.jit(mapped_chunk).lower(state, jax.ShapeDtypeStruct((), jnp.int32)).compile()
    return _Program(compiled_init, compiled_chunk, time.monotonic() - started)


def _train_hosted(
    env: AnyTask, arm: ArmConfig, config: TrainConfig, seed: int, report: Callable[[Progress], None]
) -> TrainResult:
    """Train one seed in environments that the host steps."""
    curve, started = LearningCurve(), time.monotonic()
    envs = env.start(config.num_envs)
    try:
        beating = Beating(envs, functools.partial(report, _progress((seed,), [curve], 0, config, 0.0)))
        run = HostedRun(env, beating, arm, config, seed)
        seconds_compile = time.monotonic() - started
        for done in range(config.num_updates):
            record = run.update()
            _take_in(jax.tree.map(lambda leaf: np.asarray(leaf)[None], record), 1, [curve], done, config, False)
            if done == 0:  # what took long in the first update was compiling
                seconds_compile, started = time.monotonic() - started, time.monotonic()
            progress = _progress((seed,), [curve], done + 1, config, time.monotonic() - started)
            report(progress)
            beating.heard(functools.partial(report, progress))
        restarts = envs.restarts()
    finally:
        envs.close()
    learned = max(config.num_updates - 1, 1) / config.num_updates
    steps = config.num_updates * config.steps_per_update
    return TrainResult(
        seed=seed,
        curve=curve,
        params=count_parameters(run.state.learner.policy),
        steps=steps,
        seconds_compile=seconds_compile,
        seconds_run=(time.monotonic() - started) / learned,  # the first update's share is estimated by the others
        state=run.state,
        env_restarts=restarts,
    )


def _take_in(
    records: UpdateRecord,
    length: int,
    curves: list[LearningCurve],
    done: int,
    config: TrainConfig,
    vectorized: bool,
) -> None:
    """Extend the curves by one chunk; stop at the first update that was not finite."""
    for index, curve in enumerate(curves):
        mine = _of_seed(records, index) if vectorized else records
        finite = {name: np.asarray(flags) for name, flags in mine.finite.items()}
        episode_return = np.asarray(mine.episode_return)
        for i in range(length):
            broken = [name for name, flags in finite.items() if not flags[i]]
            if broken:
                raise TrainingError(
                    f"non-finite {' and '.join(broken)} at update {done + i + 1} of {config.num_updates}:"
                    " lower the learning rate, or check the environment's observations and rewards"
                )
            curve.add((done + i + 1) * config.steps_per_update, episode_return[i])


def _of_seed(tree: Tree, index: int) -> Tree:
    """One seed's share of a tree with a leading seed axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _progress(
    seeds: tuple[int, ...], curves: list[LearningCurve], done: int, config: TrainConfig, seconds: float
) -> Progress:
    returns = [curve.final for curve in curves if curve.final is not None]
    return Progress(
        seeds=seeds,
        steps=done * config.steps_per_update,
        total_steps=config.num_updates * config.steps_per_update,
        mean_return=float(np.mean(returns)) if returns else None,
        seconds=seconds,
    )
