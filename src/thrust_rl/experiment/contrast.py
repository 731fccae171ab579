"""Two arms on the same seeds: the paired difference, the unpaired difference and the probability of improvement."""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit

from thrust_rl.config import require
from thrust_rl.experiment.signflip import SignFlip, sign_flip
from thrust_rl.experiment.statistics import (
    CONFIDENCE,
    RESAMPLES,
    ROUNDING,
    ArmScores,
    Estimate,
    Interval,
    bca_interval,
    mean,
)


@dataclasses.dataclass(frozen=True)
class PairedDifference:
    """Differences by seed, summarized."""

    num_seeds: int
    mean: float
    spread: float | None
    """Standard deviation over the seeds; None for one seed."""
    interval: Interval | None
    """The one that decides: the wider, end by end, of Student's t and the inverted sign-flip test."""
    bca: Interval | None
    """For comparison with other reports; too narrow at 10 seeds to decide by."""
    p_value: float
    """Two-sided sign-flip p-value."""
    p_method: str
    ahead: int
    """Seeds with a positive difference."""
    level: int
    """Seeds with no difference."""
    notes: tuple[str, ...]
    asked: float = CONFIDENCE
    """The confidence asked for. With too few seeds the interval attains less, which its own `confidence` says."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Contrast:
    """Everything that is said about two arms; positive numbers are in favour of `first`."""

    first: str
    second: str
    paired: PairedDifference
    unpaired: Estimate
    """Difference of the means with Welch's interval, which makes no use of the pairs."""
    improvement: Estimate
    """P(first > second) + ½ P(first = second) for one run of each."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return dataclasses.asdict(self)


def contrast(first: ArmScores, second: ArmScores, *, confidence: float = CONFIDENCE, seed: int = 0) -> Contrast:
    """Compare two arms that were trained with the same seeds.

    Raises:
        ConfigError: the arms do not have the same seeds.

    Example:
        >>> lstm = ArmScores("lstm", (0, 1, 2, 3, 4), (422.2, 487.7, 473.3, 456.1, 447.8))
        >>> mlp = ArmScores("mlp", (0, 1, 2, 3, 4), (167.7, 169.1, 138.7, 147.6, 176.7))
        >>> result = contrast(lstm, mlp)
        >>> round(result.paired.mean, 1), result.paired.p_value, result.improvement.value
        (297.5, 0.0625, 1.0)
    """
    return Contrast(
        first.name,
        second.name,
        paired_difference(differences(first, second), confidence=confidence, seed=seed),
        welch(first.values, second.values, confidence=confidence),
        probability_of_improvement(first.values, second.values, confidence=confidence),
    )


def differences(first: ArmScores, second: ArmScores) -> Float[np.ndarray, " seed"]:
    """First minus second, by seed, in the order of the first's seeds.

    Raises:
        ConfigError: the arms do not have the same seeds.
    """
    alone = sorted(set(first.seeds) ^ set(second.seeds))
    require(
        not alone,
        f"{first.name} and {second.name} do not have the same seeds (only one of them has {alone}):"
        " differences are taken seed by seed; finish those, or drop them from both",
    )
    of_second = dict(zip(second.seeds, second.scores, strict=True))
    return first.values - np.array([of_second[seed] for seed in first.seeds], np.float64)


def paired_difference(
    differences: Float[np.ndarray, " seed"],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """Mean difference with the interval that decides and the sign-flip p-value.

    The interval is, end by end, the wider of two. The inverted sign-flip test makes a false claim of a difference
    between exchangeable arms at most as often as it says, whatever their distribution. Student's t covers the mean
    where many differences are tied, as at a ceiling, and the sign-flip interval is far too narrow.

    Args:
        differences: by seed; at least one.
        confidence: of both sides together.
        resamples: of the bootstrap.
        seed: of the bootstrap, and of drawn sign patterns.

    Example:
        >>> paired_difference(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).interval.low.__round__(2)
        1.0
    """
    size, flips = len(differences), sign_flip(differences, confidence=confidence, seed=seed)
    noise = ROUNDING * np.abs(differences).sum()
    return PairedDifference(
        num_seeds=size,
        mean=float(np.mean(differences)),
        spread=float(np.std(differences, ddof=1)) if size > 1 else None,
        interval=_wider(differences, flips, confidence),
        bca=bca_interval(differences, mean, confidence=confidence, resamples=resamples, seed=seed),
        p_value=flips.p_value,
        p_method=flips.method,
        ahead=int(np.sum(differences > noise)),
        level=int(np.sum(np.abs(differences) <= noise)),
        notes=_notes(differences, flips, confidence),
        asked=confidence,
    )


def decision_interval(
    differences: Float[np.ndarray, " seed"], *, confidence: float = CONFIDENCE, seed: int = 0
) -> Interval | None:
    """The interval of `paired_difference` alone, for another confidence; None for one seed."""
    return _wider(differences, sign_flip(differences, confidence=confidence, seed=seed), confidence)


def _wider(differences: Float[np.ndarray, " seed"], flips: SignFlip, confidence: float) -> Interval | None:
    if len(differences) < 2:
        return None
    center, spread = float(np.mean(differences)), float(np.std(differences, ddof=1))
    half = t_half_width(spread, len(differences), confidence=confidence)
    low, high = min(flips.low, center - half), max(flips.high, center + half)
    attained = min(confidence, flips.confidence)
    return Interval(low, high, attained, "Student's t and inverted sign-flip test, the wider")


def t_half_width(spread: float, size: int, *, confidence: float) -> float:
    """Half the width of Student's t interval of a mean: t_{size-1} · spread / √size."""
    return float(stdtrit(size - 1, (1 + confidence) / 2)) * spread / math.sqrt(size)


def welch(
    first: Float[np.ndarray, " seed"], second: Float[np.ndarray, " other"], *, confidence: float = CONFIDENCE
) -> Estimate:
    """Difference of two means with the interval of Welch (1947), which pairs nothing and lets the variances differ.

    Example:
        >>> welch(np.array([3.0, 5.0]), np.array([1.0, 1.0])).value
        3.0
    """
    difference = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2:
        return Estimate(difference, None)
    parts = np.array([first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)])
    if parts.sum() == 0:
        return Estimate(difference, Interval(difference, difference, confidence, "all values of either are equal"))
    freedom = parts.sum() ** 2 / np.sum(parts**2 / np.array([len(first) - 1, len(second) - 1]))
    half = float(stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(parts.sum()))
    return Estimate(difference, Interval(difference - half, difference + half, confidence, "Welch's t"))


def probability_of_improvement(
    first: Float[np.ndarray, " seed"], second: Float[np.ndarray, " other"], *, confidence: float = CONFIDENCE
) -> Estimate:
    """P(first > second) + ½ P(first = second) over all pairs of runs (Agarwal et al. 2021, section 4).

    The interval is method 5 of Newcombe (2006): the θ whose distance to the estimate is at most z standard errors, the
    error being taken at θ. Where one arm beats the other in every pair the estimate is 1 and a bootstrap would
    give [1, 1]; this interval still has a width that shrinks with the number of seeds. It makes no use of the pairing
    by seed, and with many ties it is wider than it need be.

    Example:
        >>> ten = np.arange(10.0)
        >>> result = probability_of_improvement(ten + 10, ten)
        >>> result.value, round(result.interval.low, 2), result.interval.high
        (1.0, 0.8, 1.0)
    """
    sign = np.sign(first[:, None] - second[None, :])
    value, pairs, balanced = float((sign.mean() + 1) / 2), sign.size, (len(first) + len(second)) / 2 - 1
    if min(len(first), len(second)) < 2:
        return Estimate(value, None)
    z = float(ndtri((1 + confidence) / 2))
    low = 0.0 if value == 0 else brentq(_excess, 0.0, min(value, 1 - 1e-9), args=(value, z, balanced, pairs))
    high = 1.0 if value == 1 else brentq(_excess, max(value, 1e-9), 1.0, args=(value, z, balanced, pairs))
    return Estimate(value, Interval(float(low), float(high), confidence, "Newcombe's method 5"))


def _excess(theta: float, value: float, z: float, balanced: float, pairs: int) -> float:
    """Squared distance of θ to the estimate, minus z² times the variance of Hanley & McNeil (1982) at θ."""
    variance = theta * (1 - theta) * (1 + balanced * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / pairs
    return (value - theta) ** 2 - z**2 * variance


def _notes(differences: Float[np.ndarray, " seed"], flips: SignFlip, confidence: float) -> tuple[str, ...]:
    size, notes = len(differences), []
    if flips.confidence < confidence - ROUNDING:
        notes.append(
            f"with {size} seeds no sign-flip p-value is below {2 / 2**size:.3g}, so that part of the interval is the"
            f" range of the differences, worth {flips.confidence:.2%}"
        )
    level = int(np.sum(np.abs(differences) <= ROUNDING * np.abs(differences).sum()))
    equal = size > 1 and np.ptp(differences) == 0
    if equal or 2 * level > size > 1:
        unseen = 1 - 0.05 ** (1 / size)
        tied = f"all {size} differences are equal" if equal else f"{level} of {size} differences are 0"
        notes.append(
            f"{tied}; an outcome that befalls fewer than {unseen:.0%} of the seeds may well not have come up in {size},"
            " and then no interval knows of it"
        )
    return tuple(notes)
