"""Two arms under one condition: their differences by seed, and the effects that a report lists."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from thrust_rl.experiment.report.data import Condition, Task, ends_of
from thrust_rl.experiment.statistics import CONFIDENCE

EFFECTS = (
    ("task", "Memory effect on the task"),
    ("twin", "Memory bias on the twin"),
    ("due_to_hiding", "Their difference: due to what is hidden"),
)


@dataclasses.dataclass(frozen=True)
class Effect:
    """A mean paired difference, with what it was computed from."""

    title: str
    first: str
    second: str
    paired: Mapping[str, Any]
    """`PairedDifference` as a dict."""
    differences: Mapping[int, float]
    """First minus second, by seed."""
    meaning: str | None = None

    @property
    def mean(self) -> float:
        """Of the differences."""
        return float(self.paired["mean"])

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of the interval; None where there is none."""
        return ends_of(self.paired, num_seeds=self.paired["num_seeds"])

    @property
    def percent(self) -> str:
        """What the interval is worth."""
        return percent(self.paired)


def effects(task: Task) -> list[Effect]:
    """The three quantities where a twin was run, else the difference on the task alone; empty without a pair."""
    names = _pair(task)
    if names is None:
        return []
    on_task = _on(task, "task", names)
    if task.twin_effects is None:
        found = _contrast(task, names)
        return [] if found is None else [Effect(EFFECTS[0][1], *names, found["paired"], on_task)]
    on_twin = _on(task, "twin", names)
    hiding = {seed: value - on_twin[seed] for seed, value in on_task.items() if seed in on_twin}
    said = task.twin_effects.get("sentences") or (None, None, None)
    return [
        Effect(title, *names, task.twin_effects[key], differences, meaning)
        for (key, title), differences, meaning in zip(EFFECTS, (on_task, on_twin, hiding), said, strict=True)
        if task.twin_effects.get(key)
    ]


def percent(paired: Mapping[str, Any]) -> str:
    """What the interval of a `PairedDifference` is worth, such as "95 %": with 5 seeds it is less."""
    shown = ends_of(paired, num_seeds=paired["num_seeds"]) is not None
    return f"{100 * (paired['interval']['confidence'] if shown else CONFIDENCE):.4g} %"


def effect_on(task: Task, condition: Condition) -> Effect | None:
    """The difference between the decisive pair under a condition, where one was computed."""
    titles = dict(EFFECTS)
    return next((effect for effect in effects(task) if effect.title == titles.get(condition.name)), None)


def _pair(task: Task) -> tuple[str, str] | None:
    """The memory arm and the memoryless one that the verdict is about."""
    if task.verdict:
        return str(task.verdict["memory"]), str(task.verdict["memoryless"])
    return (str(task.contrasts[0]["first"]), str(task.contrasts[0]["second"])) if task.contrasts else None


def _contrast(task: Task, names: tuple[str, str]) -> Mapping[str, Any] | None:
    return next((each for each in task.contrasts if (each["first"], each["second"]) == names), None)


def _on(task: Task, condition: str, names: tuple[str, str]) -> dict[int, float]:
    for each in task.conditions:
        if each.name == condition:
            arms = {arm.name: arm.scores for arm in each.arms}
            first, second = (arms.get(name, {}) for name in names)
            return {seed: score - second[seed] for seed, score in first.items() if seed in second}
    return {}
