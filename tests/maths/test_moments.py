"""Running moments equal NumPy's on everything counted, however it arrived, and last."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrust_rl.maths.moments import Moments, initial_moments, merge, standardize

ROWS = 24
take = jax.jit(merge)


def assert_moments(moments, rows, **tolerance):
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), **tolerance)
    np.testing.assert_allclose(moments.var, rows.var(axis=0), **tolerance)
    assert moments.count == len(rows)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 5), min_size=ROWS, max_size=ROWS))
def test_any_grouping_equals_numpy_on_the_concatenation(seed, group):
    # Group 5 is never taken in, so this also says that excluded rows change nothing.
    rng = np.random.default_rng(seed)
    rows = rng.normal(loc=[0.0, 5.0, -3.0], scale=[1.0, 0.1, 4.0], size=(ROWS, 3))
    group = np.array(group)
    moments = initial_moments((3,))
    for g in range(5):
        moments = take(moments, jnp.asarray(rows, jnp.float32), jnp.asarray(group == g))
    counted = rows[group != 5]
    if len(counted):
        assert_moments(moments, counted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [(1, 23), (7, 1, 16), (12, 12), (1,) * 24])
def test_batches_of_any_size_equal_numpy(sizes):
    rows = np.random.default_rng(0).normal(3.0, 2.0, size=(ROWS, 2, 2))  # a coordinate may have its own axes
    moments = initial_moments((2, 2))
    for batch in np.split(rows, np.cumsum(sizes)[:-1]):
        moments = take(moments, jnp.asarray(batch, jnp.float32), jnp.ones(len(batch), bool))
    assert_moments(moments, rows, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("others", [(-1e6, 1e6), (np.nan, 2.0), (np.inf, -np.inf)])
def test_excluded_rows_change_nothing_whatever_they_hold(others):
    rows = jnp.array([[1.0], [others[0]], [5.0], [others[1]]])
    found = take(initial_moments((1,)), rows, jnp.array([True, False, True, False]))
    # 1 and 5: mean 3, variance ((1-3)² + (5-3)²)/2 = 4.
    assert (float(found.mean[0]), float(found.var[0]), float(found.count)) == (3.0, 4.0, 2.0)
    again = take(found, rows, jnp.zeros(4, bool))
    for before, after in zip(found, again, strict=True):
        assert np.array_equal(before, after)


def test_nothing_counted_stays_nothing():
    found = take(initial_moments((2,)), jnp.ones((3, 2)), jnp.zeros(3, bool))
    assert found.count == 0 and found.mean.tolist() == [0, 0] and found.var.tolist() == [0, 0]


def test_standardize_by_hand():
    moments = Moments(jnp.array([3.0, 0.0]), jnp.array([4.0, 0.25]), jnp.array(10.0))
    # (7-3)/2 = 2 and (-1-0)/0.5 = -2; std, not variance, divides.
    assert standardize(moments, jnp.array([7.0, -1.0])).tolist() == [2.0, -2.0]


def test_standardize_is_clipped_at_10():
    moments = Moments(jnp.zeros(4), jnp.ones(4), jnp.array(10.0))
    assert standardize(moments, jnp.array([9.5, 10.5, -1e9, 1e9])).tolist() == [9.5, 10.0, -10.0, 10.0]


def test_a_coordinate_that_never_moved_is_divided_by_1e_4():
    moments = Moments(jnp.zeros(2), jnp.array([0.0, 1e-12]), jnp.array(10.0))
    # 3e-4 / 1e-4 = 3; a standard deviation of 1e-6 counts as 1e-4 too.
    np.testing.assert_allclose(standardize(moments, jnp.array([3e-4, 3e-4])), 3.0, rtol=1e-5)


def test_a_long_run_far_from_zero_stays_accurate():
    # 20 000 batches of 16 with mean 1000 and standard deviation 1: 320 000 float32 rows, where E[x²] - E[x]²
    # has no digit left. Float64 on the same rows is the truth.
    batches = 1000.0 + jax.random.normal(jax.random.key(0), (20_000, 16, 1))
    include = jnp.ones(16, bool)
    found, _ = jax.lax.scan(lambda m, batch: (merge(m, batch, include), None), initial_moments((1,)), batches)
    rows = np.asarray(batches, np.float64).reshape(-1)
    assert abs(float(found.mean[0]) - rows.mean()) < 0.01  # one hundredth of a standard deviation
    assert float(found.var[0]) == pytest.approx(rows.var(), rel=0.01)
    assert found.count == 320_000
