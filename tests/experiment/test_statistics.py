"""Estimates of one arm equal their closed forms and SciPy, and say what they cannot know."""

import json

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thrust_rl.config import ConfigError
from thrust_rl.experiment.statistics import (
    ArmScores,
    Interval,
    bca_interval,
    interquartile_mean,
    interquartile_weights,
    mean,
    median,
    summarize,
)

SKEWED = np.array([500.0, 500.0, 492.5, 500.0, 434.3, 500.0, 334.1, 488.0, 500.0, 471.0])
finite = st.floats(-1e3, 1e3, allow_nan=False)


def arm(*scores, name="lstm"):
    return ArmScores(name, tuple(range(len(scores))), scores)


# --- point estimates


@pytest.mark.parametrize("size", [4, 8, 12, 40])
def test_the_interquartile_mean_is_scipys_trimmed_mean_where_four_divides_the_size(size):
    sample = np.random.default_rng(size).normal(size=(3, size))
    expected = scipy.stats.trim_mean(sample, 0.25, axis=-1)
    np.testing.assert_allclose(interquartile_mean(sample), expected, rtol=1e-12)


def test_of_ten_values_the_third_and_the_eighth_count_half():
    np.testing.assert_allclose(interquartile_weights(10) * 5, [0, 0, 0.5, 1, 1, 1, 1, 0.5, 0, 0], atol=1e-12)


@pytest.mark.parametrize("size", range(1, 12))
def test_the_weights_of_the_middle_half_are_symmetric_and_sum_to_one(size):
    weights = interquartile_weights(size)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights, weights[::-1], atol=1e-12)
    assert weights.max() <= 2 / size + 1e-12  # half of the mass counts double


def test_the_interquartile_mean_is_the_mean_of_the_middle_half_of_every_value_repeated():
    sample = np.random.default_rng(0).normal(size=7)
    expected = np.sort(np.repeat(sample, 4))[7:21].mean()  # 4 copies of 7 values: 28, of which the middle 14
    assert interquartile_mean(sample).item() == pytest.approx(expected, rel=1e-12)


@given(arrays(np.float64, st.integers(1, 12), elements=finite), st.randoms(use_true_random=False))
def test_the_interquartile_mean_ignores_order_and_lies_among_the_values(sample, random):
    value = interquartile_mean(sample).item()
    shuffled = sample.tolist()
    random.shuffle(shuffled)
    assert interquartile_mean(np.array(shuffled)).item() == value
    assert sample.min() - 1e-9 <= value <= sample.max() + 1e-9


def test_one_wild_value_does_not_move_the_interquartile_mean():
    assert interquartile_mean(np.array([1.0, 2.0, 3.0, 1e9])) == interquartile_mean(np.array([1.0, 2.0, 3.0, 4.0]))


# --- bootstrap intervals


@pytest.mark.parametrize("statistic", [mean, median, interquartile_mean])
@pytest.mark.parametrize("sample", [SKEWED, SKEWED[:5], np.random.default_rng(3).exponential(size=20)])
def test_the_bca_interval_is_scipys(statistic, sample):
    ours = bca_interval(sample, statistic, resamples=10_000, seed=1)
    theirs = scipy.stats.bootstrap(
        (sample,), lambda x, axis: statistic(x), n_resamples=10_000, method="BCa", random_state=np.random.default_rng(2)
    ).confidence_interval
    tolerance = 0.05 * np.ptp(sample)  # two runs of Monte Carlo, over few distinct values
    assert ours.method == "BCa bootstrap"
    assert ours.low == pytest.approx(theirs.low, abs=tolerance)
    assert ours.high == pytest.approx(theirs.high, abs=tolerance)


def test_bca_with_scipys_own_draws_is_scipys_to_the_last_digits():
    draws = np.random.default_rng(5)
    theirs = scipy.stats.bootstrap(
        (SKEWED,), np.mean, n_resamples=999, method="BCa", batch=999, random_state=np.random.default_rng(5)
    )
    replicates = SKEWED[draws.integers(10, size=(999, 10))].mean(axis=-1)
    np.testing.assert_array_equal(np.sort(replicates), np.sort(theirs.bootstrap_distribution))
    ours = bca_interval(SKEWED, mean, resamples=999, seed=5)
    np.testing.assert_allclose([ours.low, ours.high], list(theirs.confidence_interval), rtol=1e-9)


def test_the_interval_leans_to_where_the_outliers_are():
    interval = bca_interval(SKEWED, mean)
    assert SKEWED.mean() - interval.low > 1.3 * (interval.high - SKEWED.mean())


def test_equal_values_have_an_interval_without_width():
    interval = bca_interval(np.full(10, 500.0), median)
    assert (interval.low, interval.high, interval.method) == (500.0, 500.0, "all values are equal")


def test_one_value_has_no_interval():
    assert bca_interval(np.array([3.0]), mean) is None


def test_where_the_acceleration_is_not_defined_the_interval_is_the_percentile_one_and_says_so():
    sample = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0])  # the median stays 1 whichever value is left out
    interval = bca_interval(sample, median, resamples=2_000, seed=4)
    draws = np.random.default_rng(4).integers(7, size=(2_000, 7))
    expected = np.quantile(np.median(sample[draws], axis=1), [0.025, 0.975])
    assert interval.method == "percentile bootstrap (BCa is not defined here)"
    np.testing.assert_allclose([interval.low, interval.high], expected)


@pytest.mark.parametrize("extreme", [np.min, np.max])
@pytest.mark.parametrize("shift", [-10.0, 10.0])
def test_where_the_bias_is_not_defined_the_interval_is_the_percentile_one_too(extreme, shift):
    """All replicates lie on one side of the value, which only a statistic made for it does so thoroughly."""
    sample = np.array([1.0, 2.0, 4.0])
    interval = bca_interval(sample, lambda x: np.asarray(extreme(x, axis=-1) + shift * (x.shape == (3,))))
    assert interval.method.startswith("percentile")
    assert 1.0 <= interval.low < interval.high <= 4.0


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    first, again, other = (bca_interval(SKEWED, mean, resamples=500, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_more_confidence_is_a_wider_interval():
    narrow, wide = (bca_interval(SKEWED, mean, confidence=confidence) for confidence in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


@given(
    arrays(np.float64, st.integers(2, 9), elements=finite),
    st.sampled_from([mean, median, interquartile_mean]),
)
def test_an_interval_never_leaves_the_values(sample, statistic):
    interval = bca_interval(sample, statistic, resamples=199)
    slack = 1e-9 * (1 + np.abs(sample).max())
    assert sample.min() - slack <= interval.low <= interval.high <= sample.max() + slack


def test_what_an_interval_excludes_and_what_it_lies_within():
    interval = Interval(-1.0, 2.0, 0.95, "by hand")
    assert [interval.excludes(value) for value in (-1.5, -1.0, 0.0, 2.0, 2.5)] == [True, False, False, False, True]
    assert [interval.within(bound) for bound in (1.0, 1.9, 2.0, 3.0)] == [False, False, True, True]


# --- one arm


def test_an_arm_is_summarized_by_three_estimates_that_survive_json():
    summary = summarize(arm(*SKEWED.tolist()))
    assert summary.num_seeds == 10
    assert summary.mean.value == pytest.approx(SKEWED.mean())
    assert summary.median.value == pytest.approx(np.median(SKEWED))
    assert summary.iqm.value == pytest.approx(interquartile_mean(SKEWED))
    assert summary.mean.value < summary.iqm.value  # the outliers are low
    data = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert data["iqm"]["interval"]["method"] == "BCa bootstrap"
    assert data["mean"]["interval"] != data["median"]["interval"]


@pytest.mark.parametrize(
    ("seeds", "scores", "message"),
    [
        ((), (), "scores of mlp are empty: finish at least one seed"),
        ((0, 1), (1.0,), "1 scores for 2 seeds; give one score per seed"),
        ((0, 3, 3), (1.0, 2.0, 3.0), r"seeds \[3\] come more than once"),
        ((0, 7), (1.0, float("nan")), r"seeds \[7\] have no finite score; drop them"),
        ((4, 7), (float("inf"), 1.0), r"seeds \[4\] have no finite score"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(seeds, scores, message):
    with pytest.raises(ConfigError, match=message):
        ArmScores("mlp", seeds, scores)
