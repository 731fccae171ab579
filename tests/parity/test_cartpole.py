"""Cart-pole moves as Gymnasium's classic CartPole-v1 does: states, rewards, falls and the time limit."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.envs.cartpole import CartPolePhysics, CartPoleState
from thrust_rl.envs.core import EnvState
from thrust_rl.envs.registry import make

INTEGRATORS = ["euler", "semi-implicit"]


def record(integrator, num_steps, *, controller=None):
    """Step Gymnasium's environment, time limit included; states in float64."""
    env = gymnasium.make("CartPole-v1")
    env.unwrapped.kinematics_integrator = integrator
    rng = np.random.default_rng(7)
    columns = {name: [] for name in ("state", "start", "action", "next", "reward", "terminated", "truncated")}
    over = True
    for _ in range(num_steps):
        if over:
            env.reset(seed=int(rng.integers(2**31)))
        state = env.unwrapped.state
        action = int(rng.integers(2)) if controller is None else int(controller @ state > 0)
        _, reward, terminated, truncated, _ = env.step(action)
        values = (state, over, action, env.unwrapped.state, reward, terminated, truncated)
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        over = terminated or truncated
    return {name: np.array(column) for name, column in columns.items()}


def replay(integrator, theirs, *, follow):
    """Our environment in float64 under the same actions.

    It carries its own state through every episode from Gymnasium's first one, or follows Gymnasium's state step by
    step. Either way it counts the steps itself.
    """
    env = make("CartPole-v1", integrator=integrator)
    key = jax.random.key(0)

    def body(state, inputs):
        start, given, action = inputs
        physics = jax.tree.map(
            lambda new, old: jnp.where(start | follow, new, old), CartPoleState(*given), state.physics
        )
        state = EnvState(physics, (), jnp.where(start, 0, state.elapsed))
        state, result = env.step(key, state, action)
        return state, (result.obs, result.reward, result.terminated, result.truncated)

    with jax.enable_x64(True):
        inputs = tuple(jnp.asarray(theirs[name]) for name in ("start", "state", "action"))
        first = EnvState(CartPoleState(*inputs[1][0]), (), jnp.zeros((), jnp.int32))
        ours = jax.jit(lambda first, inputs: jax.lax.scan(body, first, inputs)[1])(first, inputs)
    assert ours[0].dtype == np.float64
    return dict(zip(("next", "reward", "terminated", "truncated"), map(np.asarray, ours), strict=True))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_whole_random_trajectories_in_float64(integrator):
    theirs = record(integrator, 10_000)
    ours = replay(integrator, theirs, follow=False)
    assert theirs["terminated"].sum() > 300
    np.testing.assert_allclose(ours["next"], theirs["next"], atol=1e-10, rtol=0)
    for name in ("reward", "terminated", "truncated"):
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_balanced_pole_meets_the_limit_of_500_steps(integrator):
    theirs = record(integrator, 1500, controller=np.array([0.1, 0.3, 3.0, 1.0]))
    ours = replay(integrator, theirs, follow=True)
    assert np.flatnonzero(theirs["truncated"]).tolist() == [499, 999, 1499]
    # An upright pole doubles any rounding every 9 steps, so 500 steps of the same pushes would not stay together.
    np.testing.assert_allclose(ours["next"], theirs["next"], atol=1e-13, rtol=0)
    for name in ("reward", "terminated", "truncated"):
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_single_steps_in_float32(integrator):
    theirs = record(integrator, 10_000)
    physics = CartPolePhysics(integrator)
    states = CartPoleState(*jnp.asarray(theirs["state"], jnp.float32).T)
    step = jax.jit(jax.vmap(physics.step, in_axes=(None, 0, 0)))
    ours, reward, terminated = step(jax.random.key(0), states, jnp.asarray(theirs["action"], jnp.int32))
    assert ours.position.dtype == jnp.float32
    # Coordinates are of order 1, and a float32 has 24 bits: a few roundings are a few 1e-7.
    np.testing.assert_allclose(np.stack(ours, axis=-1), theirs["next"], atol=2e-6, rtol=0)
    np.testing.assert_array_equal(terminated, theirs["terminated"])
    np.testing.assert_array_equal(reward, theirs["reward"])
