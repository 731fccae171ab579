"""What a comparison is going to run: a `Comparison` in which no seed has finished yet, and its jobs."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from thrust_rl.config import ArmConfig, ConfigError, TrainConfig, require
from thrust_rl.envs.host import OnEnvError
from thrust_rl.envs.spaces import obs_spec
from thrust_rl.envs.tasks_only import require_name
from thrust_rl.envs.workers import STEP_TIMEOUT, require_environments_for
from thrust_rl.experiment.arms import arm_named
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionName, ConditionResult, TaskResult
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, Job
from thrust_rl.experiment.matching import matched, parameters
from thrust_rl.experiment.scale import MIN_EFFECT
from thrust_rl.files import machine, versions
from thrust_rl.rollout.footprint import require_fits

MAX_SEED = 2**32 - 1


@dataclasses.dataclass(frozen=True)
class Options:
    """What `compare` was asked for, beside the environments."""

    arms: Sequence[str | ArmConfig] = ("lstm", "mlp")
    seeds: int = 10
    seed: int = 0
    config: TrainConfig | None = None
    env_params: Mapping[str, Any] | None = None
    observe: str | Sequence[str] = ()
    env_workers: int = 0
    on_env_error: OnEnvError = "stop"
    check_range: bool = True
    step_timeout: float = STEP_TIMEOUT
    twin: bool = False
    previous_action: bool = False
    previous_reward: bool = False
    match_params: bool = False
    eval_episodes: int = 100
    eval_steps: int = EvalConfig.max_steps
    min_effect: float = MIN_EFFECT
    return_range: tuple[float, float] | None = None


def plan(envs: str | EnvSpec | Sequence[str | EnvSpec], options: Options) -> Comparison:
    """Check everything that can be checked before the first step.

    Returns:
        The comparison as it is before any run: every task, condition and arm, and no seed.

    Raises:
        TypeError: an environment is given otherwise than by name.
        ConfigError: a setting breaks a rule, an environment or twin is not known, or an arm cannot handle a space.
    """
    config = options.config or TrainConfig()
    evaluation = EvalConfig(options.eval_episodes, max_steps=options.eval_steps)
    _check_seeds(options, evaluation)
    require(
        0 < options.min_effect <= 1,
        f"min_effect is {options.min_effect}: it is a share of the return scale, in (0, 1]; try {MIN_EFFECT}",
    )
    arms = _arms(options)
    for arm in arms:
        config.rows_per_minibatch(arm)
    given = list(envs) if isinstance(envs, Iterable) and not isinstance(envs, str | EnvSpec) else [envs]
    require(len(given) >= 1, "no environment is given: name at least one ENV, for example FlickeringCartPole-v0")
    specs = [_spec(one, options) for one in given]
    labels = [spec.label for spec in specs]
    require(len(set(labels)) == len(labels), f"environments are {', '.join(labels)}: each may come once")
    return Comparison(
        tasks=tuple(_task(spec, arms, config, options) for spec in specs),
        config=config,
        seeds=tuple(range(options.seed, options.seed + options.seeds)),
        status="interrupted",
        evaluation=evaluation,
        min_effect=options.min_effect,
        versions=versions(),
        machine=machine(),
    )


def jobs_of(comparison: Comparison) -> list[Job]:
    """One job per task, condition, arm and seed, those of a program side by side."""
    single = sum(len(task.conditions) for task in comparison.tasks) == 1
    return [
        Job(
            env=condition.environment,
            arm=arm.arm,
            config=comparison.config,
            seeds=(seed,),
            evaluation=comparison.evaluation,
            recorded=comparison.seeds[0],
            where="" if single else condition.environment.label,
        )
        for task in comparison.tasks
        for condition in task.conditions
        for arm in condition.arms
        for seed in comparison.seeds
    ]


def _check_seeds(options: Options, evaluation: EvalConfig) -> None:
    seeds, seed = options.seeds, options.seed
    given: dict[str, Any] = {"seeds": seeds, "seed": seed}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ConfigError(
                f"{name} is {value!r}: seeds is how many seeds each arm gets, and seed the first of them, both whole"
                " numbers, such as seeds=5, seed=0"
            )
    require(seeds >= 1, f"seeds is {seeds}: every arm needs at least one seed")
    require(0 <= seed <= MAX_SEED - seeds + 1, f"seed is {seed}: it must lie in [0, {MAX_SEED - seeds + 1}]")
    first, last = evaluation.seed, evaluation.seed + evaluation.episodes - 1
    require(
        seed + seeds - 1 < first or seed > last,
        f"seeds {seed} to {seed + seeds - 1} overlap with the evaluation's, {first} to {last}: give another seed",
    )


def _arms(options: Options) -> list[ArmConfig]:
    require(len(options.arms) >= 1, "arms is empty: name at least one, for example lstm")
    inputs = dict(previous_action=options.previous_action, previous_reward=options.previous_reward)
    arms = [arm_named(arm).with_inputs(**inputs) for arm in options.arms]
    names = [arm.name for arm in arms]
    require(len(set(names)) == len(names), f"arms are {', '.join(names)}: each needs a name of its own")
    return arms


def _spec(given: str | EnvSpec, options: Options) -> EnvSpec:
    if isinstance(given, EnvSpec):
        spec = given
    else:
        require_name(given, "compare")
        observe = (options.observe,) if isinstance(options.observe, str) else tuple(options.observe)
        spec = EnvSpec(
            given,
            params=dict(options.env_params or {}),
            observe=observe,
            workers=options.env_workers,
            on_env_error=options.on_env_error,
            check_range=options.check_range,
            step_timeout=options.step_timeout,
        )
    require(not spec.twin, f"{spec.label} is a twin already: give the task, and twin=True for both")
    try:
        json.dumps(spec.params)
    except TypeError as error:
        require(False, f"params of {spec.name} are {spec.params}: {error}; give numbers, texts, lists and dicts")
    spec.in_process().build()  # before its defaults are filled in: its own messages are about what was given
    if options.return_range is not None:
        spec = dataclasses.replace(spec, return_range=options.return_range)
    return spec.completed().with_stated_range()


def _task(spec: EnvSpec, arms: Sequence[ArmConfig], config: TrainConfig, options: Options) -> TaskResult:
    if spec.workers:
        require_environments_for(spec.workers, config.num_envs)
    conditions: list[tuple[ConditionName, EnvSpec]] = [("task", spec)]
    if options.twin:
        conditions.append(("twin", dataclasses.replace(spec, twin=True)))
    return TaskResult(spec.label, tuple(_condition(name, each, arms, config, options) for name, each in conditions))


def _condition(
    name: ConditionName, spec: EnvSpec, arms: Sequence[ArmConfig], config: TrainConfig, options: Options
) -> ConditionResult:
    env = spec.build()
    for arm in arms:
        require_fits(obs_spec(env.observation_space), arm, config)
    chosen = matched(env, arms) if options.match_params else arms
    results = [ArmResult(arm, config.learning_rate(arm), parameters(env, arm), ()) for arm in chosen]
    return ConditionResult(name, spec, tuple(results))
