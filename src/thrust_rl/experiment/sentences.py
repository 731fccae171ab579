"""What a comparison says in words, the verdict first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thrust_rl.experiment.aggregate import Aggregate
from thrust_rl.experiment.beforehand import beforehand
from thrust_rl.experiment.comparison import Comparison, TaskResult
from thrust_rl.experiment.contrast import Contrast
from thrust_rl.experiment.cut import cut_short
from thrust_rl.experiment.scale import ReturnScale
from thrust_rl.experiment.unhidden import without
from thrust_rl.experiment.verdict import MIN_SEEDS, decimals

if TYPE_CHECKING:
    from thrust_rl.experiment.analysis import TaskAnalysis

INTERRUPTED = "Interrupted: no verdict; the table shows the seeds that finished. The same command with --out goes on."


def sentences(
    comparison: Comparison,
    pair: tuple[str, str] | None,
    tasks: Sequence["TaskAnalysis"],
    together: Aggregate | None,
) -> tuple[str, ...]:
    """One verdict per task, then what memory alone does, the twins, all tasks at once, and what to know."""
    said: list[str] = []
    if comparison.status == "interrupted":
        said.append(INTERRUPTED)
    several = len(comparison.tasks) > 1
    for task, analysis in zip(comparison.tasks, tasks, strict=True):
        prefix = f"{task.label}: " if several else ""
        if comparison.status == "complete":
            said.append(prefix + _verdict(task, analysis, pair))
    for task, analysis in zip(comparison.tasks, tasks, strict=True):
        prefix = f"{task.label}: " if several else ""
        said += [prefix + one for one in _further(analysis, comparison.min_effect)]
    if together is not None:
        said.append(aggregate_sentence(together, pair))
    if comparison.status == "complete" and pair is not None:
        labelled = zip(comparison.tasks, tasks, strict=True)
        said += beforehand(comparison, pair, {task.label: one.scale for task, one in labelled if one.scale is not None})
    return (*said, *_warnings(comparison, pair), *comparison.notes)


def _verdict(task: TaskResult, analysis: "TaskAnalysis", pair: tuple[str, str] | None) -> str:
    if analysis.verdict is not None:
        return analysis.verdict.sentence
    arms = [arm for arm in task.task.arms if arm.seeds]
    if len(arms) < len(task.task.arms):
        return "No verdict: some arms have no finished seed; run them, or drop them."
    if len(arms) == 1:
        return f"{arms[0].name} reached a mean evaluation return of {arms[0].score:.1f}; give a second arm to compare."
    if pair is not None or not analysis.contrasts:
        return "No verdict: the arms have no seed in common; run both with the same seeds."
    return (
        "No verdict about memory: that takes an arm with memory and one without."
        f" {_difference(analysis.contrasts[0].contrast, analysis.scale)}."
    )


def _further(analysis: "TaskAnalysis", min_effect: float) -> list[str]:
    said = [
        f"Memory alone, the same network with and without it: {_difference(one.contrast, analysis.scale)}."
        for one in analysis.contrasts
        if one.about == "memory alone"
    ]
    return [*said, *(analysis.twin_effects.sentences if analysis.twin_effects is not None else ())]


def _difference(contrast: Contrast, scale: ReturnScale | None) -> str:
    """The paired difference with its interval."""
    paired = contrast.paired
    digits = decimals(0.05 * scale.size if scale is not None else abs(paired.mean))
    said = f"{contrast.first} minus {contrast.second} is {paired.mean:+z.{digits}f}"
    if paired.interval is None or paired.num_seeds < MIN_SEEDS:
        return f"{said} (too few seeds for an interval)"
    interval = paired.interval
    return (
        f"{said} ({interval.percent} interval {interval.low:+z.{digits}f} to"
        f" {interval.high:+z.{digits}f}; p = {paired.p_value:.2g}; ahead on {paired.ahead} of {paired.num_seeds} seeds)"
    )


def aggregate_sentence(together: Aggregate, pair: tuple[str, str] | None) -> str:
    """All tasks at once; with too few seeds for a verdict there is no interval either, and it says why."""
    over = f"Over {len(together.tasks)} tasks, scores from 0 to 1 on each"
    each = ", ".join(f"{arm.name} {arm.iqm.value:.2f}" for arm in together.arms)
    said = f"{over}: interquartile mean {each}"
    if pair is None or together.difference is None:
        return f"{said}."
    value, interval = together.difference.value, together.difference.interval
    difference = f"{said}; {pair[0]} minus {pair[1]} is {value:+z.2f}"
    if interval is None or together.num_seeds < MIN_SEEDS:
        seeds = "1 seed is" if together.num_seeds == 1 else f"{together.num_seeds} seeds are"
        return f"{difference}, and {seeds} too few to tell how much of it is chance, give at least {MIN_SEEDS}."
    percent = f"{interval.percent} interval"
    return f"{difference} ({percent} {interval.low:+z.2f} to {interval.high:+z.2f})."


def _warnings(comparison: Comparison, pair: tuple[str, str] | None) -> list[str]:
    """What a reader of the numbers has to know."""
    said = []
    for spec in (task.task.environment for task in comparison.tasks if task.twin is not None):
        if lacks := without(spec.name, spec.observe):
            said.append(
                f"The twin of {spec.label} is it without {lacks}; what {spec.name} itself hides stays hidden there."
            )
    fed = [arm.name for arm in comparison.arms if arm.arm.previous_action or arm.arm.previous_reward]
    if fed:
        said.append(f"Fed with their previous action or reward, a memory channel of its own: {', '.join(fed)}.")
    inputs = {arm.name: (arm.arm.previous_action, arm.arm.previous_reward) for arm in comparison.arms}
    if pair is not None and inputs[pair[0]] != inputs[pair[1]]:
        said.append(f"{pair[0]} and {pair[1]} are not fed the same: their difference is not the memory's alone.")
    runs = [
        (condition.environment.label, arm.name, seed)
        for task in comparison.tasks
        for condition in task.conditions
        for arm in condition.arms
        for seed in arm.seeds
    ]
    said += cut_short(comparison)
    restarts = sum(seed.env_restarts for _, _, seed in runs)
    if restarts:
        what = "environment failed and was" if restarts == 1 else "environments failed and were"
        said.append(f"{restarts} {what} replaced, in training or evaluation; the episodes count as truncated.")
    for where, arm, seed in runs:
        if seed.resumed_at:
            steps = " and ".join(f"{step:,}" for step in seed.resumed_at)
            said.append(
                f"{arm} seed {seed.seed} on {where} went on from a checkpoint at {steps} steps, in environments that"
                " began anew there: an uninterrupted run would have met others."
            )
    return said
