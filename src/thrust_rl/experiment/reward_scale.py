"""Whether rewards were on a scale that learning can use; where they were not, an arm may have failed for that alone."""

import math
from collections.abc import Sequence

from thrust_rl.config import PPOConfig
from thrust_rl.experiment.comparison import ArmResult
from thrust_rl.experiment.jobs import SeedResult

SMALLEST = 0.1  # of returns as learning sees them; about 1 to 10 is what values should be
LARGEST = 100.0  # of values, as learning sees them
NOTHING = 1e-12  # of returns: no scale helps


def reward_scale_notes(arms: Sequence[ArmResult], *, ppo: PPOConfig) -> tuple[str, ...]:
    """What to know about returns, or values, that are far from 1 after scaling; nothing where they are not, or all 0.

    Values are at most as far from 0 as returns, so returns that are too small show values that are. Returns that are
    large do not: values discount what is far ahead.

    Args:
        arms: with their runs.
        ppo: with what rewards were multiplied by for learning, and with the discount factor.
    """
    sizes = [_sizes(seed, ppo.gamma) for arm in arms for seed in arm.seeds]
    largest = max((size for size, _ in sizes), default=0.0)
    value, earned = max(((value, size) for size, value in sizes), default=(0.0, 0.0))
    if largest <= NOTHING:
        return ()
    scale = ppo.reward_scale
    if largest * scale < SMALLEST:
        became = f"{largest:.3g} in size became {largest * scale:.2g} through --reward-scale {scale:g}"
        why, far = "too small beside the first values (unless rewards of both signs cancel)", largest
    elif value * scale > LARGEST:
        became = f"{earned:.3g} in size made values of about {value * scale:.2g} through --reward-scale {scale:g}"
        why, far = "too large" if ppo.clip_range_vf is None else "further than clip_range_vf lets values move", value
    else:
        return ()
    advice = f"both arms may do better with --reward-scale {_about_one(far):g}"
    return (f"in training mean returns of up to {became}, {why}: {advice}",)


def _sizes(seed: SeedResult, gamma: float) -> tuple[float, float]:
    """The largest return of a run's curve in size, and the value it makes: what a step pays, over those that count."""
    returns = [abs(mean) for mean in seed.curve_mean_return if math.isfinite(mean)]
    lengths = seed.evaluation["sampled"]["lengths"]
    largest, steps = max(returns, default=0.0), max(1.0, sum(lengths) / max(1, len(lengths)))
    ahead = steps if gamma == 1 else min(steps, 1 / (1 - gamma))
    return largest, largest / steps * ahead


def _about_one(largest: float) -> float:
    """The power of ten that brings it to between 1 and 10."""
    return 10.0 ** -math.floor(math.log10(largest))
