"""Orthogonal weights: the shorter side is orthonormal times the gain; uniform ones: variance gain² / rows."""

import jax
import numpy as np
import pytest
from scipy import stats

from thrust_rl.maths.initializers import orthogonal, uniform


@pytest.mark.parametrize(("rows", "columns"), [(8, 3), (3, 8), (5, 5)])
@pytest.mark.parametrize("gain", [0.01, 1.0, np.sqrt(2.0).item()])
def test_shorter_side_is_orthonormal_times_gain(rows, columns, gain):
    matrix = np.asarray(orthogonal(jax.random.key(1), rows, columns, gain=gain), np.float64)
    assert matrix.shape == (rows, columns)
    short = matrix if rows <= columns else matrix.T
    np.testing.assert_allclose(short @ short.T, gain**2 * np.eye(min(rows, columns)), atol=1e-6 * gain**2)


def test_no_direction_is_preferred():
    # An entry of a uniformly drawn 3 x 3 rotation or reflection has mean 0 and variance 1/3. Plain QR fixes signs.
    keys = jax.random.split(jax.random.key(0), 2000)
    entries = np.asarray(jax.vmap(lambda key: orthogonal(key, 3, 3, gain=1.0))(keys))
    assert np.all(np.abs(entries.mean(axis=0)) < 5 * np.sqrt(1 / 3 / 2000))


def test_uniform_has_the_variance_that_keeps_a_layers_scale():
    # Uniform on ±a has variance a²/3; gain²/rows = 2/32 gives a = sqrt(3/16) = 0.433.
    entries = np.asarray(uniform(jax.random.key(0), 32, 1000, gain=np.sqrt(2.0).item()), np.float64).ravel()
    bound = np.sqrt(3 / 16)
    assert np.abs(entries).max() <= bound + 1e-6
    assert stats.kstest(entries, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-4
