"""Differences of two arms: the sign-flip test is exact, its interval is its inversion, and the rest equals SciPy."""

import itertools
import json

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thrust_rl.config import ConfigError
from thrust_rl.experiment import signflip
from thrust_rl.experiment.contrast import (
    contrast,
    differences,
    paired_difference,
    probability_of_improvement,
    t_half_width,
    welch,
)
from thrust_rl.experiment.signflip import fewest_seeds, sign_flip
from thrust_rl.experiment.statistics import ArmScores

LSTM = np.array([422.2, 487.7, 473.3, 456.1, 447.8, 481.9, 479.6, 463.1, 472.5, 456.6])
MLP = np.array([467.7, 469.1, 438.7, 447.6, 476.7, 449.8, 484.8, 397.6, 459.0, 463.5])
small_integers = arrays(np.float64, st.integers(1, 7), elements=st.integers(-4, 4).map(float))


def arm(values, name="lstm", first=0):
    return ArmScores(name, tuple(range(first, first + len(values))), tuple(map(float, values)))


def flipped_sums(values):
    return [np.dot(signs, values) for signs in itertools.product([1, -1], repeat=len(values))]


def p_by_hand(values):
    """Share of all sign patterns whose sum is at least as far from 0 as the observed one."""
    return np.mean([abs(total) >= abs(np.sum(values)) - 1e-9 for total in flipped_sums(values)])


# --- the sign-flip test


@given(small_integers)
def test_the_p_value_counts_the_sign_patterns_that_are_as_extreme(values):
    assert sign_flip(values).p_value == pytest.approx(p_by_hand(values))


@pytest.mark.parametrize("values", [LSTM - MLP, (LSTM - MLP)[:6], np.array([0.0, 0.0, 3.0, -1.0, 3.0, 2.0, 5.0])])
def test_the_p_value_is_scipys(values):
    result = scipy.stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=False
    )
    assert sign_flip(values).p_value == pytest.approx(result.pvalue, rel=1e-12)
    assert sign_flip(values).method == "exact"


@given(small_integers)
def test_sums_that_are_equal_but_for_rounding_count_as_equal(values):
    assert sign_flip(values * 0.1).p_value == sign_flip(values).p_value  # 0.1 + 0.2 is not 0.3 to the computer


@given(small_integers, st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_the_interval_holds_exactly_the_centres_that_the_test_does_not_reject(values, confidence):
    result = sign_flip(values, confidence=confidence)
    if result.confidence < confidence:  # too few seeds: nothing can be rejected
        assert 2 / 2 ** len(values) > 1 - confidence
        assert (result.low, result.high) == (values.min(), values.max())
        return
    for centre in [*np.arange(-4.0, 4.1, 0.5), result.low, result.high, result.low - 1e-3, result.high + 1e-3]:
        accepted = p_by_hand(values - centre) > 1 - confidence + 1e-12
        assert accepted == (result.low - 1e-9 <= centre <= result.high + 1e-9)


def test_the_interval_excludes_zero_exactly_where_the_test_rejects():
    generator = np.random.default_rng(0)
    rejected = []
    for _ in range(400):
        result = sign_flip(generator.normal(0.5, 1.0, 8))
        rejected.append(result.p_value <= 0.05)
        assert rejected[-1] == (result.low > 0 or result.high < 0)
    assert 0.1 < np.mean(rejected) < 0.9


def test_what_the_interval_attains_is_never_less_than_asked_for_once_there_are_enough_seeds():
    assert sign_flip(np.arange(10.0)).confidence == 1 - 50 / 1024
    assert sign_flip(np.arange(6.0)).confidence == 1 - 2 / 64
    five = sign_flip(np.array([3.0, 1.0, 2.0, 5.0, 4.0]))
    assert five == signflip.SignFlip(0.0625, 1.0, 5.0, 0.9375, "exact")


def test_the_fewest_seeds_are_the_first_whose_smallest_p_value_suffices():
    for confidence in (0.5, 0.75, 0.9, 0.95, 0.975, 0.99):
        fewest = fewest_seeds(confidence)
        assert 2 / 2**fewest <= 1 - confidence + 1e-9 < 2 / 2 ** (fewest - 1)


def test_drawn_patterns_agree_with_all_of_them_and_never_give_a_p_value_of_zero(monkeypatch):
    values = LSTM - MLP
    exact = sign_flip(values)
    monkeypatch.setattr(signflip, "EXACT_UP_TO", 9)
    drawn = sign_flip(values)
    assert drawn.method == "19,999 drawn sign patterns"
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.015)
    assert drawn.p_value != exact.p_value
    assert (drawn.low, drawn.high) == pytest.approx((exact.low, exact.high), abs=1.0)
    assert sign_flip(np.arange(1.0, 31.0)).p_value == 2 / 20_000
    assert sign_flip(values, seed=1) != drawn == sign_flip(values)


# --- the paired difference


def test_the_interval_that_decides_is_the_wider_of_students_and_the_sign_flip_one():
    tied = np.array([0.0] * 9 + [66.0])
    result, flips = paired_difference(tied), sign_flip(tied)
    student = scipy.stats.ttest_1samp(tied, 0.0).confidence_interval(0.95)
    assert student.low < flips.low == 0.0
    assert student.high < flips.high
    assert result.interval.low == pytest.approx(student.low)
    assert result.interval.high == flips.high
    assert not result.interval.excludes(0.0)
    mirrored = paired_difference(-tied).interval
    assert (mirrored.low, mirrored.high) == pytest.approx((-result.interval.high, -result.interval.low))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_half_the_width_of_students_interval_is_scipys(confidence):
    interval = scipy.stats.ttest_1samp(LSTM, 0.0).confidence_interval(confidence)
    half = t_half_width(float(LSTM.std(ddof=1)), len(LSTM), confidence=confidence)
    assert half == pytest.approx((interval.high - interval.low) / 2)


def test_swapping_the_arms_mirrors_everything():
    forth, back = paired_difference(LSTM - MLP), paired_difference(MLP - LSTM)
    assert back.mean == -forth.mean
    assert (back.interval.low, back.interval.high) == pytest.approx((-forth.interval.high, -forth.interval.low))
    assert (back.p_value, back.spread) == (forth.p_value, forth.spread)
    assert back.ahead == 10 - forth.ahead


def test_seeds_ahead_and_level_are_counted():
    result = paired_difference(np.array([1.0, 0.0, -2.0, 0.0, 3.0, 4.0]))
    assert (result.ahead, result.level, result.num_seeds) == (3, 2, 6)


def test_five_seeds_say_that_the_exact_test_cannot_reach_five_percent():
    (note,) = paired_difference(np.arange(5.0)).notes
    assert "with 5 seeds no sign-flip p-value is below 0.0625" in note
    assert "93.75%" in note
    assert paired_difference(np.arange(6.0)).notes == ()


def test_equal_differences_have_no_width_and_say_what_they_may_have_missed():
    result = paired_difference(np.zeros(10))
    assert (result.interval.low, result.interval.high, result.p_value) == (0.0, 0.0, 1.0)
    (note,) = result.notes
    assert "all 10 differences are equal" in note
    assert "fewer than 26% of the seeds" in note
    assert (1 - 0.26) ** 10 == pytest.approx(0.05, abs=0.002)


def test_many_ties_say_what_they_may_have_missed():
    (note,) = paired_difference(np.array([0.0] * 6 + [-3.0, -2.0, 1.0, 4.0])).notes
    assert note.startswith("6 of 10 differences are 0; an outcome that befalls fewer than 26% of the seeds")
    assert paired_difference(np.array([0.0] * 5 + [-3.0, -2.0, 1.0, 4.0, 2.0])).notes == ()


def test_one_seed_has_a_difference_and_no_interval():
    result = paired_difference(np.array([7.0]))
    assert (result.mean, result.spread, result.interval, result.bca, result.p_value) == (7.0, None, None, None, 1.0)


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(-1e3, 1e3)))
def test_the_mean_lies_in_the_interval(values):
    result = paired_difference(values, resamples=9)
    if result.interval is not None:
        slack = 1e-9 * (1 + np.abs(values).max())
        assert result.interval.low - slack <= result.mean <= result.interval.high + slack


def test_pairs_are_made_by_seed_whatever_the_order():
    first = ArmScores("lstm", (2, 0, 1), (12.0, 10.0, 11.0))
    second = ArmScores("mlp", (1, 2, 0), (1.0, 2.0, 0.5))
    np.testing.assert_array_equal(differences(first, second), [10.0, 9.5, 10.0])


def test_arms_with_different_seeds_are_refused():
    with pytest.raises(ConfigError, match=r"lstm and mlp do not have the same seeds \(only one of them has \[0, 3\]\)"):
        contrast(arm([1.0, 2.0, 3.0]), arm([1.0, 2.0, 3.0], name="mlp", first=1))


# --- without pairs


@pytest.mark.parametrize("size", [2, 10])
def test_the_unpaired_interval_is_scipys(size):
    expected = scipy.stats.ttest_ind(LSTM[:size], MLP, equal_var=False).confidence_interval(0.95)
    result = welch(LSTM[:size], MLP)
    assert (result.interval.low, result.interval.high) == pytest.approx((expected.low, expected.high))
    assert result.value == pytest.approx(LSTM[:size].mean() - MLP.mean())


def test_the_unpaired_interval_of_equal_values_has_no_width_and_that_of_one_value_does_not_exist():
    level = welch(np.full(4, 500.0), np.full(4, 480.0))
    assert (level.value, level.interval.low, level.interval.high) == (20.0, 20.0, 20.0)
    assert welch(np.array([1.0]), MLP).interval is None


@given(small_integers, small_integers)
def test_the_probability_of_improvement_is_mann_whitneys_statistic_over_the_pairs(first, second):
    expected = scipy.stats.mannwhitneyu(first, second, method="asymptotic").statistic / (len(first) * len(second))
    assert probability_of_improvement(first, second).value == pytest.approx(expected)


@pytest.mark.parametrize("shift", [-30.0, -10.0, 0.0, 12.0, 25.0])
@pytest.mark.parametrize("size", [4, 10])
def test_the_ends_of_its_interval_lie_z_standard_errors_from_the_estimate(shift, size):
    result = probability_of_improvement(LSTM[:size] + shift, MLP)
    both = (size + len(MLP)) / 2 - 1
    for theta in (result.interval.low, result.interval.high):
        if theta in (0.0, 1.0):
            assert result.value == theta
            continue
        q1, q2 = theta / (2 - theta), 2 * theta**2 / (1 + theta)  # Hanley & McNeil 1982, eq. 2
        variance = (theta * (1 - theta) + both * (q1 - theta**2) + both * (q2 - theta**2)) / (size * len(MLP))
        assert abs(result.value - theta) / np.sqrt(variance) == pytest.approx(1.959964, abs=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_complete_separation_leaves_an_interval_that_narrows_with_more_seeds(sign):
    intervals = [
        probability_of_improvement(sign * np.arange(100.0, 100.0 + n), sign * np.arange(float(n))).interval
        for n in (5, 10, 20)
    ]
    widths = [interval.high - interval.low for interval in intervals]
    assert widths[0] > widths[1] > widths[2] > 0.05
    assert all(interval.high == 1.0 if sign > 0 else interval.low == 0.0 for interval in intervals)


def test_its_interval_covers_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    truth = float(scipy.stats.norm.cdf(1.0 / np.sqrt(2)))
    held = [
        not probability_of_improvement(generator.normal(1, 1, 10), generator.normal(0, 1, 10)).interval.excludes(truth)
        for _ in range(600)
    ]
    assert 0.92 <= np.mean(held) <= 0.985


def test_of_one_run_each_there_is_no_interval():
    assert probability_of_improvement(np.array([2.0]), np.array([1.0])).interval is None


def test_a_contrast_survives_json():
    data = json.loads(json.dumps(contrast(arm(LSTM), arm(MLP, name="mlp")).to_dict(), allow_nan=False))
    assert (data["first"], data["second"]) == ("lstm", "mlp")
    assert data["paired"]["mean"] == pytest.approx((LSTM - MLP).mean())
    assert data["unpaired"]["interval"]["low"] < data["unpaired"]["value"] < data["unpaired"]["interval"]["high"]
    assert 0.5 < data["improvement"]["value"] < 1.0
