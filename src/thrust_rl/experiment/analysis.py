"""What the scores of a comparison say: verdicts, contrasts, the twin's effects, the aggregate, and sentences."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Literal

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.experiment.aggregate import Aggregate, aggregate
from thrust_rl.experiment.comparison import ArmResult, Comparison, TaskResult
from thrust_rl.experiment.contrast import Contrast, contrast
from thrust_rl.experiment.family import TaskScores, decide_together
from thrust_rl.experiment.levelling import levelling_notes
from thrust_rl.experiment.reward_scale import reward_scale_notes
from thrust_rl.experiment.scale import ReturnScale, return_scale
from thrust_rl.experiment.twin import TwinEffects, twin_effects
from thrust_rl.experiment.unhidden import without
from thrust_rl.experiment.verdict import SECOND_LOOK, Verdict

About = Literal["verdict", "memory alone", "other"]


@dataclasses.dataclass(frozen=True)
class PairContrast:
    """Two arms on a task, and why they are contrasted."""

    about: About
    """verdict: the pair that the verdict is about. memory alone: the same network with and without its memory."""
    contrast: Contrast


@dataclasses.dataclass(frozen=True)
class TaskAnalysis:
    """What is said about one task."""

    scale: ReturnScale | None
    verdict: Verdict | None
    """None where there is no pair, a seed is missing, or the comparison was interrupted."""
    contrasts: tuple[PairContrast, ...]
    twin_effects: TwinEffects | None


@dataclasses.dataclass(frozen=True)
class Analysis:
    """What is said about everything."""

    pair: tuple[str, str] | None
    """Names of the memory arm and the memoryless arm that the verdicts are about."""
    tasks: tuple[TaskAnalysis, ...]
    aggregate: Aggregate | None
    sentences: tuple[str, ...]


def remembers(arm: ArmConfig) -> bool:
    """Whether a cell carries something from step to step."""
    return arm.has_memory and not arm.reset_memory


def verdict_pair(arms: Sequence[ArmConfig]) -> tuple[str, str] | None:
    """The first arm with memory and the first without.

    One that stacks frames remembers a little in its own way, so it stands in for the second only at need, and one whose
    memory is emptied only where there is neither.

    Example:
        >>> from thrust_rl.config import arm_from
        >>> verdict_pair([arm_from(name) for name in ("mlp", "lstm-reset", "gru", "lstm")])
        ('gru', 'mlp')
    """
    memory = [arm.name for arm in arms if remembers(arm)]
    others = sorted((arm for arm in arms if not remembers(arm)), key=lambda arm: (arm.has_memory, arm.frame_stack > 1))
    return (memory[0], others[0].name) if memory and others else None


def analyse(comparison: Comparison) -> Analysis:
    """Everything that follows from the scores; the same for the same scores.

    An interrupted comparison gets no verdict. Arms are compared on the seeds that both have.
    """
    from thrust_rl.experiment.sentences import sentences

    pair = comparison.pair or verdict_pair([arm.arm for arm in comparison.arms])
    verdicts = _verdicts(comparison, pair)
    tasks = tuple(
        TaskAnalysis(
            scale=_scale(task),
            verdict=verdicts.get(task.label),
            contrasts=_contrasts(task, pair),
            twin_effects=_twin_effects(task, pair, comparison.min_effect),
        )
        for task in comparison.tasks
    )
    together = _aggregate(comparison, pair)
    return Analysis(pair, tasks, together, sentences(comparison, pair, tasks, together))


def common_seeds(arms: Sequence[ArmResult]) -> frozenset[int]:
    """Seeds that all of them have finished."""
    seeds = [frozenset(seed.seed for seed in arm.seeds) for arm in arms]
    return frozenset.intersection(*seeds) if seeds else frozenset()


def _scale(task: TaskResult) -> ReturnScale | None:
    bounds, arms = task.task.environment.bounds, [arm.scores() for arm in task.task.arms if arm.seeds]
    return return_scale(arms, bounds=bounds) if arms or bounds else None


def _verdicts(comparison: Comparison, pair: tuple[str, str] | None) -> dict[str, Verdict]:
    if pair is None or comparison.status == "interrupted":
        return {}
    scored = []
    for task in comparison.tasks:
        arms, scale = [task.task.arm(name) for name in pair], _scale(task)
        seeds = common_seeds(arms)
        if seeds and scale is not None:
            scored.append(TaskScores(task.label, tuple(arm.scores(seeds) for arm in arms), scale))
    if not scored:
        return {}
    verdicts = decide_together(
        scored,
        memory=pair[0],
        memoryless=pair[1],
        min_effect=comparison.min_effect,
        steps=comparison.config.total_timesteps,
    )
    warned = any(SECOND_LOOK in note for note in comparison.notes)
    return {
        task.label: _noted(verdicts[task.label], task, pair, comparison.config, warned=warned)
        for task in comparison.tasks
        if task.label in verdicts
    }


def _noted(verdict: Verdict, task: TaskResult, pair: tuple[str, str], config: TrainConfig, *, warned: bool) -> Verdict:
    """With notes on what held learning back or cut it off, and without what the comparison warns of already.

    On a withheld verdict nothing rests, so there is nothing to note of how it was decided; learning went as it went.
    """
    arms = [task.task.arm(name) for name in pair]
    said = (
        *reward_scale_notes(arms, ppo=config.ppo),
        *levelling_notes(arms, scale=verdict.scale, min_effect=verdict.min_effect),
    )
    decided = () if verdict.kind == "withheld" else verdict.notes
    kept = tuple(note for note in decided if not (warned and note == SECOND_LOOK))
    return dataclasses.replace(verdict, notes=(*said, *kept))


def _contrasts(task: TaskResult, pair: tuple[str, str] | None) -> tuple[PairContrast, ...]:
    """Every pair of arms, the one with memory first."""
    found = []
    for left, right in itertools.combinations(task.task.arms, 2):
        first, second = (right, left) if remembers(right.arm) and not remembers(left.arm) else (left, right)
        seeds = common_seeds([first, second])
        if seeds:
            about: About = "verdict" if (first.name, second.name) == pair else "other"
            if about == "other" and _memory_alone(first.arm, second.arm):
                about = "memory alone"
            found.append(PairContrast(about, contrast(first.scores(seeds), second.scores(seeds))))
    return tuple(found)


def _memory_alone(first: ArmConfig, second: ArmConfig) -> bool:
    """Whether the second is the first with its memory emptied at every step, and nothing else."""
    same = dataclasses.replace(second, name=first.name, reset_memory=False) == first
    return remembers(first) and second.reset_memory and same


def _twin_effects(task: TaskResult, pair: tuple[str, str] | None, min_effect: float) -> TwinEffects | None:
    if pair is None or task.twin is None:
        return None
    on_task = [task.task.arm(name) for name in pair]
    on_twin = [task.twin.arm(name) for name in pair]
    seeds, scale = common_seeds([*on_task, *on_twin]), _scale(task)
    if not seeds or scale is None:
        return None
    scores = [(arms[0].scores(seeds), arms[1].scores(seeds)) for arms in (on_task, on_twin)]
    spec = task.task.environment
    return twin_effects(
        scores[0], scores[1], min_effect=scale.min_effect(min_effect), without=without(spec.name, spec.observe)
    )


def _aggregate(comparison: Comparison, pair: tuple[str, str] | None) -> Aggregate | None:
    """Over all tasks, on the seeds that every arm has finished on every one of them; None for a single task."""
    every = [arm for task in comparison.tasks for arm in task.task.arms]
    seeds = common_seeds(every)
    if len(comparison.tasks) < 2 or not seeds:
        return None
    first = pair or ()
    names = [*first, *(arm.name for arm in comparison.arms if arm.name not in first)]
    scored = []
    for task in comparison.tasks:
        scale = _scale(task)
        assert scale is not None  # there are seeds
        scored.append(TaskScores(task.label, tuple(task.task.arm(name).scores(seeds) for name in names), scale))
    return aggregate(scored)
