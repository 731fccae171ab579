"""`train`: one arm on one environment, once per seed, whoever steps the environment."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from thrust_rl.config import ArmConfig, TrainConfig, arm_from, require
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.spaces import obs_spec
from thrust_rl.envs.task import AnyTask
from thrust_rl.envs.tasks_only import require_task
from thrust_rl.rollout.footprint import require_fits
from thrust_rl.training.compiled import train_compiled
from thrust_rl.training.hosted import train_hosted
from thrust_rl.training.keeping import Checkpoints
from thrust_rl.training.result import Progress, TrainResult


def train(
    env: FunctionalEnv | AnyTask,
    arm: str | ArmConfig,
    config: TrainConfig | None = None,
    *,
    seeds: Sequence[int] = (0,),
    on_progress: Callable[[Progress], None] | None = None,
    vectorize_seeds: bool | None = None,
    checkpoints: Checkpoints | str | Path | None = None,
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
        checkpoints: a folder, or `Checkpoints`: every run is written there now and then, at its end, and when something
            ends it before. A run whose file is there goes on from it: bit for bit in a compiled environment; host
            environments begin anew, which `resumed_at` of the result tells.

    Raises:
        TypeError: `env` is no environment of the library and no task, or `seeds` no sequence.
        ConfigError: a setting breaks a rule, or a checkpoint is damaged or of another run.
        TrainingError: a non-finite number appeared; the message names the update and the quantity.
        EnvError: a host environment failed; the message names the environment, its step and the fault.

    Example:
        >>> from thrust_rl import TrainConfig, make, train
        >>> config = TrainConfig(total_timesteps=256, num_envs=4, num_steps=32)
        >>> [result] = train(make("CartPole-v1"), "lstm", config)
        >>> result.steps, result.params
        (256, 17859)
    """
    require_task(env)
    _require_seeds(seeds)
    arm, config = arm_from(arm), config or TrainConfig()
    config.rows_per_minibatch(arm)
    require_fits(obs_spec(env.observation_space), arm, config)
    report = on_progress or (lambda progress: None)
    kept = Checkpoints(checkpoints) if isinstance(checkpoints, str | Path) else checkpoints
    if not isinstance(kept, Checkpoints | None):
        raise TypeError(f"checkpoints is a {type(kept).__name__}: give a folder, or Checkpoints(folder, every=...)")
    seeds = tuple(map(int, seeds))  # NumPy's too
    if not isinstance(env, FunctionalEnv):
        return [train_hosted(env, arm, config, seed, report=report, checkpoints=kept) for seed in seeds]
    vectorized = jax.default_backend() != "cpu" if vectorize_seeds is None else vectorize_seeds
    groups = [tuple(seeds)] if vectorized else [(seed,) for seed in seeds]
    return [
        result
        for group in groups
        for result in train_compiled(env, arm, config, group, vectorized=vectorized, report=report, checkpoints=kept)
    ]


def _require_seeds(seeds: Any) -> None:
    try:
        count = len(seeds)
    except TypeError:
        raise TypeError(
            f"seeds is {seeds!r} ({type(seeds).__name__}): give a sequence, such as [0] or range(5)"
        ) from None
    require(count > 0, "seeds is empty: give at least one")
