"""The sign-flip test and its inversion: a p-value and an interval for the centre of paired differences.

If two arms are exchangeable, the difference of every seed could as well have had the other sign. So the signs are
flipped in every possible way, and the p-value is the share of the patterns whose mean is at least as extreme as the
observed one (Fisher 1935, section 21). Nothing is assumed about the distribution.

Flipping the signs of a subset A of the differences d - θ makes their sum at least as large exactly where the mean of d
over A is at most θ. So all one needs are the means of the subsets: the p-value counts those on each side of 0, and
the interval lies between two of them in order (Hartigan 1969).
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from thrust_rl.experiment.statistics import ROUNDING

EXACT_UP_TO = 20
"""Seeds up to which all sign patterns are gone through: about a million."""
DRAWN_PATTERNS = 19_999
"""Beyond that, so many are drawn."""


class SignFlip(NamedTuple):
    """What the test says about the centre of the differences."""

    p_value: float
    """Two-sided, of the hypothesis that the centre is 0."""
    low: float
    high: float
    confidence: float
    """What the interval attains: never less than asked for, except where too few seeds make that impossible."""
    method: str


def sign_flip(differences: Float[np.ndarray, " seed"], *, confidence: float = 0.95, seed: int = 0) -> SignFlip:
    """Test the differences against 0, and bound their centre of symmetry.

    With n differences no two-sided p-value is below 2 / 2^n: 5 seeds reach 0.0625, 6 reach 0.031. Where `confidence`
    asks for less than that, the interval is the widest there is, the range of the differences, and its own
    `confidence` says what that is worth. Above `EXACT_UP_TO` differences, patterns are drawn at random and the
    observed one is counted among them, which keeps the test valid (Phipson & Smyth 2010).

    Args:
        differences: of two arms, by seed; at least one.
        confidence: of both sides together.
        seed: of the drawn patterns.

    Example:
        >>> sign_flip(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
        SignFlip(p_value=0.03125, low=1.0, high=6.0, confidence=0.96875, method='exact')
    """
    exact = len(differences) <= EXACT_UP_TO
    means = _all_subset_means(differences) if exact else _drawn_subset_means(differences, seed)
    patterns = len(means) + 1  # flipping nothing is a pattern too: the observed one
    noise = ROUNDING * np.abs(differences).sum()
    means[np.abs(means) <= noise] = 0.0
    at_most, at_least = 1 + np.sum(means <= 0), 1 + np.sum(means >= 0)
    rank = max(1, math.floor((1 - confidence) / 2 * patterns * (1 + ROUNDING)))
    ordered = np.partition(means, [rank - 1, len(means) - rank])
    return SignFlip(
        p_value=min(1.0, 2 * int(min(at_most, at_least)) / patterns),
        low=float(ordered[rank - 1]),
        high=float(ordered[-rank]),
        confidence=1 - 2 * rank / patterns,
        method="exact" if exact else f"{DRAWN_PATTERNS:,} drawn sign patterns",
    )


def fewest_seeds(confidence: float) -> int:
    """How many seeds it takes before the test can reject at all at this confidence.

    Example:
        >>> fewest_seeds(0.95)
        6
    """
    return math.ceil(1 - math.log2(1 - confidence) - ROUNDING)


def _all_subset_means(differences: Float[np.ndarray, " seed"]) -> Float[np.ndarray, " subset"]:
    sums, sizes = np.zeros(1), np.zeros(1)
    for difference in differences:
        sums, sizes = np.concatenate([sums, sums + difference]), np.concatenate([sizes, sizes + 1])
    return sums[1:] / sizes[1:]  # without the empty set


def _drawn_subset_means(differences: Float[np.ndarray, " seed"], seed: int) -> Float[np.ndarray, " subset"]:
    """Means of random subsets. An empty one, one draw in 2^n, flips nothing: it counts against both sides."""
    generator = np.random.default_rng(seed)
    chosen = generator.integers(2, size=(DRAWN_PATTERNS, len(differences)), dtype=np.int8).astype(np.float64)
    return chosen @ differences / np.maximum(chosen.sum(axis=1), 1.0)
