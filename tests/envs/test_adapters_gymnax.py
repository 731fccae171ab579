"""gymnax behind `gymnax:`: the same transitions as stepping it by hand, with ends told apart, in both of its APIs."""

import dataclasses
import functools
import pickle

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.config import ConfigError, PPOConfig, TrainConfig, arm_from
from thrust_rl.envs.actions import action_spec
from thrust_rl.envs.adapters.gymnax import GymnaxPhysics, gymnasium_space
from thrust_rl.envs.core import FullyObserved, FunctionalEnv, step_and_restart
from thrust_rl.envs.named import make, twin_of_task
from thrust_rl.envs.observation.names import coordinate_names
from thrust_rl.envs.stateful import StatefulEnv
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.train import train

gymnax = pytest.importorskip("gymnax", reason="gymnax is not installed: pip install 'thrust-rl[gymnax]'")

STREAM = environment_keys(jax.random.key(7), 1)[0]
FIRST = step_key(STREAM, 0)
PUSHES = jnp.ones(20, jnp.int32)


# Compiling is what these tests spend their time on, so nothing is optimized.
compiled = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@functools.partial(compiled, static_argnums=0)
def ours(env, actions):
    """Transitions of one stream through what training uses."""

    def body(state, t_and_action):
        t, action = t_and_action
        state, result, frame = step_and_restart(env, step_key(STREAM, t), state, action)
        return state, (result, frame)

    state, first = env.init(FIRST)
    return first, jax.lax.scan(body, state, (jnp.arange(1, len(actions) + 1), actions))[1]


def by_hand(name, actions, **params):
    """The same, by gymnax's own `step_env` and `reset_env` in a plain loop."""
    env, defaults = gymnax.make(name)
    params = dataclasses.replace(defaults, **params)
    step, reset = compiled(env.step_env), compiled(env.reset_env)
    obs, state = reset(purpose_key(FIRST, Purpose.RESET), params)
    rows, elapsed = [obs], 0
    for t, action in enumerate(actions, start=1):
        key, elapsed = step_key(STREAM, t), elapsed + 1
        obs, state, reward, ended, _ = step(purpose_key(key, Purpose.PHYSICS), state, action, params)
        at_limit = elapsed >= params.max_steps_in_episode
        terminated = bool(ended) and not (at_limit and name.startswith("Pendulum"))  # which never terminates
        rows.append((obs, reward, terminated, at_limit and not terminated))
        if terminated or at_limit:
            obs, state = reset(purpose_key(key, Purpose.RESET), params)
            elapsed = 0
        rows.append(obs)
    return rows


def some_actions(env, count):
    space = env.action_space
    space.seed(3)
    return jnp.asarray(np.stack([space.sample() for _ in range(count)]))


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_transitions_are_those_of_stepping_by_hand(name):
    env = make(f"gymnax:{name}", max_steps_in_episode=30)
    actions = some_actions(env, 100)
    first, (results, frames) = ours(env, actions)
    rows = by_hand(name, actions, max_steps_in_episode=30)
    np.testing.assert_allclose(first.obs, rows[0], rtol=1e-5, atol=1e-6)
    successors, nexts = rows[1::2], rows[2::2]
    obs, reward, terminated, truncated = (np.array(column) for column in zip(*successors, strict=True))
    np.testing.assert_allclose(results.obs, obs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(results.reward, reward, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(frames.obs, np.array(nexts), rtol=1e-4, atol=1e-5)
    assert np.array_equal(results.terminated, terminated)
    assert np.array_equal(results.truncated, truncated)
    assert truncated.sum() >= 1  # a limit was met
    assert terminated.sum() == 0 if name == "Pendulum-v1" else terminated.sum() >= 2
    over = terminated | truncated
    assert not np.allclose(obs[over], np.array(nexts)[over])  # the final observation is the one before the reset


def first_fall():
    """How many pushes to the right a pole survives, the last one included, without a limit in the way."""
    return int(np.argmax(ours(make("gymnax:CartPole-v1"), PUSHES)[1][0].terminated)) + 1


def test_a_pole_that_falls_at_the_limit_terminated():
    fall = first_fall()
    result = ours(make("gymnax:CartPole-v1", max_steps_in_episode=fall), PUSHES)[1][0]
    assert result.terminated[: fall + 1].tolist() == [False] * (fall - 1) + [True, False]
    assert not result.truncated[:fall].any()


def old_api(env):
    """A gymnax environment as releases before 1.0 had it: `done` includes the limit, and nothing tells it apart.

    gymnax 0.0.9 itself is in test_adapters_gymnax_older.py; this one has the physics of the release that is installed.
    """

    class Old:
        default_params, step, reset = env.default_params, None, None
        reset_env, observation_space, action_space = env.reset_env, env.observation_space, env.action_space

        def step_env(self, key, state, action, params):
            obs, state, reward, terminated, info = env.step_env(key, state, action, params)
            return obs, state, reward, terminated | (state.time >= params.max_steps_in_episode), info

        def is_terminal(self, state, params):
            return env.is_terminal(state, params) | (state.time >= params.max_steps_in_episode)

    return Old()


@pytest.fixture
def with_old_api():
    """`CartPole-v1` of the old API, registered under another name."""
    name = "OldCartPole-v1"
    if name not in gymnax.registered_envs:
        gymnax.registration.register(name, lambda: old_api(gymnax.make("CartPole-v1")[0]))
    return name


def test_of_the_old_api_the_limit_is_no_termination(with_old_api):
    limit = 9  # where some poles still stand and others have fallen
    new, old = (make(f"gymnax:{name}", max_steps_in_episode=limit) for name in ("CartPole-v1", with_old_api))
    pushes = jnp.ones(200, jnp.int32)
    (_, (expected, _)), (_, (results, _)) = ours(new, pushes), ours(old, pushes)
    assert expected.terminated.sum() >= 2 and expected.truncated.sum() >= 2
    for one, other in zip(results, expected, strict=True):
        assert np.array_equal(one, other)


def test_of_the_old_api_falling_at_the_limit_is_a_termination(with_old_api):
    fall = first_fall()
    result = ours(make(f"gymnax:{with_old_api}", max_steps_in_episode=fall), PUSHES)[1][0]
    assert bool(result.terminated[fall - 1]) and not bool(result.truncated[fall - 1])


def test_physics_is_a_value():
    one, same = (make("gymnax:Acrobot-v1", available_torque=[-2.0, 0.0, 2.0]).physics for _ in range(2))
    other = make("gymnax:Acrobot-v1").physics
    assert one == same and hash(one) == hash(same) and one != other
    assert pickle.loads(pickle.dumps(one)) == one


def test_parameters_reach_gymnax():
    assert make("gymnax:CartPole-v1").max_steps == 500
    assert make("gymnax:CartPole-v1", max_steps_in_episode=7).max_steps == 7
    assert make("gymnax:Catch-bsuite", rows=6).observation_space.shape == (6, 5)  # of the constructor
    gentle, rough = (
        ours(make("gymnax:Pendulum-v1", **kwargs), jnp.full((3, 1), 2.0))[1][0].obs for kwargs in ({}, {"m": 0.1})
    )
    assert not np.allclose(gentle, rough)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("CartPole-v7", {}, "did you mean 'CartPole-v1'"),
        ("CartPole-v1", {"gravty": 1.0}, "its parameters are .*gravity"),
        ("CartPole-v1", {"max_steps_in_episode": 0}, "whole number of at least 1"),
        ("CartPole-v1", {"max_steps_in_episode": 2.5}, "whole number of at least 1"),
    ],
)
def test_mistakes_are_named(name, params, message):
    with pytest.raises(ConfigError, match=message):
        make(f"gymnax:{name}", **params)


def test_workers_are_refused():
    with pytest.raises(ConfigError, match="compiled and needs none"):
        make("gymnax:CartPole-v1", env_workers=2)


def test_spaces_become_gymnasiums():
    kinds, spaces = gymnax.environments.spaces, gymnasium.spaces
    box = kinds.Box(0, 2, (2, 3), jnp.int32)
    assert gymnasium_space(kinds.Discrete(3)) == spaces.Discrete(3)
    assert gymnasium_space(box) == spaces.Box(0.0, 2.0, (2, 3), np.float32)
    assert gymnasium_space(kinds.Dict({"a": box})) == spaces.Dict(a=gymnasium_space(box))
    assert gymnasium_space(kinds.Tuple([box])) == spaces.Tuple([gymnasium_space(box)])
    with pytest.raises(ConfigError, match="Dict and Tuple are known"):
        gymnasium_space(kinds.Space())


def test_observation_models_stand_in_front_and_the_twin_is_without():
    env = make("gymnax:CartPole-v1", observe=["mask:1,3"])
    assert env.observation_space.shape == (2,)
    assert twin_of_task(env).observation_space.shape == (4,)
    assert twin_of_task(make("gymnax:CartPole-v1")) is None


VELOCITIES = {
    "CartPole-v1": {"cart_velocity": "x_dot", "pole_velocity": "theta_dot"},
    "Pendulum-v1": {"velocity": "theta_dot"},
    "MountainCar-v0": {"velocity": "velocity"},
    "MountainCarContinuous-v0": {"velocity": "velocity"},
    "Acrobot-v1": {"velocity_1": "velocity_1", "velocity_2": "velocity_2"},
}


@pytest.mark.parametrize("name", VELOCITIES)
def test_coordinates_have_the_names_of_gymnasiums_tasks(name):
    """What is hidden by name is what gymnax's own state calls so."""
    env, names = make(f"gymnax:{name}"), coordinate_names(f"gymnax:{name}")
    state, frame = env.init(jax.random.key(4))
    for _ in range(3):
        state, frame = env.step(jax.random.key(5), state, jax.numpy.asarray(env.action_space.sample()))
    for coordinate, field in VELOCITIES[name].items():
        assert frame.obs[names.index(coordinate)] == getattr(state.physics.inner, field) != 0.0
    hidden = make(f"gymnax:{name}", observe=f"mask:{','.join(VELOCITIES[name])}")
    assert hidden.observation_space.shape == (len(names) - len(VELOCITIES[name]),)


def test_choices_are_hidden_by_one_flag():
    lake = make("gymnax:FrozenLake-misc", observe=["mask:3", "flicker:0.5"])
    assert lake.observation_space == gymnasium.spaces.MultiBinary(15)
    assert twin_of_task(lake).observation_space == gymnasium.spaces.Discrete(16)
    noisy = make("gymnax:FrozenLake-misc", observe="noise:0.1").observation_space
    assert noisy == gymnasium.spaces.Box(-np.inf, np.inf, (16,))
    config = TrainConfig(total_timesteps=64, num_envs=4, num_steps=16, ppo=PPOConfig(batch_size=32, n_epochs=1))
    progress = []
    train(lake, "mlp", config, on_progress=progress.append)
    assert progress[-1].steps == 64


@pytest.mark.parametrize("name", ["FrozenLake-misc", "Pendulum-v1"])
def test_it_is_a_gymnasium_environment_too(name):
    functional = make(f"gymnax:{name}", max_steps_in_episode=5)
    env = StatefulEnv(functional, seed=1)
    obs, _ = env.reset()
    env.action_space.seed(0)
    ends = []
    for _ in range(5):
        assert env.observation_space.contains(obs)
        obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert isinstance(reward, float)
        ends.append(terminated or truncated)
        if terminated:
            break
    assert ends[-1]
    assert env.observation_space.contains(obs)


def test_it_trains_and_is_evaluated():
    config = TrainConfig(total_timesteps=128, num_envs=4, num_steps=16, ppo=PPOConfig(batch_size=32, n_epochs=1))
    env = make("gymnax:Pendulum-v1", max_steps_in_episode=10)
    [result] = train(env, "mlp", config)
    assert result.curve.episodes == 4 * (2 * 16 // 10)
    episodes = evaluate(env, arm_from("mlp"), config, result.state, episodes=3)
    assert (episodes.length == 10).all() and (episodes.episode_return < 0).all()


def test_actions_of_a_continuous_space_are_the_environments_units():
    env = make("gymnax:Pendulum-v1")
    assert isinstance(env, FunctionalEnv) and isinstance(env.sensor, FullyObserved)
    assert isinstance(env.physics, GymnaxPhysics)
    assert action_spec(env.action_space).to_env(np.array([[5.0]])).tolist() == [[2.0]]
