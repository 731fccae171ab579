"""The normalizer objects give the numbers of packaged training and of NumPy, and refuse what is not data."""

import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.maths.moments import initial_moments
from thrust_rl.rollout.normalize import is_blank, observe_and_standardize
from thrust_rl.rollout.normalizers import ObsNormalizer, RunningMeanStd

RNG = np.random.default_rng(0)
FRAMES = [(RNG.normal(size=(6, 3)) * [1.0, 20.0, 0.01] + 2.0).astype(np.float32) for _ in range(4)]
for frames in FRAMES:
    frames[RNG.random(6) < 0.4] = 0.0


def test_numbers_are_those_of_packaged_training():
    normalizer, moments = ObsNormalizer(3), initial_moments((3,))
    for frames in FRAMES:
        moments, expected = observe_and_standardize(moments, jnp.asarray(frames), is_blank(jnp.asarray(frames)))
        np.testing.assert_allclose(normalizer.normalize(frames), expected, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(normalizer.moments, moments, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_moments_are_those_of_the_visible_frames():
    normalizer = ObsNormalizer(3)
    for frames in FRAMES:
        normalizer.normalize(frames)
    visible = np.concatenate(FRAMES)
    visible = visible[(visible != 0).any(axis=1)].astype(np.float64)
    assert 0 < len(visible) < 24
    assert normalizer.count == len(visible)
    np.testing.assert_allclose(normalizer.mean, visible.mean(0), rtol=1e-5)
    np.testing.assert_allclose(normalizer.var, visible.var(0), rtol=1e-4)


def test_blanked_frames_pass_through_and_visible_ones_do_not():
    normalizer = ObsNormalizer(3)
    for frames in FRAMES:
        blank = (frames == 0).all(axis=1)
        seen = normalizer.normalize(frames)
        assert ((seen == 0).all(axis=1) == blank).all()


def test_looking_does_not_count():
    normalizer = ObsNormalizer(3)
    normalizer.normalize(FRAMES[0])
    before = [np.array(part) for part in normalizer.moments]
    seen = normalizer.normalize(FRAMES[1], update=False)
    for part, now in zip(before, normalizer.moments, strict=True):
        np.testing.assert_array_equal(part, now)
    visible = (FRAMES[1] != 0).any(axis=1)
    expected = (FRAMES[1] - normalizer.mean) / np.sqrt(normalizer.var)
    np.testing.assert_allclose(seen[visible], np.clip(expected, -10, 10)[visible], rtol=1e-4)


def test_what_comes_out_is_the_callers():
    normalizer = ObsNormalizer(3)
    seen = normalizer.normalize(FRAMES[0])
    seen[:] = 7.0
    mean = normalizer.mean
    mean[:] = 7.0
    assert not (normalizer.mean == 7.0).any()


def test_running_mean_and_deviation_count_zeros_too():
    moments = RunningMeanStd((3,))
    assert moments.count == 0
    for frames in FRAMES:
        moments.update(frames)
    everything = np.concatenate(FRAMES).astype(np.float64)
    assert moments.count == 24
    np.testing.assert_allclose(moments.mean, everything.mean(0), rtol=1e-5)
    np.testing.assert_allclose(moments.var, everything.var(0), rtol=1e-4)


def test_moments_of_scalars():
    moments = RunningMeanStd()
    moments.update(np.array([1.0, 2.0, 6.0]))
    assert (float(moments.mean), moments.count) == (3.0, 3)
    np.testing.assert_allclose(moments.var, 14 / 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ObsNormalizer(3).normalize(FRAMES[0][0]), ValueError, r"obs has shape \(3,\).*\(any, 3\)"),
        (lambda: ObsNormalizer(1).normalize(FRAMES[0]), ValueError, r"obs has shape \(6, 3\)"),
        (lambda: ObsNormalizer(3).normalize(FRAMES[0] * np.nan), ValueError, "obs.*nan.*finite"),
        (lambda: ObsNormalizer(3).normalize(np.ones((6, 3), int)), TypeError, "obs has dtype int64"),
        (lambda: ObsNormalizer(0), ValueError, "obs_dim is 0"),
        (lambda: RunningMeanStd((3,)).update(np.ones(3)), ValueError, r"batch has shape \(3,\)"),
        (lambda: RunningMeanStd(()).update(np.array([np.inf])), ValueError, r"batch\[0\] is inf"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_refused_batch_changes_nothing():
    normalizer = ObsNormalizer(3)
    normalizer.normalize(FRAMES[0])
    count = normalizer.count
    with pytest.raises(ValueError, match="finite"):
        normalizer.normalize(np.full((6, 3), np.inf))
    assert normalizer.count == count
