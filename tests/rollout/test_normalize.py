"""Blank frames neither change the moments nor are changed by them; visible ones are standardized by what was seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.maths.moments import Moments, initial_moments
from thrust_rl.rollout.normalize import is_blank, observe_and_standardize, standardize_visible

receive = jax.jit(lambda moments, obs: observe_and_standardize(moments, obs, is_blank(obs)))


def batches(seed, *, num_batches=30, num_envs=8):
    """Frames with coordinates of unlike scale, about half of them blanked."""
    rng = np.random.default_rng(seed)
    frames = rng.normal([0.0, 50.0, -2.0], [1.0, 5.0, 0.01], size=(num_batches, num_envs, 3)).astype(np.float32)
    frames[rng.random((num_batches, num_envs)) < 0.5] = 0.0
    return frames


def test_blank_frames_neither_count_nor_change():
    # Every batch is standardized by NumPy's moments of all visible frames so far, its own included.
    moments, frames = initial_moments((3,)), batches(0)
    for i, batch in enumerate(frames):
        moments, seen = receive(moments, jnp.asarray(batch))
        visible = np.any(batch != 0, axis=-1)
        so_far = frames[: i + 1][np.any(frames[: i + 1] != 0, axis=-1)].astype(np.float64)
        assert moments.count == len(so_far) < 8 * (i + 1)
        np.testing.assert_allclose(moments.mean, so_far.mean(axis=0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(moments.var, so_far.var(axis=0), rtol=1e-3)
        expected = (batch[visible] - so_far.mean(axis=0)) / so_far.std(axis=0)
        np.testing.assert_allclose(np.asarray(seen)[visible], expected, rtol=1e-3, atol=5e-3)
        assert not np.asarray(seen)[~visible].any()


def test_a_batch_of_blanks_leaves_everything_as_it_was():
    moments, _ = receive(initial_moments((3,)), jnp.asarray(batches(2)[0]))
    after, seen = receive(moments, jnp.zeros((8, 3)))
    assert not seen.any()
    for a, b in zip(moments, after, strict=True):
        assert np.array_equal(a, b)


def test_blank_is_zero_in_every_coordinate():
    assert is_blank(jnp.array([[0.0, 0.0], [0.0, 1e-30], [-1.0, 0.0], [-0.0, 0.0]])).tolist() == [1, 0, 0, 1]
    images = jnp.zeros((3, 2, 2)).at[1, 1, 0].set(0.5)
    assert is_blank(images).tolist() == [True, False, True]


def test_a_frame_counts_before_it_is_standardized():
    # 1, 3 and then 5, 7 with two blanks: mean 4, variance ((1-4)² + (3-4)² + (5-4)² + (7-4)²)/4 = 5.
    moments, first = receive(initial_moments((1,)), jnp.array([[1.0], [0.0], [3.0]]))
    assert first[:, 0].tolist() == [-1.0, 0.0, 1.0]
    moments, second = receive(moments, jnp.array([[5.0], [7.0], [0.0]]))
    np.testing.assert_allclose(second[:, 0], [1 / np.sqrt(5), 3 / np.sqrt(5), 0.0], rtol=1e-6)
    assert moments.count == 4


@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_standardizing_without_observing_uses_the_moments_as_they_are(shape):
    moments = Moments(jnp.full(shape, 2.0), jnp.full(shape, 4.0), jnp.array(9.0))
    frames = jnp.stack([jnp.full(shape, 6.0), jnp.zeros(shape), jnp.full(shape, 1e9)])
    # (6-2)/2 = 2; a blank frame is not (0-2)/2 = -1; the outlier is clipped.
    expected = [np.full(shape, 2.0), np.zeros(shape), np.full(shape, 10.0)]
    np.testing.assert_array_equal(standardize_visible(moments, frames, is_blank(frames)), expected)
