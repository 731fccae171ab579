"""What a report shows, read from the plain dict that `result.json` holds; whatever is missing becomes None or empty."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from thrust_rl.config import require
from thrust_rl.experiment.statistics import ArmScores, summarize
from thrust_rl.experiment.unhidden import without
from thrust_rl.experiment.verdict import MIN_SEEDS


@dataclasses.dataclass(frozen=True)
class Seed:
    """One training run."""

    seed: int
    final: float | None
    best: float | None
    auc: float | None
    steps: tuple[int, ...]
    """Of the learning curve."""
    returns: tuple[float, ...]
    """Of the learning curve."""
    sampled: float | None
    """Mean evaluation return."""
    greedy: float | None
    episodes: int | None
    """Finished while training."""
    speed: float | None
    """Environment steps per second."""


@dataclasses.dataclass(frozen=True)
class Arm:
    """One arm under one condition."""

    name: str
    params: int | None
    learning_rate: float | None
    config: Mapping[str, Any]
    seeds: tuple[Seed, ...]
    summary: Mapping[str, Any] | None
    """`ArmSummary` of the scores as a dict; None without a score."""
    recording: Mapping[str, Any] | None

    @property
    def scores(self) -> dict[int, float]:
        """What verdicts rest on, by seed: the mean return of the sampled evaluation episodes."""
        return {seed.seed: seed.sampled for seed in self.seeds if seed.sampled is not None}

    def average(self, field: str) -> float | None:
        """Mean over the seeds of one of their numbers; None where a seed has none."""
        values = [getattr(seed, field) for seed in self.seeds]
        known = [value for value in values if value is not None]
        return math.fsum(known) / len(known) if known and len(known) == len(values) else None


@dataclasses.dataclass(frozen=True)
class Condition:
    """The task itself, or its fully observable twin."""

    name: str
    """task or twin."""
    title: str
    environment: Mapping[str, Any]
    arms: tuple[Arm, ...]


@dataclasses.dataclass(frozen=True)
class Task:
    """One task with its conditions and what was decided about it."""

    label: str
    conditions: tuple[Condition, ...]
    verdict: Mapping[str, Any] | None
    contrasts: tuple[Mapping[str, Any], ...]
    twin_effects: Mapping[str, Any] | None

    @property
    def min_effect(self) -> float | None:
        """The smallest effect of interest, as a return."""
        return self.verdict.get("min_effect") if self.verdict else None


@dataclasses.dataclass(frozen=True)
class Result:
    """A whole comparison; `raw` is the dict it was read from."""

    tasks: tuple[Task, ...]
    sentences: tuple[str, ...]
    aggregate: Mapping[str, Any] | None
    interrupted: bool
    seeds: tuple[int, ...]
    raw: Mapping[str, Any]

    @property
    def headlines(self) -> list[tuple[str | None, str]]:
        """The verdicts, each with the task it is about if there are several: what a reader has to see first."""
        if self.interrupted or not self.sentences:
            return [(None, said) for said in self.sentences[:1]]
        labels = [task.label if len(self.tasks) > 1 else None for task in self.tasks]
        said = zip(labels, self.sentences, strict=False)
        return [(label, text.removeprefix(f"{label}: ") if label else text) for label, text in said]

    @property
    def remarks(self) -> list[str]:
        """The other sentences, without what stands beside the effects, and what the verdicts have to add."""
        beside = {said for task in self.tasks if task.twin_effects for said in task.twin_effects.get("sentences") or ()}
        others = [text for text in self.sentences[len(self.headlines) :] if not text.endswith(tuple(beside))]
        notes = [note for task in self.tasks if task.verdict for note in task.verdict.get("notes") or ()]
        return others + [f"Note: {note}" for note in dict.fromkeys(notes)]

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Every arm's name, in the order of first appearance; an arm keeps its colour throughout a report."""
        arms = (arm for task in self.tasks for condition in task.conditions for arm in condition.arms)
        return tuple(dict.fromkeys(arm.name for arm in arms))


@runtime_checkable
class HasDict(Protocol):
    """A `Comparison`, or anything else that knows its `result.json`."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        ...


def read(comparison: HasDict | Mapping[str, Any]) -> Result:
    """Read a comparison of schema version 2, or the dict that it becomes.

    Raises:
        ConfigError: it is something else.
    """
    data = comparison if isinstance(comparison, Mapping) else comparison.to_dict()
    version = data.get("schema_version")
    require(
        data.get("schema") == "thrust-rl/comparison" and version == 2,
        f"schema is {data.get('schema')!r}, version {version!r}: a report needs 'thrust-rl/comparison', version 2;"
        " run the comparison again with this release",
    )
    return Result(
        tasks=tuple(_task(task) for task in data.get("tasks") or ()),
        sentences=tuple(data.get("sentences") or ()),
        aggregate=data.get("aggregate"),
        interrupted=data.get("status") != "complete",
        seeds=tuple(data.get("seeds") or ()),
        raw=data,
    )


def ends_of(estimate: Mapping[str, Any], *, num_seeds: int) -> tuple[float, float] | None:
    """Of an estimate's interval; None where there is none, or too few seeds for it to mean anything."""
    interval = estimate.get("interval")
    return None if interval is None or num_seeds < MIN_SEEDS else (float(interval["low"]), float(interval["high"]))


def _task(data: Mapping[str, Any]) -> Task:
    label = str(data.get("label", "task"))
    return Task(
        label=label,
        conditions=tuple(_condition(condition, label) for condition in data.get("conditions") or ()),
        verdict=data.get("verdict"),
        contrasts=tuple(data.get("contrasts") or ()),
        twin_effects=data.get("twin_effects"),
    )


def _condition(data: Mapping[str, Any], label: str) -> Condition:
    name = str(data.get("name", "task"))
    environment = data.get("environment") or {}
    lacks = without(str(environment.get("name", "")), environment.get("observe") or ())
    title = f"{label}, {f'without {lacks}' if lacks else 'fully observable twin'}" if name == "twin" else label
    arms = tuple(_arm(arm, given) for arm, given in (data.get("arms") or {}).items())
    return Condition(name, title, environment, arms)


def _arm(name: str, data: Mapping[str, Any]) -> Arm:
    arm = Arm(
        name=name,
        params=data.get("params"),
        learning_rate=data.get("learning_rate"),
        config=data.get("arm") or {},
        seeds=tuple(_seed(seed) for seed in data.get("seeds") or ()),
        summary=data.get("summary"),
        recording=data.get("recording"),
    )
    if arm.summary is not None or not arm.scores:
        return arm
    scores = ArmScores(name, tuple(arm.scores), tuple(arm.scores.values()))
    return dataclasses.replace(arm, summary=summarize(scores).to_dict())


def _seed(data: Mapping[str, Any]) -> Seed:
    played = data.get("evaluation") or {}
    return Seed(
        seed=int(data["seed"]),
        final=data.get("final"),
        best=data.get("best"),
        auc=data.get("auc"),
        steps=tuple(data.get("curve_steps") or ()),
        returns=tuple(data.get("curve_mean_return") or ()),
        sampled=_score(played.get("sampled")),
        greedy=_score(played.get("greedy")),
        episodes=data.get("episodes"),
        speed=data.get("steps_per_second"),
    )


def _score(episodes: Mapping[str, Any] | None) -> float | None:
    """Mean return of evaluation episodes."""
    score = (episodes or {}).get("mean_return")
    return None if score is None else float(score)
