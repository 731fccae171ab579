"""The fully observable twin: which part of the memory effect is due to partial observability."""

import dataclasses
from typing import Any

import numpy as np

from thrust_rl.config import require
from thrust_rl.experiment.contrast import PairedDifference, differences, paired_difference
from thrust_rl.experiment.statistics import CONFIDENCE, ArmScores
from thrust_rl.experiment.verdict import MIN_SEEDS, decimals


@dataclasses.dataclass(frozen=True)
class TwinEffects:
    """Three differences between a memory arm and a memoryless one, each with an interval and its meaning."""

    task: PairedDifference
    """Memory effect on the task."""
    twin: PairedDifference
    """Memory bias: the same difference where nothing is hidden."""
    due_to_hiding: PairedDifference
    """The first minus the second, seed by seed: the effect that is due to partial observability."""
    sentences: tuple[str, str, str]

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return dataclasses.asdict(self)


def twin_effects(
    task: tuple[ArmScores, ArmScores],
    twin: tuple[ArmScores, ArmScores],
    *,
    min_effect: float,
    without: str | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> TwinEffects:
    """Memory effect, memory bias and their difference, paired by seed across both conditions.

    Args:
        task: the memory arm and the memoryless arm on the task.
        twin: the same arms on its fully observable twin.
        min_effect: smallest effect of interest, as a return; only the number of decimals printed depends on it.
        without: what the twin lacks, where it is not known to hide nothing; the sentences then claim no more.
        confidence: of every interval.
        seed: of the bootstrap, and of drawn sign patterns.

    Raises:
        ConfigError: the four do not have the same seeds, or the arms differ.

    Example:
        >>> def arm(name, *scores):
        ...     return ArmScores(name, (0, 1, 2, 3, 4), scores)
        >>> on_task = arm("lstm", 422.0, 488.0, 473.0, 456.0, 448.0), arm("mlp", 168.0, 169.0, 139.0, 148.0, 177.0)
        >>> on_twin = arm("lstm", 500.0, 500.0, 492.5, 500.0, 500.0), arm("mlp", 500.0, 500.0, 500.0, 500.0, 500.0)
        >>> effects = twin_effects(on_task, on_twin, min_effect=25.0)
        >>> round(effects.task.mean, 1), effects.twin.mean, round(effects.due_to_hiding.mean, 1)
        (297.2, -1.5, 298.7)
    """
    names = [[arm.name for arm in pair] for pair in (task, twin)]
    require(names[0] == names[1], f"arms are {names[0]} on the task and {names[1]} on its twin: compare the same two")
    on_task = differences(*task)
    seeds = task[0].seeds
    require(
        set(seeds) == set(twin[0].seeds),
        f"seeds are {sorted(seeds)} on the task and {sorted(twin[0].seeds)} on its twin:"
        " the same are needed; finish those that are missing, or drop them from both",
    )
    by_seed = dict(zip(twin[0].seeds, differences(*twin), strict=True))
    on_twin = np.array([by_seed[one] for one in seeds])
    measured = (on_task, on_twin, on_task - on_twin)
    effects = [paired_difference(each, confidence=confidence, seed=seed) for each in measured]
    return TwinEffects(effects[0], effects[1], effects[2], _sentences(effects, names[0], decimals(min_effect), without))


def _sentences(
    effects: list[PairedDifference], names: list[str], digits: int, without: str | None
) -> tuple[str, str, str]:
    task, twin, hiding = (_amount(each, digits) for each in effects)
    memory, memoryless = names
    on_task = (
        f"On the task, {memory} scores {task} against {memoryless}: what memory is worth here, for whatever reason."
    )
    if without is not None:
        return (
            on_task,
            f"On its twin, without {without}, it scores {twin}: what memory is worth there, for whatever reason.",
            f"The difference, {hiding}, is the part of the effect that is due to {without}.",
        )
    return (
        on_task,
        f"On its twin, where nothing is hidden, it scores {twin}: what the recurrent network costs or brings when there"
        f" is nothing to remember.",
        f"The difference, {hiding}, is the part of the effect that is due to what the observation hides.",
    )


def _amount(paired: PairedDifference, digits: int) -> str:
    value = f"{paired.mean:+z.{digits}f}"
    if paired.interval is None or paired.num_seeds < MIN_SEEDS:
        return f"{value} (too few seeds for an interval)"
    low, high = paired.interval.low, paired.interval.high
    unclear = "" if paired.interval.excludes(0.0) else ", so its sign is open"
    return f"{value} ({paired.interval.percent} interval {low:+z.{digits}f} to {high:+z.{digits}f}{unclear})"
