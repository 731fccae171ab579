"""Learning curves of many seeds as one line and one band, thinned to what a plot can show."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from thrust_rl.experiment.contrast import t_half_width
from thrust_rl.experiment.report.data import Seed
from thrust_rl.experiment.statistics import CONFIDENCE
from thrust_rl.experiment.verdict import MIN_SEEDS

POINTS = 160  # of a thinned curve


@dataclasses.dataclass(frozen=True)
class Band:
    """The mean curve of an arm, at the steps where every seed has a value."""

    steps: Int[np.ndarray, " point"]
    mean: Float[np.ndarray, " point"]
    low: Float[np.ndarray, " point"]
    high: Float[np.ndarray, " point"]
    num_seeds: int

    @property
    def is_interval(self) -> bool:
        """Whether the band is a 95 % interval; else it spans the seeds, which are too few for one."""
        return self.num_seeds >= MIN_SEEDS


def band(seeds: Sequence[Seed], *, points: int = POINTS) -> Band | None:
    """Mean over the seeds, with Student's t interval at every point; with few seeds, the lowest and highest.

    Seeds without a curve are left out; None if none has one, or if they share no step.
    """
    curves = [dict(zip(seed.steps, seed.returns, strict=False)) for seed in seeds if seed.steps]
    shared = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    if not shared:
        return None
    steps = [shared[i] for i in thinned(len(shared), points)]
    returns = np.array([[curve[step] for step in steps] for curve in curves], np.float64)
    mean, size = returns.mean(axis=0), len(curves)
    low, high = returns.min(axis=0), returns.max(axis=0)
    if size >= MIN_SEEDS:
        half = t_half_width(1.0, size, confidence=CONFIDENCE) * returns.std(axis=0, ddof=1)
        low, high = mean - half, mean + half
    return Band(np.array(steps, np.int64), mean, low, high, size)


def thinned(size: int, points: int = POINTS) -> list[int]:
    """At most `points` indices into a sequence of that size, evenly spread, both ends included.

    Example:
        >>> thinned(9, 3), thinned(2, 3)
        ([0, 4, 8], [0, 1])
    """
    if size <= points:
        return list(range(size))
    return [round(i * (size - 1) / (points - 1)) for i in range(points)]
