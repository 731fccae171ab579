"""Several results of the same comparison as one: more seeds, or more arms."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from thrust_rl.config import ConfigError, require
from thrust_rl.differences import ABSENT, differing, shown
from thrust_rl.experiment.beforehand import pair_was_fixed
from thrust_rl.experiment.command import merging
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult, TaskResult
from thrust_rl.experiment.jobs import SeedResult
from thrust_rl.experiment.merge_notes import AND, missing, notes_on, versions_of, warned_once
from thrust_rl.experiment.settings import settings_of


def merged(comparisons: Sequence[Comparison], names: Sequence[str]) -> Comparison:
    """The union of their arms and seeds; verdicts are computed anew from it.

    A run that is in several of them counts once, and a note says so: a run is decided by its settings and its seed, so
    the same one twice is no second observation, and refusing it would forbid the merging of results that overlap.

    Args:
        comparisons: at least one.
        names: of the folder of each.

    Raises:
        ConfigError: they were made with different settings, all of which are named, or give different results
            for the same arm and seed.
    """
    require(len(comparisons) > 0, "nothing to report on: give at least one folder that thrust compare wrote to")
    different = dict(zip(names, comparisons, strict=True))
    folders, parts = list(different), list(different.values())
    first = parts[0]
    if len(parts) == 1:
        return first
    for other, name in zip(parts[1:], folders[1:], strict=True):
        _require_alike(first, other, folders[0], name)
    joined = dataclasses.replace(
        first,
        tasks=tuple(_task([_of_label(part, task.label) for part in parts]) for task in first.tasks),
        seeds=tuple(sorted({seed for part in parts for seed in part.seeds})),
        command=merging([part.command for part in parts], folders),
        seconds=round(sum(part.seconds for part in parts), 1),
        versions=_versions(parts),
        merged_from=tuple(folders),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        pair=_pair(parts),
    )
    whole = all(part.status == "complete" for part in parts) or not missing(joined)
    noted = warned_once((*joined.notes, *notes_on(joined, parts, folders, names)))
    return dataclasses.replace(joined, status="complete" if whole else "interrupted", notes=noted)


def _pair(parts: Sequence[Comparison]) -> tuple[str, str] | None:
    """The pair that all parts with one agree on; None where there is none that was fixed before the parts ran."""
    paired = [part for part in parts if part.analysis.pair is not None]
    alike = len({part.analysis.pair for part in paired}) == 1
    return paired[0].analysis.pair if alike and all(map(pair_was_fixed, paired)) else None


def _require_alike(first: Comparison, other: Comparison, first_name: str, name: str) -> None:
    changes = [
        f"{path} is {shown(old)} in {first_name} and {shown(new)} in {name}"
        for path, old, new in differing(_shared_settings(first), _shared_settings(other))
        if not _is_arm(path) or ABSENT not in (old, new)
    ]
    if changes:
        raise ConfigError(
            f"{first_name} and {name} cannot be merged, because their settings differ: {'; '.join(changes)};"
            " report on them one by one"
        )


def _shared_settings(comparison: Comparison) -> dict[str, Any]:
    return {**settings_of(comparison), "min_effect": comparison.min_effect}


def _is_arm(path: str) -> bool:
    """Whether a path leads to a whole arm, which only one of the two may have."""
    return ".arms." in path


def _of_label(comparison: Comparison, label: str) -> TaskResult:
    """The task of that label, wherever it stands: the order of tasks is no setting."""
    return next(task for task in comparison.tasks if task.label == label)


def _task(tasks: Sequence[TaskResult]) -> TaskResult:
    names = [condition.name for condition in tasks[0].conditions]
    conditions = [
        _condition([condition for task in tasks for condition in task.conditions if condition.name == name])
        for name in names
    ]
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


def _versions(parts: Sequence[Comparison]) -> dict[str, str]:
    """Of every package, every version that a part was made with."""
    packages = dict.fromkeys(package for part in parts for package in part.versions)
    found = {package: [one for part in parts for one in versions_of(part, package)] for package in packages}
    return {package: AND.join(dict.fromkeys(each)) for package, each in found.items()}
