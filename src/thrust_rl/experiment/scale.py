"""The return scale: what a difference in return is measured against."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

from thrust_rl.config import require
from thrust_rl.experiment.statistics import ArmScores

MIN_EFFECT = 0.05


@dataclasses.dataclass(frozen=True)
class ReturnScale:
    """The range that returns are measured on, and whether it was known before there were data.

    Raises:
        ConfigError: an end is not finite, or the range is empty though the environment declares it.

    Example:
        >>> ReturnScale(0.0, 500.0, "environment").min_effect(0.05)
        25.0
    """

    low: float
    high: float
    source: Literal["environment", "observed"]
    """`environment`: declared by it, so fixed beforehand. `observed`: taken from the results."""

    def __post_init__(self) -> None:
        """Check the rules."""
        ends = f"return range is {self.low} to {self.high}"
        require(math.isfinite(self.low) and math.isfinite(self.high), f"{ends}: give two finite numbers, or none")
        empty = self.high < self.low or (self.high == self.low and self.source == "environment")
        require(not empty, f"{ends}: the highest return must be above the lowest; swap or correct them")

    @property
    def size(self) -> float:
        """Highest minus lowest."""
        return self.high - self.low

    def min_effect(self, fraction: float) -> float:
        """The smallest effect of interest, as a return.

        Raises:
            ConfigError: `fraction` is not in (0, 1].
        """
        require(0 < fraction <= 1, f"min_effect is {fraction}: it is a share of the return scale, in (0, 1]; try 0.05")
        return fraction * self.size

    def describe(self) -> str:
        """Where it comes from, for a reader."""
        if self.source == "environment":
            return f"the environment's return range, {self.low:g} to {self.high:g}, known beforehand"
        return (
            f"{self.size:.4g}, the largest absolute mean of an arm: no return range is known for this environment, so"
            f" the scale comes from the data and was not fixed beforehand"
        )


def return_scale(arms: Sequence[ArmScores], *, bounds: tuple[float, float] | None = None) -> ReturnScale:
    """The environment's return range if it is known, else the largest absolute arm mean.

    Args:
        arms: every arm on the task itself, not on its twin.
        bounds: lowest and highest return of an episode, if known.

    Raises:
        ConfigError: `bounds` are not finite or not in order, or there is neither an arm nor bounds.

    Example:
        >>> return_scale([ArmScores("mlp", (0, 1), (-900.0, -1100.0))]).size
        1000.0
    """
    if bounds is not None:
        return ReturnScale(float(bounds[0]), float(bounds[1]), "environment")
    require(len(arms) > 0, "no arm and no return range: give one of them, or there is no scale")
    return ReturnScale(0.0, max(abs(float(arm.values.mean())) for arm in arms), "observed")
