"""Several results of the same comparison as one: more seeds, or more arms."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from thrust_rl.config import ConfigError, require
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult, TaskResult
from thrust_rl.experiment.jobs import SeedResult
from thrust_rl.experiment.settings import differing, settings_of, shown


def merged(comparisons: Sequence[Comparison], names: Sequence[str]) -> Comparison:
    """The union of their arms and seeds; verdicts are computed anew from it.

    Args:
        comparisons: at least one.
        names: of each, for messages.

    Raises:
        ConfigError: they were made with different settings, the first of which is named, or give different results
            for the same arm and seed.
    """
    require(len(comparisons) > 0, "nothing to report on: give at least one folder that thrust compare wrote to")
    first = comparisons[0]
    for other, name in zip(comparisons[1:], names[1:], strict=True):
        _require_alike(first, other, names[0], name)
    tasks = tuple(_task([comparison.tasks[i] for comparison in comparisons]) for i in range(len(first.tasks)))
    seeds = tuple(sorted({seed for comparison in comparisons for seed in comparison.seeds}))
    commands = [comparison.command for comparison in comparisons if comparison.command]
    joined = dataclasses.replace(
        first,
        tasks=tasks,
        seeds=seeds,
        command="; ".join(dict.fromkeys(commands)) or None,
        seconds=round(sum(comparison.seconds for comparison in comparisons), 1),
    )
    whole = all(comparison.status == "complete" for comparison in comparisons) or _has_every_seed(joined)
    return dataclasses.replace(joined, status="complete" if whole else "interrupted")


def _require_alike(first: Comparison, other: Comparison, first_name: str, name: str) -> None:
    before, now = _shared_settings(first), _shared_settings(other)
    for path, old, new in differing(before, now):
        if not _is_arm(path) or "absent" not in (old, new):
            raise ConfigError(
                f"{first_name} and {name} cannot be merged: {path} is {shown(old)} in the first and {shown(new)} in the"
                " second; report on them one by one"
            )


def _shared_settings(comparison: Comparison) -> dict[str, Any]:
    return {**settings_of(comparison), "min_effect": comparison.min_effect}


def _is_arm(path: str) -> bool:
    """Whether a path leads to a whole arm, which only one of the two may have."""
    return ".arms." in path


def _task(tasks: Sequence[TaskResult]) -> TaskResult:
    conditions = [_condition([task.conditions[i] for task in tasks]) for i in range(len(tasks[0].conditions))]
    return TaskResult(tasks[0].label, tuple(conditions))


def _condition(conditions: Sequence[ConditionResult]) -> ConditionResult:
    names = dict.fromkeys(arm.name for condition in conditions for arm in condition.arms)
    arms = [[arm for condition in conditions for arm in condition.arms if arm.name == name] for name in names]
    return dataclasses.replace(conditions[0], arms=tuple(map(_arm, arms)))


def _arm(arms: Sequence[ArmResult]) -> ArmResult:
    seeds: dict[int, SeedResult] = {}
    for arm in arms:
        for result in arm.seeds:
            before = seeds.setdefault(result.seed, result)
            same = before.evaluation == result.evaluation and before.curve_mean_return == result.curve_mean_return
            require(
                same,
                f"{arm.name} seed {result.seed} has two different results, with mean evaluation returns"
                f" {before.score} and {result.score}: leave one of the folders out",
            )
    recorded = False
    for seed in sorted(seeds):  # one recording is enough
        if recorded:
            seeds[seed] = dataclasses.replace(seeds[seed], recording=None)
        recorded = recorded or seeds[seed].recording is not None
    return dataclasses.replace(arms[0], seeds=tuple(seeds[seed] for seed in sorted(seeds)))


def _has_every_seed(comparison: Comparison) -> bool:
    every = [arm for task in comparison.tasks for condition in task.conditions for arm in condition.arms]
    return all(tuple(seed.seed for seed in arm.seeds) == comparison.seeds for arm in every)
