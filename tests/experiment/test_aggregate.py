"""Several tasks as one: normalized, aggregated within strata, and profiled."""

import json

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from thrust_rl.config import ConfigError
from thrust_rl.experiment.aggregate import aggregate, wilson
from thrust_rl.experiment.family import TaskScores
from thrust_rl.experiment.scale import ReturnScale
from thrust_rl.experiment.statistics import ArmScores, interquartile_mean

UNIT = ReturnScale(0.0, 1.0, "environment")


def task(name, scale=UNIT, seeds=None, **arms):
    return TaskScores(
        name,
        tuple(
            ArmScores(arm, seeds or tuple(range(len(values))), tuple(map(float, values)))
            for arm, values in arms.items()
        ),
        scale,
    )


LOW, HIGH = [0.1, 0.2, 0.4, 0.3], [0.9, 0.7, 0.8, 0.95]


def test_the_aggregate_is_the_interquartile_mean_of_all_normalized_runs():
    wide = ReturnScale(-100.0, 300.0, "environment")
    result = aggregate([task("A", lstm=LOW), task("B", wide, lstm=[400 * x - 100 for x in HIGH])])
    (arm,) = result.arms
    assert arm.iqm.value == pytest.approx(interquartile_mean(np.array(LOW + HIGH)).item())
    assert arm.mean.value == pytest.approx(np.mean(LOW + HIGH))
    assert (result.tasks, result.num_seeds, result.difference) == (("A", "B"), 4, None)
    assert arm.iqm.interval.low < arm.iqm.value < arm.iqm.interval.high


def test_seeds_are_drawn_anew_within_every_task_and_tasks_stay():
    """Two tasks without spread: however seeds are drawn, half the runs are at 0.2. Draws over all runs would vary."""
    (arm,) = aggregate([task("A", lstm=[0.2] * 4), task("B", lstm=[0.8] * 4)]).arms
    assert (arm.mean.interval.low, arm.mean.interval.high) == pytest.approx((0.5, 0.5))


def test_the_interval_is_that_of_a_bootstrap_by_hand():
    (arm,) = aggregate([task("A", lstm=LOW), task("B", lstm=HIGH)], resamples=300, seed=3).arms
    draws = np.random.default_rng(3).integers(4, size=(300, 2, 4))
    by_hand = [
        interquartile_mean(np.array([LOW[i] for i in a] + [HIGH[i] for i in b])).item() for a, b in draws.tolist()
    ]
    expected = np.quantile(by_hand, [0.025, 0.975])
    assert (arm.iqm.interval.low, arm.iqm.interval.high) == pytest.approx(tuple(expected))


def test_the_difference_of_two_arms_keeps_their_seeds_in_pairs():
    shifted = [x + 0.05 for x in LOW]
    result = aggregate([task("A", lstm=shifted, mlp=LOW), task("B", lstm=HIGH, mlp=[x - 0.05 for x in HIGH])])
    assert result.difference.value == pytest.approx(0.05)
    assert (result.difference.interval.low, result.difference.interval.high) == pytest.approx((0.05, 0.05))
    backwards = task("A", lstm=shifted, mlp=LOW)
    mlp = ArmScores("mlp", (3, 2, 1, 0), tuple(LOW[::-1]))
    turned = TaskScores("A", (backwards.arms[0], mlp), UNIT)
    assert aggregate([turned]).difference == aggregate([backwards]).difference


def test_the_profile_counts_the_runs_above_each_threshold():
    result = aggregate([task("A", lstm=LOW), task("B", lstm=HIGH)], thresholds=(0.0, 0.2, 0.8, 1.0))
    (profile,) = result.profiles
    assert result.thresholds == (0.0, 0.2, 0.8, 1.0)
    assert profile.above == (1.0, 0.75, 0.25, 0.0)  # strictly above
    eight = scipy.stats.binomtest(6, 8).proportion_ci(method="wilson")
    assert (profile.low[1], profile.high[1]) == pytest.approx((eight.low, eight.high))
    assert profile.low[0] < 1.0 == pytest.approx(profile.high[0])
    assert profile.high[-1] > 0.0 == profile.low[-1]


def test_the_profile_never_rises_and_its_bands_hold_it():
    (profile,) = aggregate([task("A", lstm=LOW), task("B", lstm=HIGH)]).profiles
    assert len(profile.above) == 101
    assert (np.diff(profile.above) <= 0).all()
    assert all(low <= share <= high for low, share, high in zip(profile.low, profile.above, profile.high, strict=True))


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95]))
def test_the_bands_are_scipys_wilson_intervals(counts, confidence):
    above, runs = counts
    expected = scipy.stats.binomtest(above, runs).proportion_ci(confidence, method="wilson")
    low, high = wilson(np.array([above / runs]), runs, confidence=confidence)
    assert (low.item(), high.item()) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_of_one_seed_there_is_no_interval():
    (arm,) = aggregate([task("A", lstm=[0.5])]).arms
    assert (arm.iqm.value, arm.iqm.interval) == (0.5, None)


def test_scales_from_the_data_are_named():
    observed = ReturnScale(0.0, 0.9, "observed")
    (note,) = aggregate([task("A", lstm=LOW), task("B", observed, lstm=HIGH)]).notes
    assert note.startswith("scores of B are divided by 0.9, the largest absolute mean")
    zero = aggregate([task("A", ReturnScale(0.0, 0.0, "observed"), lstm=[0.0, 0.0])])
    assert zero.arms[0].iqm.value == 0.0


def test_an_aggregate_survives_json():
    result = aggregate([task("A", lstm=LOW, mlp=HIGH)])
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["difference"]["value"] < 0
    assert [arm["name"] for arm in data["profiles"]] == ["lstm", "mlp"]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "no task to aggregate"),
        ([task("A")], "A has no arm"),
        ([task("A", lstm=LOW), task("B", mlp=LOW)], r"A and B do not have the same arms \(\['lstm', 'mlp'\]\)"),
        ([task("A", lstm=LOW), task("B", lstm=LOW[:2])], r"lstm on B has seeds \[0, 1\], not \[0, 1, 2, 3\]"),
        ([task("A", lstm=LOW[:2]), task("B", seeds=(5, 6), lstm=LOW[:2])], r"has seeds \[5, 6\], not \[0, 1\]"),
    ],
)
def test_tasks_that_do_not_match_are_refused(tasks, message):
    with pytest.raises(ConfigError, match=message):
        aggregate(tasks)
