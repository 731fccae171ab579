"""The curve is the mean of the last 100 finished episodes, in the order in which they finished."""

import numpy as np
import pytest

from thrust_rl.training.curve import LearningCurve

NAN = np.nan


def test_no_point_before_the_first_episode_ends():
    curve = LearningCurve()
    curve.add(8, np.full((4, 2), NAN))
    assert (curve.steps, curve.mean_return, curve.episodes) == ([], [], 0)
    assert curve.final is None and curve.best is None
    curve.add(16, np.array([[NAN, 3.0]]))
    assert (curve.steps, curve.mean_return) == ([16], [3.0])


def test_points_are_running_means_by_hand():
    curve = LearningCurve()
    curve.add(10, np.array([[NAN, 3.0], [5.0, NAN]]))  # (3+5)/2
    curve.add(20, np.array([[10.0, NAN], [NAN, NAN]]))  # (3+5+10)/3
    curve.add(30, np.full((2, 2), NAN))  # nothing ended: the mean stands
    curve.add(40, np.array([[-2.0, NAN]]))  # (3+5+10-2)/4
    assert curve.steps == [10, 20, 30, 40]
    assert curve.mean_return == [4.0, 6.0, 6.0, 4.0]
    assert (curve.final, curve.best, curve.episodes) == (4.0, 6.0, 4)


def test_a_return_of_zero_is_an_episode():
    curve = LearningCurve()
    curve.add(1, np.array([[0.0, NAN]]))
    assert (curve.final, curve.best, curve.episodes) == (0.0, 0.0, 1)


@pytest.mark.parametrize("rows_per_update", [150, 50, 1])
def test_only_the_last_100_count_however_they_arrive(rows_per_update):
    # 0, 1, ..., 149, one at a time: the last hundred are 50 to 149, whose mean is 99.5.
    curve, returns = LearningCurve(), np.arange(150.0)[:, None]
    for i in range(0, 150, rows_per_update):
        curve.add(i + rows_per_update, returns[i : i + rows_per_update])
    assert curve.final == 99.5
    assert curve.episodes == 150


def test_episodes_finish_in_the_order_of_time_before_environment():
    # 51 steps of 2 environments that end an episode each step; the first two to finish fall out. In environment order
    # the zeros would fall out with some of environment 0's, and 1000 would not.
    returns = np.zeros((51, 2))
    returns[0] = 1000.0
    curve = LearningCurve()
    curve.add(102, returns)
    assert curve.final == 0.0
