"""The verdict: does memory help, by how much, and how sure are we. One task, two arms, one sentence."""

import dataclasses
import math
from typing import Any, Literal

from thrust_rl.experiment.contrast import PairedDifference
from thrust_rl.experiment.planning import MoreSeeds, more_seeds
from thrust_rl.experiment.scale import MIN_EFFECT, ReturnScale
from thrust_rl.experiment.statistics import Interval

MIN_SEEDS = 5

Kind = Literal["helps", "does not help", "hurts", "cannot tell yet", "withheld"]

SECOND_LOOK = (
    "deciding again after adding seeds is a second chance to be wrong: decide both times at 97.5 %, or on the new seeds"
    " alone"
)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What was decided about a memory arm and a memoryless one, and what it was decided by."""

    kind: Kind
    sentence: str
    memory: str
    memoryless: str
    num_seeds: int
    effect: float
    """Mean paired difference, memory minus memoryless."""
    interval: Interval | None
    """The one the decision rests on."""
    p_value: float
    """Sign-flip p-value, after Holm's correction where several tasks are decided together."""
    min_effect: float
    """Smallest effect of interest, as a return."""
    min_effect_fraction: float
    """The same as a share of the scale."""
    scale: ReturnScale
    more_seeds: MoreSeeds | None
    """Only where the answer is "cannot tell yet"."""
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Together:
    """What changes when a task is decided together with others."""

    num_tasks: int
    p_adjusted: float
    """Holm's."""
    simultaneous: Interval
    """At confidence 1 - (1 - confidence) / num_tasks."""


def decide(
    paired: PairedDifference,
    *,
    memory: str,
    memoryless: str,
    scale: ReturnScale,
    min_effect: float = MIN_EFFECT,
    together: Together | None = None,
    steps: int | None = None,
) -> Verdict:
    """Decide from the interval of the paired difference and the smallest effect of interest, δ.

    - *does not help*: the whole interval lies in [-δ, δ], even where it excludes 0.
    - *helps*, *hurts*: otherwise, the whole interval lies above 0, or below.
    - *cannot tell yet*: it holds 0 and reaches beyond δ or -δ.
    - *withheld*: fewer than `MIN_SEEDS` seeds.

    Together with other tasks, *helps* and *hurts* also need Holm's adjusted p-value to be small enough, and
    *does not help* needs the simultaneous interval to lie in [-δ, δ].

    Args:
        paired: memory minus memoryless.
        memory: name of the arm with memory.
        memoryless: name of the arm without.
        scale: what `min_effect` is a share of.
        min_effect: δ as a share of the scale.
        together: given by `family.decide_together`.
        steps: the training budget in environment steps, which the sentence then names: the verdict is about it.

    Raises:
        ConfigError: `min_effect` is not in (0, 1].

    Example:
        >>> import numpy as np
        >>> from thrust_rl.experiment.contrast import paired_difference
        >>> paired = paired_difference(np.array([31.0, 42.0, 35.0, 38.0, 29.0, 40.0]))
        >>> decide(paired, memory="lstm", memoryless="mlp", scale=ReturnScale(0.0, 500.0, "environment")).sentence
        'Memory helps: lstm minus mlp is +35.8 (95 % interval +29.0 to +42.0; p = 0.031; ahead on 6 of 6 seeds).'
    """
    delta = scale.min_effect(min_effect)
    kind = _kind(paired, delta, together)
    interval = together.simultaneous if together and kind == "does not help" else paired.interval
    needed, notes = None, paired.notes
    if kind == "cannot tell yet":
        needed, notes = _more(paired, delta, together), (*notes, SECOND_LOOK)
    p_value = together.p_adjusted if together else paired.p_value
    verdict = Verdict(
        kind=kind,
        sentence="",
        memory=memory,
        memoryless=memoryless,
        num_seeds=paired.num_seeds,
        effect=paired.mean,
        interval=interval,
        p_value=p_value,
        min_effect=delta,
        min_effect_fraction=min_effect,
        scale=scale,
        more_seeds=needed,
        notes=notes,
    )
    return dataclasses.replace(verdict, sentence=_sentence(verdict, paired, together, steps))


def _kind(paired: PairedDifference, delta: float, together: Together | None) -> Kind:
    if paired.interval is None or paired.num_seeds < MIN_SEEDS:
        return "withheld"
    if (together.simultaneous if together else paired.interval).within(delta):
        return "does not help"
    if _differs(paired, together):
        return "helps" if paired.mean > 0 else "hurts"
    return "cannot tell yet"


def _differs(paired: PairedDifference, together: Together | None) -> bool:
    """Whether a difference from 0 is shown. One task alone needs no p-value: the sign-flip test is in its interval."""
    interval = paired.interval
    if interval is None or not interval.excludes(0.0):
        return False
    return together is None or together.p_adjusted <= 1 - paired.asked + 1e-12


def _more(paired: PairedDifference, delta: float, together: Together | None) -> MoreSeeds:
    confidence = 1 - (1 - paired.asked) / (together.num_tasks if together else 1)
    return more_seeds(
        paired.num_seeds, mean=paired.mean, spread=paired.spread or 0.0, min_effect=delta, confidence=confidence
    )


def _sentence(verdict: Verdict, paired: PairedDifference, together: Together | None, steps: int | None) -> str:
    digits = decimals(verdict.min_effect or abs(verdict.effect))
    difference = f"{verdict.memory} minus {verdict.memoryless} is {verdict.effect:+z.{digits}f}"
    size, delta = verdict.num_seeds, f"{verdict.min_effect:.{digits}f}"
    interval = verdict.interval
    if verdict.kind == "withheld" or interval is None:
        seeds = "1 seed is" if size == 1 else f"{size} seeds are"
        return f"No verdict: {seeds} too few to tell, give at least {MIN_SEEDS}; so far {difference}."
    over = f" over {together.num_tasks} tasks" if together else ""
    after = "" if steps is None else f" after {steps:,} steps"
    evidence = (
        f"{difference} ({interval.percent} interval {interval.low:+z.{digits}f} to"
        f" {interval.high:+z.{digits}f}; p = {verdict.p_value:.2g}{over}; ahead on {paired.ahead} of {size} seeds)"
    )
    if verdict.kind == "does not help":
        small = (
            "; the interval excludes 0, but what it holds is too small to matter" if _differs(paired, together) else ""
        )
        return f"Memory does not help{after}: {evidence}, within ±{delta}, the smallest effect of interest{small}."
    if verdict.kind == "cannot tell yet":
        return f"Cannot tell yet whether memory helps{after}: {evidence}{_still_possible(interval, verdict)}."
    nearest = min(abs(interval.low), abs(interval.high))
    perhaps = f", though perhaps by less than {delta}, the smallest effect of interest"
    return f"Memory {verdict.kind}{after}: {evidence}{'' if nearest >= verdict.min_effect else perhaps}."


def _still_possible(interval: Interval, verdict: Verdict) -> str:
    """What is excluded all the same, and how many more seeds it takes."""
    delta = f"{verdict.min_effect:.{decimals(verdict.min_effect)}f}"
    gain, loss = interval.high > verdict.min_effect, interval.low < -verdict.min_effect
    excluded = "" if gain and loss else f", which excludes a {'loss' if gain else 'gain'} of {delta} or more"
    return f"{excluded}; {verdict.more_seeds.describe() if verdict.more_seeds else ''}"


def decimals(size: float) -> int:
    """Decimal places that show a number of this size to three digits, so that returns of any scale can be read.

    Example:
        >>> decimals(25.0), decimals(0.05), decimals(1000.0)
        (1, 4, 0)
    """
    return min(max(2 - math.floor(math.log10(size)), 0), 8) if size > 0 else 1
