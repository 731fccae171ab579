"""A verdict says where rewards were on a scale that learning cannot use: then an arm may have failed for that alone."""

import dataclasses
import re

import pytest

from comparisons_for_tests import LSTM, MLP, comparison, seed_result
from thrust_rl.config import PPOConfig, TrainConfig, arm_from
from thrust_rl.experiment.comparison import ArmResult
from thrust_rl.experiment.reward_scale import reward_scale_notes


def arm(*curves):
    seeds = tuple(
        dataclasses.replace(seed_result(seed, 1.0), curve_steps=tuple(range(len(curve))), curve_mean_return=curve)
        for seed, curve in enumerate(curves)
    )
    return ArmResult(arm_from("lstm"), 1e-3, 17539, seeds)


@pytest.mark.parametrize(
    ("curves", "reward_scale", "said"),
    [
        ([(20.0, 480.0), (20.0, 50.0)], 0.02, None),  # CartPole, as it comes
        ([(-0.5, 0.2), (-0.5, -0.9)], 0.02, "up to 0.9 in size became 0.018 .* with --reward-scale 10$"),
        ([(-0.5, 0.2), (-0.5, -0.9)], 1.0, None),
        ([(-1500.0, -160.0)], 0.02, None),
        ([(-25_000.0, 3.0)], 0.02, "up to 2.5e.04 in size became 5e.02 .* with --reward-scale 0.0001$"),
        ([(1.0,)], 0.02, "with --reward-scale 1$"),
        ([(0.0, 0.0)], 0.02, None),  # nothing was ever earned: no scale helps
        ([()], 0.02, None),
    ],
)
def test_returns_far_from_1_are_told_with_the_scale_that_brings_them_there(curves, reward_scale, said):
    notes = reward_scale_notes([arm(*curves)], reward_scale=reward_scale)
    assert (said is None) == (notes == ())
    if said is not None:
        [note] = notes
        assert re.search(said, note)


def test_the_largest_of_both_arms_counts():
    small, large = arm((0.5, 1.0)), arm((0.5, 40.0))
    assert reward_scale_notes([small], reward_scale=0.02)
    assert not reward_scale_notes([small, large], reward_scale=0.02)


def test_a_verdict_says_so_and_one_on_a_good_scale_does_not():
    made = comparison({"lstm": LSTM, "mlp": MLP})
    small = dataclasses.replace(made, config=TrainConfig(ppo=PPOConfig(reward_scale=1e-5)))
    told = [[note for note in each.analysis.tasks[0].verdict.notes if "scale" in note] for each in (made, small)]
    assert told[0] == [] and len(told[1]) == 1
