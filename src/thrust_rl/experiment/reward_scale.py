"""Whether rewards were on a scale that learning can use; where they were not, an arm may have failed for that alone."""

import math
from collections.abc import Sequence

from thrust_rl.experiment.comparison import ArmResult

SMALLEST, LARGEST = 0.1, 100.0  # of returns as learning sees them; about 1 to 10 is what they should be


def reward_scale_notes(arms: Sequence[ArmResult], *, reward_scale: float) -> tuple[str, ...]:
    """What to know about returns that are far from 1 after scaling; nothing where they are not, or where all are 0.

    Args:
        arms: with their runs.
        reward_scale: what rewards were multiplied by for learning.
    """
    returns = [abs(mean) for arm in arms for seed in arm.seeds for mean in seed.curve_mean_return]
    largest = max(returns, default=0.0)
    scaled = largest * reward_scale
    if largest == 0.0 or SMALLEST <= scaled <= LARGEST:
        return ()
    why = "too small beside the first values" if scaled < SMALLEST else "further than clip_range_vf lets values move"
    return (
        f"in training mean returns of up to {largest:.3g} in size became {scaled:.2g} through --reward-scale"
        f" {reward_scale:g}, {why}: both arms may do better with --reward-scale {_about_one(largest):g}",
    )


def _about_one(largest: float) -> float:
    """The power of ten that brings it to between 1 and 10."""
    return 10.0 ** -math.floor(math.log10(largest))
