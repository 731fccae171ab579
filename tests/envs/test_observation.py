"""Observation models change what is seen, never what happens; blanks follow their chain and nobody's policy."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.config import ConfigError
from thrust_rl.envs.observation import Flicker, Mask
from thrust_rl.envs.registry import make
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key

STREAMS = environment_keys(jax.random.key(11), 4)
NOTHING = gymnasium.spaces.Box(-1, 1, (1,))  # a flicker does not look at what it blanks
SENSORS = {
    "coin": dict(name="FlickeringCartPole-v0", flicker_prob=0.5),
    "bursts": dict(name="FlickeringCartPole-v0", flicker_prob=0.5, burst_len=4.0),
    "mask": dict(name="MaskedCartPole-v0"),
}


def push_left(state, key):
    return jnp.array(0)


def push_at_random(state, key):
    return jax.random.randint(key, (), 0, 2)


def balance(state, key):
    return (3.0 * state.angle + state.angular_velocity > 0).astype(int)


def flicker(p, burst_len=None):
    return make("FlickeringCartPole-v0", flicker_prob=p, burst_len=burst_len)


def within(count, trials, p):
    """Whether a binomial count lies within five standard deviations."""
    return abs(count - trials * p) < 5 * np.sqrt(trials * p * (1 - p))


@pytest.mark.parametrize("sensor", SENSORS)
def test_the_hidden_trajectory_is_that_of_the_twin(walk, sensor):
    env = make(**SENSORS[sensor])
    twin = env.twin()
    _, (hidden, results, frames) = walk(env, STREAMS, push_at_random, 200)
    _, (twin_hidden, twin_results, twin_frames) = walk(twin, STREAMS, push_at_random, 200)
    jax.tree.map(np.testing.assert_array_equal, hidden.physics, twin_hidden.physics)
    for field in ("reward", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(results, field), getattr(twin_results, field))
    assert results.terminated.any()
    # What is shown is the twin's observation, what is not shown is all zeros, and the twin shows everything.
    for seen, full in ((results, twin_results), (frames, twin_frames)):
        visible = ~np.asarray(seen.blank)
        full_obs = np.asarray(full.obs)[..., [0, 2]] if sensor == "mask" else np.asarray(full.obs)
        np.testing.assert_array_equal(seen.obs, np.where(visible[..., None], full_obs, 0.0))
        assert not full.blank.any()
    assert twin.observation_space == make("CartPole-v1").observation_space
    assert twin.name != env.name and twin.max_steps == env.max_steps


def test_probability_0_is_the_identity_and_1_always_blank(walk):
    (_, twin_first), (_, twin_results, twin_frames) = walk(flicker(0.0).twin(), STREAMS, push_at_random, 200)
    (_, first), (_, results, frames) = walk(flicker(0.0), STREAMS, push_at_random, 200)
    for seen, full in ((first, twin_first), (results, twin_results), (frames, twin_frames)):
        assert not seen.blank.any()
        np.testing.assert_array_equal(seen.obs, full.obs)
    (_, first), (_, results, frames) = walk(flicker(1.0), STREAMS, push_at_random, 200)
    assert results.terminated.any()  # so the first frames after a restart are among these
    for seen in (first, results, frames):
        assert seen.blank.all()
        assert not seen.obs.any()


def sensor_alone(sensor, streams, num_steps):
    """Blank flags `[env, time]` of steps 0 to `num_steps` of a sensor that no environment is attached to."""

    def one(stream):
        def body(state, t):
            state = sensor.advance(purpose_key(step_key(stream, t), Purpose.SENSOR), state)
            return state, state

        first = sensor.init(purpose_key(step_key(stream, 0), Purpose.SENSOR), NOTHING)
        return first, jax.lax.scan(body, first, jnp.arange(1, num_steps + 1))[1]

    first, rest = jax.jit(jax.vmap(one))(streams)
    return np.concatenate([np.asarray(first)[:, None], np.asarray(rest)], axis=1)


def test_blank_rate_of_the_coin(walk):
    p, streams = 0.3, environment_keys(jax.random.key(1), 64)
    _, (_, results, frames) = walk(flicker(p), streams, push_left, 400)
    assert within(int(frames.blank.sum()), frames.blank.size, p)
    # Frames that open an episode are blanked at the same rate: those after a restart, and the very first ones.
    opening = np.asarray(frames.blank)[np.asarray(results.terminated)]
    assert len(opening) > 2000
    assert within(opening.sum(), len(opening), p)
    first = jax.jit(jax.vmap(flicker(p).init))(environment_keys(jax.random.key(2), 5000))[1].blank
    assert within(int(first.sum()), 5000, p)


@pytest.mark.parametrize(("p", "length"), [(0.5, 4.0), (0.3, 10.0), (0.7, 3.0)])
def test_bursts_have_their_mean_length_and_their_blank_fraction(p, length):
    blank = sensor_alone(Flicker(p, length), environment_keys(jax.random.key(3), 5000), 100)
    for t in (0, 1, 50, 100):  # stationary from the first frame on; streams are independent
        assert within(blank[:, t].sum(), 5000, p)
    before, now, after = blank[:, :-2], blank[:, 1:-1], blank[:, 2:]
    # A blank run ends with probability 1/L at each frame, however long it is already: so its mean is L.
    for runs in (now, now & before, now & ~before):
        assert within((runs & ~after).sum(), runs.sum(), 1 / length)
    # Blank fraction p = L/(L + visible) gives visible runs of L(1-p)/p.
    assert within((~now & after).sum(), (~now).sum(), p / (length * (1 - p)))


def test_a_coin_is_the_chain_with_burst_length_1_over_1_minus_p():
    chain = sensor_alone(Flicker(0.75, 4.0), STREAMS, 500)  # 1/(1-0.75) = 4
    np.testing.assert_array_equal(sensor_alone(Flicker(0.75), STREAMS, 500), chain)
    assert within(chain.sum(), chain.size, 0.75)


@pytest.mark.parametrize("sensor", ["coin", "bursts"])
def test_every_policy_meets_the_same_blanks(walk, sensor):
    env = make(**SENSORS[sensor])
    _, (_, falling, falling_frames) = walk(env, STREAMS, push_at_random, 200)
    _, (_, balanced, balanced_frames) = walk(env, STREAMS, balance, 200)
    assert falling.terminated.sum() > 20 > balanced.terminated.sum()  # so episodes begin at different steps
    np.testing.assert_array_equal(falling.blank, balanced.blank)
    np.testing.assert_array_equal(falling_frames.blank, balanced_frames.blank)
    # One tick of the sensor's clock a step, restart or not: as if no environment were attached.
    alone = sensor_alone(env.sensor, STREAMS, 200)[:, 1:]
    np.testing.assert_array_equal(falling.blank, alone)
    np.testing.assert_array_equal(falling_frames.blank, alone)


def test_environments_and_seeds_have_patterns_of_their_own():
    streams = jnp.concatenate([environment_keys(jax.random.key(seed), 3) for seed in (0, 1)])
    blank = sensor_alone(Flicker(0.5), streams, 999)
    for i in range(6):
        for j in range(i):
            for lag in (0, 1):  # independent fair coins agree half of the time, shifted by a step too
                agree = blank[i, lag:] == blank[j, : 1000 - lag]
                assert within(agree.sum(), len(agree), 0.5)


@pytest.mark.parametrize(
    ("p", "length", "parts"),
    [
        (1.5, None, ["flicker_prob is 1.5", "[0, 1]"]),
        (-0.1, None, ["flicker_prob is -0.1", "[0, 1]"]),
        (float("nan"), None, ["flicker_prob is nan", "[0, 1]"]),
        (0.0, 4.0, ["flicker_prob is 0.0", "burst_len 4.0", "strictly between 0 and 1", "drop burst_len"]),
        (1.0, 4.0, ["flicker_prob is 1.0", "burst_len 4.0", "strictly between 0 and 1", "drop burst_len"]),
        (0.5, 0.5, ["burst_len is 0.5", "at least 1"]),
        (0.5, float("inf"), ["burst_len is inf", "at least 1"]),
        # p = 0.75: visible runs are L/3 long, which reaches one frame at L = 3.
        (0.75, 2.0, ["burst_len is 2.0", "flicker_prob 0.75", "0.667", "at least 3 ", "lower flicker_prob"]),
    ],
)
def test_impossible_chains_are_refused_with_value_rule_and_remedy(p, length, parts):
    with pytest.raises(ConfigError) as error:
        Flicker(p, length)
    assert all(part in str(error.value) for part in parts), str(error.value)


@pytest.mark.parametrize(("p", "length"), [(0.75, 3.0), (0.8, 4.0)])  # 4(1-0.8)/0.8 is just under 1 in floating point
def test_the_shortest_possible_visible_runs_are_accepted(p, length):
    # Visible runs of exactly L(1-p)/p = 1 frame: never two visible frames in a row.
    chain = Flicker(p, length)
    assert chain.mean_visible_run == pytest.approx(1.0)
    visible = jnp.zeros((), bool)
    assert jax.vmap(chain.advance, (0, None))(jax.random.split(jax.random.key(0), 500), visible).all()


def test_the_space_of_frames_holds_what_is_emitted():
    away_from_zero = gymnasium.spaces.Box(np.array([1.0, -3.0], np.float32), np.array([2.0, -1.0], np.float32))
    widened = Flicker(0.5).space(away_from_zero)
    assert widened.low.tolist() == [0.0, -3.0] and widened.high.tolist() == [2.0, 0.0]
    picked = Mask((1, 0)).space(away_from_zero)
    assert picked.low.tolist() == [-3.0, 1.0] and picked.high.tolist() == [-1.0, 2.0]
    assert Mask((1, 0)).emit(jax.random.key(0), (), jnp.array([5.0, 6.0]))[1].obs.tolist() == [6.0, 5.0]
