"""How many more seeds an undecided comparison needs, from the spread observed so far."""

import dataclasses

import numpy as np
from scipy.special import ndtri, stdtrit

from thrust_rl.experiment.signflip import fewest_seeds

POWER = 0.8
CAP = 1_000


@dataclasses.dataclass(frozen=True)
class MoreSeeds:
    """Seeds to add, rounded up to two digits. `CAP` means that many or more."""

    likely: int
    """If the true mean is what it looks like now: decides with probability `POWER`. Never more than `at_most`."""
    at_most: int
    """Whatever the true mean is: the interval is then no wider than δ, and such an interval always decides."""

    def describe(self) -> str:
        """For the end of a sentence.

        Example:
            >>> MoreSeeds(8, 540).describe()
            'about 8 more seeds needed if the mean stays what it is, 540 whatever it is'
        """
        if self.likely >= CAP:
            return f"more than {CAP:,} more seeds needed"
        if self.likely == self.at_most:
            return f"about {self.likely} more seed{'s' if self.likely > 1 else ''} needed"
        most = f"more than {CAP:,}" if self.at_most >= CAP else f"{self.at_most}"
        seeds = f"{self.likely} more seed{'s' if self.likely > 1 else ''}"
        return f"about {seeds} needed if the mean stays what it is, {most} whatever it is"


def more_seeds(num_seeds: int, *, mean: float, spread: float, min_effect: float, confidence: float = 0.95) -> MoreSeeds:
    """Seeds to add before the interval decides, if the spread stays what it is.

    Half the interval's width with N seeds is h(N) = t_{N-1} · spread / √N. An interval decides if it excludes 0, or
    lies in [-δ, δ].

    - If h(N) ≤ δ/2 it does one or the other wherever it lies: one that holds 0 reaches no farther than 2h(N) ≤ δ.
      This gives `at_most`, from the spread alone.
    - If the true mean is the observed one, m, it has to come within |m| (to exclude 0) or within δ - |m| (to lie
      inside), whichever is easier, and has to leave room for the mean to move: h(N) + z_{0.8} · spread / √N is at most
      the larger of the two. This gives `likely`, and it is optimistic where m is larger than the truth.

    Args:
        num_seeds: how many there are.
        mean: of the paired differences.
        spread: their standard deviation.
        min_effect: δ, as a return.
        confidence: of the interval.

    Example:
        >>> more_seeds(10, mean=5.0, spread=40.0, min_effect=25.0)
        MoreSeeds(likely=24, at_most=32)
    """
    totals = np.arange(2, num_seeds + CAP + 1)
    error = spread / np.sqrt(totals)
    half = stdtrit(totals - 1, (1 + confidence) / 2) * error
    always = half <= min_effect / 2
    now = half + float(ndtri(POWER)) * error <= max(abs(mean), min_effect - abs(mean))
    floor = max(num_seeds + 1, fewest_seeds(confidence))
    at_most = _missing(totals, always & (totals >= floor), num_seeds)
    return MoreSeeds(min(at_most, _missing(totals, now & (totals >= floor), num_seeds)), at_most)


def _missing(totals: np.ndarray, enough: np.ndarray, num_seeds: int) -> int:
    """From the first total that is enough: how many are missing, rounded up to two digits and capped."""
    if not enough.any():
        return CAP
    missing = int(totals[np.argmax(enough)]) - num_seeds
    step = 10 ** max(len(str(missing)) - 2, 0)
    return min(-(-missing // step) * step, CAP)
