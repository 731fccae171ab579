"""Whether learning had levelled off when training stopped; where it had not, a verdict compares speeds of learning."""

from collections.abc import Sequence

import numpy as np

from thrust_rl.experiment.comparison import ArmResult
from thrust_rl.experiment.scale import ReturnScale


def still_improving(arm: ArmResult, *, scale: ReturnScale, min_effect: float) -> bool:
    """Whether an arm's learning curves were still rising at their ends.

    They were if, in more than half of the runs, the mean over the last tenth of the curve is more than δ above
    that over every tenth before; or the last point is higher than all before it, which also shows where a budget is
    so short that nothing rises by as much. What recovers from a collapse does not count: it was there before.
    An arm within δ of a known highest return has no way to go.

    Args:
        arm: with its runs.
        scale: of the task.
        min_effect: δ, as a return.
    """
    curves = [np.array(seed.curve_mean_return) for seed in arm.seeds if len(seed.curve_mean_return) > 1]
    if not curves:
        return False
    reached = float(np.mean([curve[-1] for curve in curves]))
    if scale.source == "environment" and reached >= scale.high - min_effect:
        return False
    rising = sum(_gain(curve) > min_effect or curve[-1] > curve[:-1].max() for curve in curves)
    return bool(2 * rising > len(curves))


def levelling_notes(arms: Sequence[ArmResult], *, scale: ReturnScale, min_effect: float) -> tuple[str, ...]:
    """What to know about arms that training stopped too early; nothing where all had levelled off."""
    rising = [arm.name for arm in arms if still_improving(arm, scale=scale, min_effect=min_effect)]
    if not rising:
        return ()
    return (
        f"{' and '.join(rising)} {'was' if len(rising) == 1 else 'were'} still improving when training stopped: this"
        " compares speed of learning; raise --total-timesteps",
    )


def _gain(curve: np.ndarray) -> float:
    """Mean of the last tenth of a curve's points, at least one, minus the highest mean of as many before."""
    size = max(1, len(curve) // 10)
    tenths = curve[len(curve) % size :].reshape(-1, size).mean(axis=1)
    return float(tenths[-1] - tenths[:-1].max())
