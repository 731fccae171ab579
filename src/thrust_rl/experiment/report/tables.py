"""The tables of a report as plain text cells, which HTML and Markdown then render alike."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from thrust_rl.experiment.report.data import Arm, Condition, Result, Task, ends_of
from thrust_rl.experiment.report.pairs import effects, percent
from thrust_rl.experiment.verdict import MIN_SEEDS, decimals

NONE = "–"
NO_COMMAND = "Run from Python, at least in part, so there is no command that repeats it."
ARMS_NOTE = (
    "mean, median and IQM (interquartile mean) are over seeds, of each seed's mean return in the sampled evaluation"
    f" episodes, from {MIN_SEEDS} seeds on with 95 % BCa bootstrap intervals; greedy mean: the same with the likeliest"
    " actions. final, best and area are of the training curve: its end, its peak, and its mean height."
)


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under columns; the first `heads` cells of a row name it, the others are numbers unless `words`."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    heads: int = 1
    words: bool = False


def digits(task: Task) -> int:
    """Decimals that show the returns of a task to about three digits of the smallest effect of interest."""
    if task.min_effect:
        return decimals(task.min_effect)
    scores = [abs(score) for each in task.conditions for arm in each.arms for score in arm.scores.values()]
    return decimals(0.05 * max(scores)) if scores and max(scores) > 0 else 1


def arms_table(condition: Condition, places: int) -> Table:
    """What every arm reached: evaluation with intervals, then the training curve's numbers."""
    columns = ("arm", "parameters", "seeds", "mean", "median", "IQM", "greedy mean", "final", "best", "area")
    rows = []
    for arm in condition.arms:
        cells = [_of_seeds(arm.summary, field, places) for field in ("mean", "median", "iqm")]
        training = [plain(arm.average(field), places) for field in ("greedy", "final", "best", "auc")]
        params = NONE if arm.params is None else f"{arm.params:,}"
        rows.append((arm.name, params, str(len(arm.seeds)), *cells, *training))
    return Table(f"Arms on {condition.title}", columns, tuple(rows))


def seeds_table(condition: Condition, places: int) -> Table:
    """Every run."""
    columns = ("arm", "seed", "sampled", "greedy", "final", "best", "area", "episodes", "steps/s")
    rows = []
    for arm in condition.arms:
        for seed in arm.seeds:
            numbers = (seed.sampled, seed.greedy, seed.final, seed.best, seed.auc)
            counts = ("" if each is None else f"{each:,.0f}" for each in (seed.episodes, seed.speed))
            rows.append((arm.name, str(seed.seed), *(plain(each, places) for each in numbers), *counts))
    return Table(f"Every run on {condition.title}", columns, tuple(rows), heads=2)


def effects_table(task: Task, places: int) -> Table | None:
    """The decisive differences with their intervals."""
    found = effects(task)
    if not found:
        return None
    rows = tuple((each.title, *_paired(each.paired, places)) for each in found)
    names = f"{found[0].first} minus {found[0].second}"
    return Table(f"{names}, by seed", ("quantity", *_paired_columns([each.paired for each in found])), rows)


def contrasts_table(task: Task, places: int) -> Table | None:
    """Every pair that was compared on the task: paired, unpaired, and how often one run beats another."""
    rows = []
    for each in task.contrasts:
        unpaired, better, seeds = each["unpaired"], each["improvement"], each["paired"]["num_seeds"]
        rows.append(
            (
                f"{each['first']} minus {each['second']}",
                *_paired(each["paired"], places),
                signed_estimate(unpaired["value"], ends_of(unpaired, num_seeds=seeds), places),
                estimate(better["value"], ends_of(better, num_seeds=seeds), 2),
            )
        )
    paired = _paired_columns([each["paired"] for each in task.contrasts])
    columns = ("pair", *paired, "unpaired difference", "probability of improvement")
    return Table(f"Pairs of arms on {task.label}", columns, tuple(rows)) if rows else None


def aggregate_table(aggregate: Mapping[str, Any]) -> Table:
    """Normalized scores over all tasks."""
    seeds = aggregate["num_seeds"]
    rows = [
        (arm["name"], *(estimate(arm[key]["value"], ends_of(arm[key], num_seeds=seeds), 3) for key in ("iqm", "mean")))
        for arm in aggregate["arms"]
    ]
    difference = aggregate.get("difference")
    if difference:
        names = f"{rows[0][0]} minus {rows[1][0]}"
        rows.append((names, signed_estimate(difference["value"], ends_of(difference, num_seeds=seeds), 3), NONE))
    return Table(f"Normalized scores over {len(aggregate['tasks'])} tasks", ("arm", "IQM", "mean"), tuple(rows))


def settings_table(result: Result) -> Table:
    """Everything that was set, in one list."""
    raw, rows = result.raw, [("seeds", ", ".join(map(str, result.seeds)))]
    rows += _flat("evaluation", raw.get("evaluation") or {})
    if raw.get("min_effect") is not None:
        rows.append(("smallest effect of interest", f"{raw['min_effect']:g} of the return scale"))
    rows += _flat("", raw.get("config") or {})
    for task in result.tasks:
        for condition in task.conditions:
            rows.append((f"environment: {condition.title}", _line(condition.environment)))
    for arm in _first_arms(result):
        config = {key: value for key, value in arm.config.items() if key != "name"}
        rows.append((f"arm: {arm.name}", _line({**config, "learning_rate": arm.learning_rate})))
    return Table("Settings", ("setting", "value"), tuple(rows), words=True)


def machine_table(result: Result) -> Table:
    """Versions, the machine, and how long it took."""
    rows = _flat("", result.raw.get("versions") or {}) + _flat("machine", result.raw.get("machine") or {})
    if result.raw.get("seconds") is not None:
        rows.append(("duration", f"{result.raw['seconds']:.0f} s"))
    return Table("Versions and machine", ("what", "value"), tuple(rows), words=True)


def plain(value: float | None, places: int) -> str:
    """A number, or a dash where there is none."""
    return NONE if value is None else f"{value:z.{places}f}"


def estimate(value: float, ends: tuple[float, float] | None, places: int) -> str:
    """A number with its interval in brackets."""
    return plain(value, places) + (f" [{ends[0]:z.{places}f}, {ends[1]:z.{places}f}]" if ends else "")


def signed_estimate(value: float, ends: tuple[float, float] | None, places: int) -> str:
    """A difference with its interval in brackets."""
    return f"{value:+z.{places}f}" + (f" [{ends[0]:+z.{places}f}, {ends[1]:+z.{places}f}]" if ends else "")


def _of_seeds(summary: Mapping[str, Any] | None, field: str, places: int) -> str:
    if summary is None:
        return NONE
    return estimate(summary[field]["value"], ends_of(summary[field], num_seeds=summary["num_seeds"]), places)


def _paired_columns(paired: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return "mean", f"{' or '.join(dict.fromkeys(map(percent, paired)))} interval", "p", "ahead"


def _paired(paired: Mapping[str, Any], places: int) -> tuple[str, ...]:
    ends = ends_of(paired, num_seeds=paired["num_seeds"])
    interval = f"{ends[0]:+z.{places}f} to {ends[1]:+z.{places}f}" if ends else NONE
    ahead = f"{paired['ahead']} of {paired['num_seeds']}"
    return f"{paired['mean']:+z.{places}f}", interval, f"{paired['p_value']:.2g}", ahead


def _flat(prefix: str, values: Any) -> list[tuple[str, str]]:
    """Nested settings as dotted names with short values."""
    if not isinstance(values, Mapping):
        shown = values if isinstance(values, str) else json.dumps(values)
        return [(prefix, shown)]
    gap = "." if prefix else ""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        rows += _flat(f"{prefix}{gap}{key}", value)
    return rows


def _line(values: Mapping[str, Any]) -> str:
    """Nested settings on one line."""
    return ", ".join(f"{name}={value}" for name, value in _flat("", values))


def _first_arms(result: Result) -> list[Arm]:
    """Every arm once, as it is on the first task."""
    arms: dict[str, Arm] = {}
    for task in result.tasks:
        for condition in task.conditions:
            for arm in condition.arms:
                arms.setdefault(arm.name, arm)
    return list(arms.values())
