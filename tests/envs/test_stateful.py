"""The stateful environments: Gymnasium's contract, the same numbers as compiled code, exact snapshots."""

import copy
import pickle
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from envs_for_tests import Counter, Short, environment
from thrust_rl.config import ConfigError
from thrust_rl.envs.checks import checked_seed
from thrust_rl.envs.core import step_and_restart
from thrust_rl.envs.register import register_environments
from thrust_rl.envs.stateful import CartPole, FlickeringCartPole, MaskedCartPole, StatefulEnv
from thrust_rl.maths.keys import environment_keys, step_key

register_environments()

CLASSES = {
    "CartPole-v1": CartPole,
    "FlickeringCartPole-v0": FlickeringCartPole,
    "MaskedCartPole-v0": MaskedCartPole,
}


def played(env, actions):
    """Everything that the actions lead to, under resets where an episode ends."""
    seen = []
    for action in actions:
        outcome = env.step(action)
        seen.append((outcome[0].tolist(), *outcome[1:]))
        if outcome[2] or outcome[3]:
            obs, info = env.reset()
            seen.append((obs.tolist(), info))
    return seen


def coins(length, seed=0):
    return np.random.default_rng(seed).integers(0, 2, length).tolist()


@pytest.mark.parametrize("name", CLASSES)
def test_gymnasium_accepts_the_environment(name):
    env = gymnasium.make(f"thrust/{name}").unwrapped
    assert type(env) is CLASSES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env)
    # Rates have no bound, in Gymnasium's own CartPole neither; its checker remarks on that and on nothing else.
    unbounded = not np.isfinite(env.observation_space.high).all()
    assert [("infinity" in str(warning.message)) for warning in caught] == [True] * (2 if unbounded else 0)


@pytest.mark.parametrize("name", CLASSES)
def test_made_by_name_it_has_no_second_time_limit(name):
    env = gymnasium.make(f"thrust/{name}", seed=3)
    assert env.spec.max_episode_steps is None
    obs, _ = env.reset()
    assert np.array_equal(obs, CLASSES[name](seed=3).reset()[0])
    env.close()


def test_registering_twice_changes_nothing():
    before = dict(gymnasium.registry)
    register_environments()
    assert gymnasium.registry == before


def test_parameters_reach_the_environment():
    env = gymnasium.make("thrust/FlickeringCartPole-v0", flicker_prob=0.3, burst_len=4.0, integrator="semi-implicit")
    functional = env.unwrapped.functional
    assert (functional.sensor.flicker_prob, functional.sensor.burst_len) == (0.3, 4.0)
    assert functional.physics.integrator == "semi-implicit"
    assert MaskedCartPole("semi-implicit").functional.physics.integrator == "semi-implicit"
    assert CartPole("semi-implicit").functional.physics.integrator == "semi-implicit"


@pytest.mark.parametrize("build", [CartPole, lambda **kw: FlickeringCartPole(0.4, **kw), MaskedCartPole])
def test_it_draws_the_numbers_of_stream_0_of_the_compiled_path(build):
    env, actions = build(seed=7), coins(300)
    functional = env.functional
    stream = environment_keys(jax.random.key(7), 1)[0]
    state, frame = jax.jit(functional.init)(step_key(stream, 0))
    go = jax.jit(lambda t, state, action: step_and_restart(functional, step_key(stream, t), state, action))
    obs, info = env.reset()
    assert np.array_equal(obs, frame.obs) and info == {"blank": bool(frame.blank)}
    episodes = 0
    for t, action in enumerate(actions, start=1):
        state, expected, frame = go(t, state, action)
        obs, reward, terminated, truncated, info = env.step(action)
        assert np.array_equal(obs, expected.obs)
        assert (reward, terminated, truncated) == (expected.reward, expected.terminated, expected.truncated)
        assert info == {"blank": bool(expected.blank)}
        if terminated or truncated:
            obs, info = env.reset()
            episodes += 1
        assert np.array_equal(obs, frame.obs) and info == {"blank": bool(frame.blank)}
    assert episodes > 5


def test_types_are_gymnasiums():
    env = FlickeringCartPole(seed=0)
    obs, info = env.reset()
    later, reward, terminated, truncated, step_info = env.step(np.int64(1))
    assert obs.dtype == later.dtype == np.float32 and obs.flags.writeable and later.flags.writeable
    assert [type(x) for x in (reward, terminated, truncated)] == [float, bool, bool]
    assert set(info) == set(step_info) == {"blank"}, "the hidden state is not in info"


def test_termination_and_truncation_are_told_apart():
    env = StatefulEnv(environment(Counter(), max_steps=3), seed=0)
    env.reset()
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    env = StatefulEnv(environment(Short(longest=1)), seed=0)
    env.reset()
    assert env.step(0)[2:4] == (True, False)


def test_a_seed_begins_a_new_stream_and_no_seed_goes_on():
    env = CartPole(seed=1)
    first = env.reset()[0]
    second = env.reset()[0]
    assert np.array_equal(env.reset(seed=1)[0], first)
    assert np.array_equal(env.reset()[0], second)
    assert not np.array_equal(env.reset(seed=2)[0], first)
    assert np.array_equal(CartPole().reset(seed=1)[0], first), "the constructor's seed is the first reset's"


def test_without_any_seed_two_environments_differ():
    one, other = CartPole(), CartPole()
    assert not np.array_equal(one.reset()[0], other.reset()[0])


def test_resets_in_a_row_all_begin_differently_and_so_do_those_after_steps():
    env = CartPole(seed=0)
    firsts = [env.reset()[0] for _ in range(20)]
    env.step(1)
    firsts += [env.reset()[0] for _ in range(20)]
    assert len({tuple(obs) for obs in firsts}) == 40


def test_extra_resets_leave_later_episodes_and_blanks_alone():
    actions = coins(60, seed=3)
    plain, fidgety = FlickeringCartPole(seed=5), FlickeringCartPole(seed=5)
    plain.reset()
    for _ in range(4):
        fidgety.reset()
    blanks = []
    for env in (plain, fidgety):
        seen = []
        for t, action in enumerate(actions):
            seen.append(env.step(action)[4]["blank"])
            if t % 10 == 9:  # both begin their next episodes at the same steps
                last, _ = env.reset()
        blanks.append((seen, last.tolist()))
    assert blanks[0] == blanks[1]


def test_a_snapshot_replays_exactly_as_often_as_asked():
    env, actions = FlickeringCartPole(0.5, burst_len=3.0, seed=0), coins(120)
    env.reset()
    played(env, coins(37, seed=9))
    snapshot = env.clone_state()
    first = played(env, actions)
    assert len(first) >= 123, "the actions cross several episodes"
    for _ in range(2):
        env.restore_state(snapshot)
        assert played(env, actions) == first
    other = FlickeringCartPole(0.5, burst_len=3.0, seed=99)
    other.restore_state(snapshot)
    assert played(other, actions) == first
    third = FlickeringCartPole(0.5, burst_len=3.0)
    third.restore_state(pickle.loads(pickle.dumps(snapshot)))
    assert played(third, actions) == first
    assert played(copy.deepcopy(env), actions) == played(env, actions)


def test_a_snapshot_knows_how_many_resets_there_were_and_that_an_episode_ended():
    env = CartPole(seed=0)
    env.reset()
    env.reset()
    snapshot = env.clone_state()
    expected = env.reset()[0]
    env.restore_state(snapshot)
    assert np.array_equal(env.reset()[0], expected)
    while not env.step(1)[2]:
        pass
    ended = env.clone_state()
    env.reset()
    env.restore_state(ended)
    with pytest.raises(ValueError, match="after the episode ended"):
        env.step(0)


def test_a_snapshot_can_not_be_changed():
    env = CartPole(seed=0)
    env.reset()
    snapshot = env.clone_state()
    with pytest.raises(AttributeError):
        snapshot.over = True
    with pytest.raises(TypeError):
        snapshot.stream.clock[0] = 5


def test_what_is_not_its_snapshot_is_refused():
    env, other = FlickeringCartPole(0.5), FlickeringCartPole(0.4, seed=0)
    other.reset()
    with pytest.raises(ValueError, match=r"belongs to .*0\.4.*not to .*0\.5.*same parameters"):
        env.restore_state(other.clone_state())
    with pytest.raises(ValueError, match=r"clone_state\(\) before reset\(\): call reset"):
        env.clone_state()


def test_order_of_calls():
    env = CartPole(seed=0)
    with pytest.raises(ValueError, match=r"step\(\) before reset\(\): call reset\(\)"):
        env.step(0)
    env.reset()
    while not env.step(1)[2]:
        pass
    with pytest.raises(ValueError, match=r"after the episode ended: call reset\(\)"):
        env.step(0)
    env.reset()
    env.step(0)
    env.close()
    env.close()


@pytest.mark.parametrize("action", [np.array([1]), 1.0, np.nan, "left", True, None])
def test_an_action_is_one_integer(action):
    env = CartPole(seed=0)
    env.reset()
    with pytest.raises(TypeError, match=r"action is .*expected one integer of Discrete\(2\); convert it"):
        env.step(action)


@pytest.mark.parametrize("action", [-1, 2, np.uint8(255)])
def test_an_action_lies_in_its_space(action):
    env = CartPole(seed=0)
    env.reset()
    with pytest.raises(ValueError, match=rf"action is {action}: it must lie in \[0, 1\]$"):
        env.step(action)


def test_seeds_that_would_mean_the_same_numbers_are_refused():
    for seed in (-1, 2**32):
        with pytest.raises(ConfigError, match=rf"seed is {seed}: it must lie in \[0, 2\*\*32\)"):
            CartPole(seed=seed)
        with pytest.raises(ConfigError, match=rf"seed is {seed}"):
            CartPole().reset(seed=seed)
    for seed in (0.5, "1", True, None):
        with pytest.raises(TypeError, match=r"seed is .*expected an integer"):
            checked_seed(seed)
    assert CartPole(seed=np.uint32(2**32 - 1)).reset()[0].shape == (4,)


def test_options_are_refused():
    with pytest.raises(ValueError, match=r"reset options \{'low': 0\} are unknown: .* drop them"):
        CartPole().reset(options={"low": 0})
