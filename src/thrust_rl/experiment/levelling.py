"""Whether learning had begun, and had levelled off, when training stopped: what a verdict compares depends on it."""

from collections.abc import Sequence

import numpy as np

from thrust_rl.experiment.comparison import ArmResult
from thrust_rl.experiment.scale import ReturnScale

NOTHING_YET = (
    "neither arm rose more than δ above where its training began: this compares two arms that learned nothing yet;"
    " raise --total-timesteps, or check --reward-scale"
)
FEW = 4  # points of a curve, below which it says nothing about whether an arm learned
RISING = 0.25  # of δ, by which a slow climb has to rise within its last quarter, where a steady one rises by δ


def still_improving(arm: ArmResult, *, scale: ReturnScale, min_effect: float) -> bool:
    """Whether an arm's learning curves were still rising at their ends.

    They were if, in more than half of the runs, one of these holds:

    - the mean over the last tenth of the curve is more than δ above that over every tenth before;
    - so is that over the last quarter, above every quarter before; no tenth before was higher, and the curve still
      rises within that quarter: a slow and steady climb, which had not come to its end by then;
    - the last point is higher than all before it: in a very short budget nothing rises by as much.

    What recovers from a collapse does not count: it was there before. An arm within δ of a known highest return has no
    way to go.

    Args:
        arm: with its runs.
        scale: of the task.
        min_effect: δ, as a return.
    """
    curves = _curves(arm)
    if not curves or _at_the_top(curves, scale, min_effect):
        return False
    return bool(2 * sum(_rises(curve, min_effect) for curve in curves) > len(curves))


def may_have_learned(arm: ArmResult, *, scale: ReturnScale, min_effect: float) -> bool:
    """Whether an arm's learning curves rose, or may have risen before they began.

    They did not if, in more than half of the runs, no tenth of the curve is in its mean more than δ above the lowest
    point of the first tenth: the lowest, because an arm that learns fast has learned by the end of that. An arm within
    δ of a known highest return has learned, and one without curves of a few points may have.

    Args:
        arm: with its runs.
        scale: of the task.
        min_effect: δ, as a return.
    """
    curves = _curves(arm)
    if not curves or _at_the_top(curves, scale, min_effect):
        return True
    level = sum(len(curve) >= FEW and _is_level(curve, min_effect) for curve in curves)
    return bool(2 * level <= len(curves))


def levelling_notes(arms: Sequence[ArmResult], *, scale: ReturnScale, min_effect: float) -> tuple[str, ...]:
    """What to know about arms that training stopped too early; nothing where all had learned and levelled off."""
    learned = not arms or any(may_have_learned(arm, scale=scale, min_effect=min_effect) for arm in arms)
    told = () if learned else (NOTHING_YET,)
    rising = [arm.name for arm in arms if still_improving(arm, scale=scale, min_effect=min_effect)]
    if not rising:
        return told
    return (
        *told,
        f"{' and '.join(rising)} {'was' if len(rising) == 1 else 'were'} still improving when training stopped: this"
        " compares speed of learning; raise --total-timesteps",
    )


def _curves(arm: ArmResult) -> list[np.ndarray]:
    """Those that can rise, without what is no number."""
    curves = [np.array(seed.curve_mean_return, np.float64) for seed in arm.seeds]
    finite = [curve[np.isfinite(curve)] for curve in curves]
    return [curve for curve in finite if len(curve) > 1]


def _at_the_top(curves: Sequence[np.ndarray], scale: ReturnScale, min_effect: float) -> bool:
    """Whether they end within δ of a known highest return."""
    reached = float(np.mean([curve[-1] for curve in curves]))
    return scale.source == "environment" and reached >= scale.high - min_effect


def _is_level(curve: np.ndarray, min_effect: float) -> bool:
    began = curve[: max(1, len(curve) // 10)].min()
    return bool(_means(curve, 10).max() <= began + min_effect)


def _rises(curve: np.ndarray, min_effect: float) -> bool:
    fast = _gain(curve, 10) > min_effect or curve[-1] > curve[:-1].max()
    return bool(fast or _climbs(curve, min_effect))


def _climbs(curve: np.ndarray, min_effect: float) -> bool:
    """Whether it rises too slowly for tenths to show it, up to its end."""
    size = len(curve) // 4
    if size < 2:
        return False
    before, last = curve[:-size], curve[-size:]
    was_there = _means(before, 7).max() > last.mean()  # in a tenth of the whole, and then it collapsed
    at = np.linspace(-0.5, 0.5, size)
    rise = float(at @ last / (at @ at))  # of the straight line through it
    return _gain(curve, 4) > min_effect and not was_there and rise > RISING * min_effect


def _gain(curve: np.ndarray, parts: int) -> float:
    """Mean of the last of so many parts of a curve, of at least one point, minus the highest mean of those before."""
    means = _means(curve, parts)
    return float(means[-1] - means[:-1].max())


def _means(curve: np.ndarray, parts: int) -> np.ndarray:
    """Over so many parts, of at least one point; the first points are left out where they do not fill one."""
    size = max(1, len(curve) // parts)
    return np.asarray(curve[len(curve) % size :].reshape(-1, size).mean(axis=1))
