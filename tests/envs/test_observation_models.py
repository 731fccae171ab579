"""Every observation model does what its name says, forgets at an episode's start, and does the same compiled."""

import functools

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.config import ConfigError
from thrust_rl.envs.host_sensor import BLOCK, HostSensor, stream_key_data
from thrust_rl.envs.observation import (
    Delay,
    Flicker,
    FrameDrop,
    GaussianNoise,
    Hide,
    Mask,
    Quantize,
    RandomDelay,
    Stacked,
    models_of,
    stacked,
)
from thrust_rl.envs.observation.stack import ordinals
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.types import Frame

SPACE = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
STEPS = BLOCK + 50
MODELS = {
    "flicker": Flicker(0.4),  # the same models serve in several tests, so that each is compiled once
    "bursts": Flicker(0.5, 4.0),
    "mask": Mask((2, 0)),
    "hide": Hide((1,)),
    "noise": GaussianNoise(0.3),
    "noise of each": GaussianNoise((0.1, 0.0, 2.0)),
    "delay": Delay(2),
    "no delay": Delay(0),
    "random delay": RandomDelay(2),
    "drop": FrameDrop(0.4),
    "quantize": Quantize((0.1, 0.25, 3.0)),
    "stack": Stacked(
        (
            Quantize(0.3), GaussianNoise(0.3), Flicker(0.4), Delay(1), FrameDrop(0.4), RandomDelay(2),
            GaussianNoise(0.3), Hide((1,)),
        )
    ),
}  # fmt: skip


def within(count, trials, p):
    """Whether a binomial count lies within five standard deviations."""
    return abs(count - trials * p) < 5 * np.sqrt(trials * p * (1 - p))


def episodes(length, steps=STEPS):
    """Observations (episode, time, wave) of episodes of some length: of every step, first ones, and where they end.

    At the step where an episode ends there are two: its final one, and the first one of the next episode.
    """
    t = np.arange(steps)
    over = (t > 0) & (t % length == 0)
    number = 1 + np.maximum(t - 1, 0) // length
    seen = np.stack([number, t - (number - 1) * length + 1, np.cos(t)], axis=1).astype(np.float32)
    first = np.stack([number + 1, np.ones(steps), np.sin(t)], axis=1).astype(np.float32)
    return seen, first, over


def sensor_of(model, seed=0, space=SPACE):
    models = models_of(model)
    sensor = HostSensor(models, ordinals(models), space)
    sensor.begin(stream_key_data(seed))
    return sensor


def on_the_host(model, seen, first, over, seed=0, space=SPACE):
    """Frames and blanks of every step, and those of first observations where an episode ended, in NumPy."""
    sensor, frames = sensor_of(model, seed, space), []
    sensor.begin_episode()
    for t in range(len(seen)):
        if t > 0:
            sensor.tick()
        frame = begun = sensor.relay(seen[t], False)
        if over[t]:
            sensor.begin_episode()
            begun = sensor.relay(first[t], False)
        frames.append((*frame, *begun))
    return tuple(np.array(column) for column in zip(*frames, strict=True))


@functools.partial(jax.jit, static_argnums=0)  # optimized, as the library compiles: normal numbers depend on it
def compiled(model, stream, seen, first, over):
    """The same, compiled, as `FunctionalEnv` and `step_and_restart` call the model."""

    def one(state, now):
        t, seen, first, over = now
        key = step_key(stream, t)
        state = model.advance(purpose_key(key, Purpose.SENSOR), state)
        return emitted(state, key, seen, first, over)

    def emitted(state, key, seen, first, over):
        going_on = model.emit(purpose_key(key, Purpose.FRAME), state, seen)
        fresh = model.emit(purpose_key(key, Purpose.FRAME), model.begin_episode(going_on[0]), first)
        state, begun = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, going_on)
        return state, (*going_on[1], *begun)

    key = step_key(stream, 0)
    state = model.begin_episode(model.init(purpose_key(key, Purpose.SENSOR), SPACE))
    state, opening = emitted(state, key, seen[0], first[0], over[0])
    _, rest = jax.lax.scan(one, state, (jnp.arange(1, len(seen)), seen[1:], first[1:], over[1:]))
    return jax.tree.map(lambda one, many: jnp.concatenate([one[None], many]), opening, rest)


@pytest.mark.parametrize("name", MODELS)
def test_numpy_frames_are_the_compiled_ones(name):
    model, stream = MODELS[name], environment_keys(jax.random.key(0), 1)[0]
    what = episodes(7)
    ours, theirs = on_the_host(model, *what), compiled(model, stream, *what)
    for host, device in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(host, device)
        assert host.dtype == device.dtype
    space = model.space(SPACE)
    for obs, blank in (ours[:2], ours[2:]):
        assert all(space.contains(frame) for frame in obs)
        assert not obs[blank].any(), "a blank frame is all zeros"


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_frames_and_another_one_others(name):
    what = episodes(7, 60)
    first, again, other = (on_the_host(MODELS[name], *what, seed=seed) for seed in (1, 1, 2))
    jax.tree.map(np.testing.assert_array_equal, first, again)
    draws = name not in ("mask", "hide", "delay", "no delay", "quantize")
    assert np.array_equal(first[0], other[0]) != draws


@pytest.mark.parametrize("name", ["delay", "random delay", "drop", "stack"])
def test_no_frame_of_an_episode_is_shown_in_the_next(name):
    model = MODELS[name] if name != "stack" else Stacked((Delay(2), FrameDrop(0.4), RandomDelay(2)))
    seen, first, over = episodes(5)
    obs, blank, begun, begun_blank = on_the_host(model, seen, first, over)
    assert np.array_equal(obs[~blank, 0], seen[~blank, 0]) and (~blank).sum() > 100
    assert np.array_equal(begun[over & ~begun_blank, 0], first[over & ~begun_blank, 0])


def test_a_delay_is_exactly_what_was_asked():
    for steps in (1, 3):
        seen, first, over = episodes(6, 80)
        obs, blank, begun, begun_blank = on_the_host(Delay(steps), seen, first, over)
        shown = np.where(over[:, None], begun, obs)  # what there is to act on
        there = np.where(over[:, None], first, seen)
        late = there[:, 1] - steps  # times count from 1 in each episode
        assert np.array_equal(np.where(over, begun_blank, blank), late < 1)
        assert np.array_equal(shown[:, 1], np.maximum(late, 0))
        final = over & (np.arange(80) > 0)
        assert np.array_equal(obs[final, 1], np.full(final.sum(), 7 - steps)), "final frames are late too"
    plain = on_the_host(Delay(0), seen, first, over)
    assert np.array_equal(plain[0], seen) and not plain[1].any()


def test_a_random_delay_shows_the_newest_frame_that_has_arrived():
    steps = 6000
    time = np.stack([np.ones(steps), np.arange(1.0, steps + 1), np.zeros(steps)], axis=1).astype(np.float32)
    obs, blank, *_ = on_the_host(RandomDelay(2), time, time, np.zeros(steps, bool))
    assert blank[:2].sum() <= 2 and not blank[2:].any(), "after 2 steps the first frame has arrived"
    age = (time - obs)[2:, 1]
    assert (np.diff(obs[2:, 1]) >= 0).all(), "time never runs backwards"
    # A frame of age a is the newest unless one of age j < a has a delay of at most j: P(age > a) = prod (2 - j) / 3.
    for a, share in ((0, 1 / 3), (1, 4 / 9), (2, 2 / 9)):
        assert within((age == a).sum() / 2, len(age) / 2, share), "half as many: neighbouring ages hang together"
    openings = [bool(on_the_host(RandomDelay(2), *episodes(5, 1), seed=seed)[1][0]) for seed in range(100)]
    assert within(sum(openings), 100, 2 / 3), "an episode opens blank unless its first frame comes at once"


def test_a_lost_frame_leaves_the_one_before_on_display():
    seen, first, over = episodes(5, 2000)
    obs, blank, begun, _ = on_the_host(FrameDrop(0.4), seen, first, over)
    assert not blank.any()
    assert np.array_equal(begun[over], first[over]) and np.array_equal(obs[0], seen[0]), "first frames are never lost"
    lost, before = 0, obs[0]
    for t in range(1, len(seen)):
        repeated = np.array_equal(obs[t], before)
        assert repeated or np.array_equal(obs[t], seen[t])
        lost, before = lost + repeated, begun[t]
    assert within(lost, len(seen) - 1, 0.4)
    always = on_the_host(FrameDrop(1.0), seen, first, over)
    assert set(always[0][6:11, 1].tolist()) == {1.0}, "with certainty lost, the first frame is all there is"
    never = on_the_host(FrameDrop(0.0), seen, first, over)
    assert np.array_equal(never[0], seen)


def test_noise_has_its_deviation_in_every_coordinate_and_none_is_like_another():
    seen, first, over = episodes(9, 8000)
    std = np.array([0.5, 0.0, 2.0])
    obs, _, begun, _ = on_the_host(GaussianNoise(tuple(std)), seen, first, over)
    noise = obs - seen
    assert np.array_equal(noise[:, 1], np.zeros(len(noise)))
    # The mean of n normals has deviation std/sqrt(n), their variance std² sqrt(2/n).
    assert (np.abs(noise.mean(axis=0)) <= 5 * std / np.sqrt(len(noise))).all()
    assert (np.abs(noise.var(axis=0) - std**2) <= 5 * std**2 * np.sqrt(2 / len(noise))).all()
    pairs = np.corrcoef(np.concatenate([noise[:-1, [0, 2]], noise[1:, [0, 2]]], axis=1).T)
    assert np.abs(pairs - np.eye(4)).max() < 5 / np.sqrt(len(noise)), "independent over coordinates and steps"
    np.testing.assert_allclose((begun - first)[over], noise[over], atol=1e-3)  # one clock: one noise per step


def test_quantizing_rounds_to_multiples_and_twice_is_once():
    values = np.random.default_rng(0).normal(0, 5, (500, 3)).astype(np.float32)
    for step in (0.1, 0.25, (0.3, 1.0, 7.0)):
        model = Quantize(step)
        once = model.relay((), Frame(values, False))[1].obs
        assert np.array_equal(model.relay((), Frame(once, False))[1].obs, once)
        assert (np.abs(once - values) <= np.asarray(step) / 2 + 1e-5).all()
        np.testing.assert_allclose(once / step, np.round(once / step), atol=1e-4)
    bounded = Quantize(0.4).space(gymnasium.spaces.Box(np.float32(-1), np.float32(1.1), (2,)))
    np.testing.assert_allclose([bounded.low, bounded.high], [[-0.8] * 2, [1.2] * 2], rtol=1e-6)


def test_a_mask_shows_what_it_says_along_the_last_axis():
    picture = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    space = gymnasium.spaces.Box(0, 30, picture.shape)
    shown = Mask((3, 1)).relay((), Frame(picture, False))[1].obs
    hidden = Hide((0, 2)).relay((), Frame(picture, False))[1].obs
    assert np.array_equal(shown, picture[..., [3, 1]]) and np.array_equal(hidden, picture[..., [1, 3]])
    assert Mask((3, 1)).space(space).shape == Hide((0, 2)).space(space).shape == (2, 3, 2)


@pytest.mark.parametrize(
    ("shape", "models"),
    [((), (Quantize(0.3), FrameDrop(0.4), Delay(1))), ((2, 3, 1), (GaussianNoise(0.3), Flicker(0.4), RandomDelay(2)))],
)
def test_observations_may_have_any_shape(shape, models):
    space = gymnasium.spaces.Box(-4, 4, shape, np.float32)
    obs = np.random.default_rng(0).uniform(-4, 4, (20, *shape)).astype(np.float32)
    for model in (*models, Stacked(models)):
        frames = on_the_host(model, obs, obs, np.arange(20) == 10, space=space)[0]
        assert frames.shape == obs.shape and not np.array_equal(frames, obs)
        assert all(model.space(space).contains(np.asarray(frame)) for frame in frames)


def test_a_model_draws_the_same_alone_and_in_company():
    what = episodes(7, 300)
    alone = on_the_host(Flicker(0.4), *what)[1]
    company = Stacked((Quantize(0.5), GaussianNoise(0.3), FrameDrop(0.0), Flicker(0.4), Hide((0,))))
    assert np.array_equal(on_the_host(company, *what)[1], alone)
    twice = on_the_host(Stacked((Flicker(0.4), Flicker(0.4))), *what)[1]
    assert (twice & ~alone).any() and not (alone & ~twice).any(), "a second flicker has blanks of its own"
    one, two = (on_the_host(Stacked((GaussianNoise(0.3),) * n), *what)[0] - what[0] for n in (1, 2))
    assert abs(np.corrcoef(one.ravel(), (two - one).ravel())[0, 1]) < 5 / np.sqrt(900)


def test_a_blank_travels_with_its_frame():
    seen, first, over = episodes(10**6, 300)
    blanks = on_the_host(Flicker(0.4), seen, first, over)[1]
    delayed = on_the_host(Stacked((Flicker(0.4), Delay(2))), seen, first, over)
    assert np.array_equal(delayed[1][2:], blanks[:-2]) and delayed[1][:2].all()
    noisy = on_the_host(Stacked((Flicker(0.4), GaussianNoise(1.0))), seen, first, over)
    assert np.array_equal(noisy[1], blanks) and not noisy[0][blanks].any() and noisy[0][~blanks].all()
    dropped = on_the_host(Stacked((Flicker(0.4), FrameDrop(1.0))), seen, first, over)
    assert np.unique(dropped[1]).tolist() == [blanks[0]], "a repeated frame is as blank as when it was first shown"


def test_stacks_are_flat_and_no_deeper_than_needed():
    assert stacked(Stacked((Delay(1), Stacked((Delay(2), Delay(3)))))) == Stacked((Delay(1), Delay(2), Delay(3)))
    assert stacked(Delay(1), stacked()) == Delay(1) and models_of(stacked()) == ()
    assert Stacked((Hide((1,)), GaussianNoise((1.0, 2.0)))).space(SPACE).shape == (2,)


def test_integers_stay_integers_where_nothing_is_computed():
    space = gymnasium.spaces.Box(5, 255, (2, 2, 3), np.uint8)
    pixels = np.random.default_rng(0).integers(5, 255, (30, 2, 2, 3)).astype(np.uint8)
    model = Stacked((FrameDrop(0.4), Hide((1,)), Delay(1)))
    frames = on_the_host(model, pixels, pixels, np.zeros(30, bool), space=space)[0]
    out = model.space(space)
    assert frames.dtype == out.dtype == np.uint8 and all(out.contains(frame) for frame in frames)


@pytest.mark.parametrize(
    ("build", "parts"),
    [
        (lambda: Flicker("0.5"), ["flicker_prob is '0.5' (str)", "must be a number"]),
        (lambda: Flicker(0.5, "4"), ["burst_len is '4'", "must be a number"]),
        (lambda: Flicker(True), ["flicker_prob is True", "must be a number"]),
        (lambda: Mask(()), ["visible is empty", "at least one"]),
        (lambda: Mask((0, 2, 0)), ["visible (0, 2, 0)", "coordinate 0 twice"]),
        (lambda: Mask((0, -1)), ["coordinate of visible is -1", "at least 0"]),
        (lambda: Mask((0.5,)), ["coordinate of visible is 0.5", "whole number"]),
        (lambda: Mask(2), ["visible is 2", "tuple of coordinates"]),
        (lambda: Mask((0, 3)).space(SPACE), ["coordinate 3", "(3,)", "0 to 2"]),
        (lambda: Hide((1, 1)), ["hidden (1, 1)", "coordinate 1 twice"]),
        (lambda: Hide("position"), ["hidden is 'position'", "tuple of coordinates"]),
        (lambda: Hide((3, 4)).space(SPACE), ["coordinate 3, 4", "0 to 2"]),
        (lambda: Hide((2, 0, 1)).space(SPACE), ["hides all 3 coordinates", "leave at least one"]),
        (lambda: Hide((0,)).space(gymnasium.spaces.Box(0, 1, ())), ["needs an observation with coordinates"]),
        (lambda: GaussianNoise(-0.1), ["std is -0.1", "at least 0"]),
        (lambda: GaussianNoise((0.1, float("nan"))), ["std is nan", "finite"]),
        (lambda: GaussianNoise("0.1"), ["std is '0.1'", "must be a number"]),
        (lambda: GaussianNoise(()), ["std is empty", "one number for all"]),
        (
            lambda: GaussianNoise((0.1, 0.2)).space(SPACE),
            ["std has 2 numbers", "3 along the last axis", "one for each"],
        ),
        (lambda: Delay(-1), ["steps is -1", "at least 0"]),
        (lambda: Delay(1.5), ["steps is 1.5", "whole number"]),
        (lambda: RandomDelay("3"), ["max_steps is '3'", "whole number"]),
        (lambda: FrameDrop(1.5), ["drop_prob is 1.5", "[0, 1]"]),
        (lambda: Quantize(0), ["step is 0.0", "greater than 0"]),
        (lambda: Quantize((1.0, 2.0)).space(SPACE), ["step has 2 numbers", "3 along the last axis"]),
    ],
)
def test_what_can_not_be_is_refused_with_value_rule_and_remedy(unchecked, build, parts):
    with pytest.raises(ConfigError) as error:
        build()
    assert all(part in str(error.value) for part in parts), str(error.value)
