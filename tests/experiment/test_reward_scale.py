"""A verdict says where rewards were on a scale that learning cannot use: then an arm may have failed for that alone."""

import dataclasses
import html
import io
import math
import re

import pytest
from rich.console import Console

from comparisons_for_tests import LSTM, MLP, comparison, seed_result
from thrust_rl.config import PPOConfig, TrainConfig, arm_from
from thrust_rl.experiment.comparison import ArmResult
from thrust_rl.experiment.report.data import read
from thrust_rl.experiment.report.markdown import report_markdown, text
from thrust_rl.experiment.report.page import report_html
from thrust_rl.experiment.reward_scale import reward_scale_notes
from thrust_rl.experiment.tables import shown


def arm(*curves, length=1):
    """Of runs with these curves, whose evaluation episodes are so long."""
    played = {"sampled": {"mean_return": 1.0, "returns": [1.0, 1.0], "lengths": [length, length], "cut": 0}}
    seeds = tuple(
        dataclasses.replace(
            seed_result(seed, 1.0),
            curve_steps=tuple(range(len(curve))),
            curve_mean_return=curve,
            evaluation=played,
        )
        for seed, curve in enumerate(curves)
    )
    return ArmResult(arm_from("lstm"), 1e-3, 17539, seeds)


def require_said(notes, said):
    assert (said is None) == (notes == ())
    if said is not None:
        [note] = notes
        assert re.search(said, note)


@pytest.mark.parametrize(
    ("curves", "reward_scale", "said"),
    [
        ([(20.0, 480.0), (20.0, 50.0)], 0.02, None),  # CartPole, as it comes
        ([(-0.5, 0.2), (-0.5, -0.9)], 0.02, "up to 0.9 in size became 0.018 .* cancel.: .* with --reward-scale 10$"),
        ([(-0.5, 0.2), (-0.5, -0.9)], 1.0, None),
        ([(-1500.0, -160.0)], 0.02, None),
        ([(-25_000.0, 3.0)], 0.02, "up to 2.5e.04 in size made values of about 5e.02 .* with --reward-scale 0.0001$"),
        ([(1.0,)], 0.02, "with --reward-scale 1$"),
        ([(0.0, 0.0)], 0.02, None),  # nothing was ever earned: no scale helps
        ([()], 0.02, None),
        ([(math.inf, math.nan, -math.inf)], 0.02, None),
        ([(math.nan, math.inf, 0.5)], 0.02, "up to 0.5 in size became 0.01 "),  # of what is a number
        ([(math.inf, 40.0)], 0.02, None),
        ([(5e-324, 1e-12)], 0.02, None),
        ([(2e-12,)], 0.02, "with --reward-scale 1e.12$"),
        ([(1e308,)], 0.02, "with --reward-scale 1e-308$"),
    ],
)
def test_returns_far_from_1_are_told_with_the_scale_that_brings_them_there(curves, reward_scale, said):
    require_said(reward_scale_notes([arm(*curves)], ppo=PPOConfig(reward_scale=reward_scale)), said)


@pytest.mark.parametrize(
    ("returns", "length", "gamma", "said"),
    [
        (10_000.0, 10_000, 0.99, None),  # of 1 a step: values of 100, times 0.02
        (10_000.0, 10_000, 1.0, "up to 1e.04 in size made values of about 2e.02 .* --reward-scale 0.0001$"),
        (10_000.0, 50, 0.99, "made values of about 2e.02 .* --reward-scale 0.0001$"),  # an episode is within sight
        (1e6, 1000, 0.99, "up to 1e.06 in size made values of about 2e.03 .* --reward-scale 1e-05$"),
        (1e6, 1000, 0.0, None),  # 1,000 a step, and nothing ahead
    ],
)
def test_too_large_is_about_values_which_discount_what_is_far_ahead(returns, length, gamma, said):
    require_said(reward_scale_notes([arm((returns,), length=length)], ppo=PPOConfig(gamma=gamma)), said)


def test_the_run_of_the_largest_values_is_told_though_others_earned_more():
    short, long = arm((10_000.0,), length=1), arm((50_000.0,), length=50_000)
    require_said(reward_scale_notes([short, long], ppo=PPOConfig()), "up to 1e.04 in size made values of about 2e.02 ")


@pytest.mark.parametrize(("clip", "named"), [(0.2, True), (None, False)])
def test_only_a_clip_that_is_there_is_named(clip, named):
    [note] = reward_scale_notes([arm((1e5,))], ppo=PPOConfig(clip_range_vf=clip))
    assert ("clip_range_vf" in note) is named and ("too large" in note) is not named


def test_the_largest_of_both_arms_counts():
    small, large = arm((0.5, 1.0)), arm((0.5, 40.0))
    assert reward_scale_notes([small], ppo=PPOConfig())
    assert not reward_scale_notes([small, large], ppo=PPOConfig())


def test_a_verdict_says_so_and_one_on_a_good_scale_does_not():
    made = comparison({"lstm": LSTM, "mlp": MLP})
    small = dataclasses.replace(made, config=TrainConfig(ppo=PPOConfig(reward_scale=1e-5)))
    told = [[note for note in each.analysis.tasks[0].verdict.notes if "scale" in note] for each in (made, small)]
    assert told[0] == [] and len(told[1]) == 1


@pytest.mark.parametrize("seeds", [1, 4, 6])
def test_a_pilot_run_is_told_too_wherever_its_verdict_is_shown(seeds):
    made = comparison({"lstm": LSTM[:seeds], "mlp": MLP[:seeds]})
    small = dataclasses.replace(made, config=TrainConfig(ppo=PPOConfig(reward_scale=1e-5)))
    verdict = small.analysis.tasks[0].verdict
    assert (verdict.kind == "withheld") is (seeds < 5)
    [note] = [note for note in verdict.notes if "--reward-scale" in note]
    console = Console(width=10_000, file=io.StringIO())
    console.print(shown(small))
    assert f"Note: {note}.\n" in re.sub(" +\n", "\n", console.file.getvalue())
    assert f"- Note: {text(note)}\n" in report_markdown(read(small), pictures=[])
    assert f"Note: {html.escape(note)}" in report_html(read(small))


def test_how_a_withheld_verdict_would_be_decided_is_not_told():
    made = comparison({"lstm": LSTM[:3], "mlp": MLP[:3]})
    [pair] = made.analysis.tasks[0].contrasts
    assert pair.contrast.paired.notes and made.analysis.tasks[0].verdict.notes == ()
