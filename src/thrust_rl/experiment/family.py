"""Several tasks decided together, so that asking more questions does not make a false answer more likely."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from thrust_rl.config import require
from thrust_rl.experiment.contrast import decision_interval, differences, paired_difference
from thrust_rl.experiment.scale import MIN_EFFECT, ReturnScale
from thrust_rl.experiment.statistics import CONFIDENCE, ArmScores
from thrust_rl.experiment.verdict import Together, Verdict, decide


@dataclasses.dataclass(frozen=True)
class TaskScores:
    """What the arms reached on one task.

    Raises:
        ConfigError: two arms have the same name.
    """

    task: str
    arms: tuple[ArmScores, ...]
    scale: ReturnScale

    def __post_init__(self) -> None:
        """Check the rules."""
        names = [arm.name for arm in self.arms]
        require(len(set(names)) == len(names), f"arms of {self.task} are {', '.join(names)}: each needs its own name")

    def arm(self, name: str) -> ArmScores:
        """The arm of that name.

        Raises:
            ConfigError: the task has none.
        """
        found = [arm for arm in self.arms if arm.name == name]
        have = ", ".join(arm.name for arm in self.arms)
        require(len(found) == 1, f"{self.task} has no scores of {name!r}: it has {have}; run that arm on every task")
        return found[0]


def decide_together(
    tasks: Sequence[TaskScores],
    *,
    memory: str,
    memoryless: str,
    min_effect: float = MIN_EFFECT,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    steps: int | None = None,
) -> dict[str, Verdict]:
    """One verdict per task, by its name. A single task is decided as `verdict.decide` does.

    Over all tasks, the probability of any false *helps* or *hurts* is at most 1 - `confidence` (Holm 1979), and so is
    that of any false *does not help* (Bonferroni). `steps` is the training budget, for the sentences.

    Raises:
        ConfigError: no task, two of the same name, an arm that a task lacks, or arms with different seeds.

    Example:
        >>> seeds, scale = tuple(range(8)), ReturnScale(0.0, 500.0, "environment")
        >>> lstm = ArmScores("lstm", seeds, (422.0, 487.0, 473.0, 456.0, 447.0, 481.0, 462.0, 470.0))
        >>> mlp = ArmScores("mlp", seeds, (167.0, 169.0, 138.0, 147.0, 176.0, 155.0, 160.0, 171.0))
        >>> tasks = [TaskScores("flicker", (lstm, mlp), scale), TaskScores("burst", (lstm, mlp), scale)]
        >>> verdicts = decide_together(tasks, memory="lstm", memoryless="mlp")
        >>> verdicts["burst"].kind, verdicts["burst"].p_value
        ('helps', 0.015625)
    """
    names = [task.task for task in tasks]
    require(len(tasks) > 0, "no task to decide: give at least one")
    require(len(set(names)) == len(names), f"tasks are {', '.join(names)}: each may come once")
    by_seed = [differences(task.arm(memory), task.arm(memoryless)) for task in tasks]
    paired = [paired_difference(each, confidence=confidence, seed=seed) for each in by_seed]
    adjusted = holm(np.array([each.p_value for each in paired]))
    stricter = 1 - (1 - confidence) / len(tasks)
    verdicts = {}
    for task, raw, each, p_adjusted in zip(tasks, by_seed, paired, adjusted, strict=True):
        simultaneous = decision_interval(raw, confidence=stricter, seed=seed)
        together = Together(len(tasks), float(p_adjusted), simultaneous) if simultaneous and len(tasks) > 1 else None
        verdicts[task.task] = decide(
            each,
            memory=memory,
            memoryless=memoryless,
            scale=task.scale,
            min_effect=min_effect,
            together=together,
            steps=steps,
        )
    return verdicts


def holm(p_values: Float[np.ndarray, " task"]) -> Float[np.ndarray, " task"]:
    """Adjusted p-values (Holm 1979): the k-th smallest of m times m - k + 1, made increasing, at most 1.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
