"""All tasks in one table: what every arm reached on each, what memory is worth there, and the verdict."""

from collections.abc import Sequence

from thrust_rl.experiment.report.data import Arm, Result, Task, ends_of
from thrust_rl.experiment.report.pairs import effects
from thrust_rl.experiment.report.tables import NONE, Table, digits, estimate, signed_estimate

NOTE = (
    "Intervals: 95 %; that of an effect is the one that decides (93.75 % with 5 seeds), and where memory does not help"
    " it holds for all tasks at once. p: sign-flip test, after Holm's correction over the tasks."
)


def overview_table(result: Result, *, arms: Sequence[str] | None = None) -> Table | None:
    """One row per task; None where there is only one, which needs no overview.

    Args:
        result: of the comparison.
        arms: which to show; all by default.
    """
    if len(result.tasks) < 2:
        return None
    names = tuple(arms) if arms is not None else _arms_of(result)
    pairs = [(found[0].first, found[0].second) for task in result.tasks if (found := effects(task))]
    effect = f"{pairs[0][0]} minus {pairs[0][1]}" if pairs else "effect"
    rows = tuple((task.label, *_means(task, names), *_decision(task)) for task in result.tasks)
    return Table("All tasks", ("task", *names, effect, "p (Holm)", "verdict"), rows)


def _arms_of(result: Result) -> tuple[str, ...]:
    return tuple(dict.fromkeys(arm.name for task in result.tasks for arm in task.conditions[0].arms))


def _means(task: Task, names: Sequence[str]) -> list[str]:
    """Every arm's mean score on the task itself."""
    found = {arm.name: arm for arm in task.conditions[0].arms}
    return [_mean(found.get(name), digits(task)) for name in names]


def _mean(arm: Arm | None, places: int) -> str:
    if arm is None or arm.summary is None:
        return NONE
    mean = arm.summary["mean"]
    return estimate(mean["value"], ends_of(mean, num_seeds=arm.summary["num_seeds"]), places)


def _decision(task: Task) -> tuple[str, str, str]:
    """The effect, its p-value and the verdict; without a verdict there is the effect at most."""
    places, verdict, found = digits(task), task.verdict, effects(task)
    if verdict is None:
        return (signed_estimate(found[0].mean, found[0].ends, places) if found else NONE), NONE, NONE
    ends = ends_of(verdict, num_seeds=verdict["num_seeds"])
    effect = signed_estimate(verdict["effect"], ends, places)
    if verdict["kind"] == "withheld":
        return effect, NONE, f"withheld: {verdict['num_seeds']} seed{'s' if verdict['num_seeds'] > 1 else ''}"
    return effect, f"{verdict['p_value']:.2g}", str(verdict["kind"])
