"""Noise and quantization of integers, bytes of images above all: what floats get, made whole and kept in bounds."""

import dataclasses

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from gymnasium.spaces import Box

from envs_for_tests import environment, settings
from thrust_rl.envs.observation import GaussianNoise, Quantize
from thrust_rl.envs.partial import PartialObservation, observed
from thrust_rl.envs.spaces import Image, obs_spec
from thrust_rl.envs.stateful import StatefulEnv
from thrust_rl.envs.task import HostTask
from thrust_rl.training.train import train
from thrust_rl.types import Frame

BYTES = Box(0, 255, (8, 9, 3), np.uint8)


@dataclasses.dataclass(frozen=True)
class Pictures:
    """A fresh picture at every step, each channel within bounds of its own; an episode ends with probability 1/4."""

    low: tuple[int, ...] = (0, 0, 0)
    high: tuple[int, ...] = (255, 255, 255)
    action_space = gymnasium.spaces.Discrete(2)

    @property
    def observation_space(self):
        low, high = (np.broadcast_to(np.array(side, np.uint8), BYTES.shape) for side in (self.low, self.high))
        return Box(low, high, dtype=np.uint8)

    def init(self, key):
        bounds = jnp.array(self.low), jnp.array(self.high) + 1
        return jax.random.randint(key, BYTES.shape, *bounds).astype(jnp.uint8)

    def step(self, key, state, action):
        return self.init(key), jnp.ones(()), jax.random.bernoulli(key, 0.25)

    def observe(self, state):
        return state


class Still(gymnasium.Env):
    """Shows one array for ever."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, space, shown):
        self.observation_space, self.shown = space, np.asarray(shown, space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shown, {}

    def step(self, action):
        return self.shown, 1.0, False, False, {}


def frames(space, shown, text, steps=20):
    env = PartialObservation(Still(space, shown), text)
    seen = [env.reset(seed=3)[0], *(env.step(0)[0] for _ in range(steps))]
    assert all(env.observation_space.contains(obs) for obs in seen)
    return np.array(seen)


def rounded(model, values, space=BYTES):
    return model.relay(model.init(jax.random.key(0), space), Frame(values, False))[1].obs


@pytest.mark.parametrize("bounds", [{}, {"low": (5, 0, 90), "high": (250, 255, 100)}], ids=["bytes", "narrower"])
@pytest.mark.parametrize(
    "text", ["noise:20", "quantize:100|noise:3,0,200", "flicker:0.4|noise:20|delay:1|quantize:2.5|noise:9|drop:0.3"]
)
def test_the_wrapper_shows_the_compiled_frames(text, bounds):
    physics = environment(Pictures(**bounds))
    inside, outside = StatefulEnv(observed(physics, text)), PartialObservation(StatefulEnv(physics), text)
    assert inside.observation_space == outside.observation_space
    ours, theirs, ends = inside.reset(seed=4), outside.reset(seed=4), 0
    for _ in range(40):
        assert ours[0].dtype == theirs[0].dtype == np.uint8 and inside.observation_space.contains(theirs[0])
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[-1] == theirs[-1] and (not theirs[-1]["blank"] or not theirs[0].any()), "blanks stay zeros"
        over = len(ours) == 5 and ours[2]
        ours, theirs = (env.reset() if over else env.step(1) for env in (inside, outside))
        ends += over
    assert ends > 3


def test_noise_is_that_of_floats_rounded_and_clipped():
    shown = np.random.default_rng(0).integers(0, 256, BYTES.shape)
    for text in ("noise:60", "noise:0.7,0,400"):
        real = frames(Box(0, 255, BYTES.shape, np.float32), shown, text)
        assert real.min() < -50 and real.max() > 305
        np.testing.assert_array_equal(frames(BYTES, shown, text), np.clip(np.rint(real), 0, 255))
    narrow = frames(Box(10, 20, (4,), np.int64), [10, 12, 18, 20], "noise:5")
    real = frames(Box(10, 20, (4,), np.float32), [10, 12, 18, 20], "noise:5")
    np.testing.assert_array_equal(narrow, np.clip(np.rint(real), 10, 20))
    assert narrow.dtype == np.int64
    np.testing.assert_array_equal(frames(BYTES, shown, "noise:0.05"), [shown] * 21, "ten deviations below a half")


@pytest.mark.parametrize("std", [1.5, 20.0])
def test_rounding_is_unbiased_and_adds_a_twelfth_to_the_variance(std):
    model, middle = GaussianNoise(std), jnp.full(BYTES.shape, 128, jnp.uint8)
    keys = jax.random.split(jax.random.key(0), 1000)
    seen = jax.jit(jax.vmap(lambda key: model.emit(key, model.init(key, BYTES), middle)[1].obs))(keys)
    noise, variance = np.asarray(seen, float) - 128, std**2 + 1 / 12
    assert abs(noise.mean()) < 4 * np.sqrt(variance / noise.size)
    assert abs(noise.var() - variance) < 4 * variance * np.sqrt(2 / noise.size)


def test_at_the_ends_half_of_the_noise_is_lost_and_none_wraps_around():
    for end, others in ((0, (0, 150)), (255, (105, 255))):
        seen = frames(BYTES, np.full(BYTES.shape, end), "noise:25", 100)
        assert others[0] <= seen.min() and seen.max() <= others[1], "six deviations"
        at_end = scipy.stats.norm.cdf(0.5 / 25)  # up to half a unit inwards rounds to the end too
        assert abs(np.mean(seen == end) - at_end) < 4 * 0.5 / np.sqrt(seen.size)


def test_quantizing_gives_the_nearest_multiple_within_the_bounds_and_twice_is_once():
    every = np.arange(256, dtype=np.uint8)
    space = Box(0, 255, (256,), np.uint8)
    for step in (0.3, 1.0, 2.5, 64.0, 100.0, 255.0):
        model = Quantize(step)
        once = rounded(model, every, space)
        assert once.dtype == np.uint8 and model.space(space) == space
        np.testing.assert_array_equal(rounded(model, once, space), once)
        np.testing.assert_array_equal(once, np.clip(np.rint(np.rint(every / step) * step), 0, 255))
        np.testing.assert_array_equal(np.asarray(rounded(model, jnp.asarray(every), space)), once)
        assert step > 1 or np.array_equal(once, every)
    assert np.unique(rounded(Quantize(100), every, space)).tolist() == [0, 100, 200, 255]
    signed = rounded(Quantize(7), np.array([-20, -4, -3, 3, 20], np.int8), Box(-20, 20, (5,), np.int8))
    assert signed.tolist() == [-20, -7, 0, 0, 20] and signed.dtype == np.int8


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_too_large_for_floats_stay_within_their_space(dtype):
    ends = np.iinfo(dtype)
    space = Box(ends.min, ends.max, (2,), dtype)
    for text in ("noise:1e30", "quantize:1e30", "noise:0"):
        seen = frames(space, [ends.min, ends.max], text)  # asserts that they are contained
        assert "1e30" in text or (np.sign(seen) == [-1, 1]).all()


def test_images_stay_images_and_are_trained_on():
    physics = environment(Pictures(), max_steps=10)
    [part] = obs_spec(observed(physics, "noise:20").observation_space).parts
    assert part == Image(BYTES.shape, 255.0)
    host = HostTask("host", lambda: PartialObservation(StatefulEnv(physics), "noise:20"))
    for env in (observed(physics, ["noise:20", "quantize:16"]), host):
        [result] = train(env, "mlp", settings(updates=2))
        assert result.curve.episodes > 3
