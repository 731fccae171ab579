"""An environment is a pure function: true successors, limits told from failures, fresh starts, one compilation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from thrust_rl.envs.cartpole import CartPolePhysics, CartPoleState
from thrust_rl.envs.core import EnvState, FullyObserved, FunctionalEnv, step_and_restart
from thrust_rl.envs.registry import ENVIRONMENTS, make
from thrust_rl.maths.keys import environment_keys

STREAM = environment_keys(jax.random.key(3), 1)
NAMES = sorted(ENVIRONMENTS)


def push_right(state, key):
    return jnp.array(1)


def push_at_random(state, key):
    return jax.random.randint(key, (), 0, 2)


def balance(state, key):
    lean = 0.1 * state.position + 0.3 * state.velocity + 3.0 * state.angle + state.angular_velocity
    return (lean > 0).astype(int)


def cartpole(max_steps):
    return FunctionalEnv("short", CartPolePhysics(), FullyObserved(), max_steps)


def first_fall(walk):
    """How many pushes to the right the first episode of STREAM survives, the last one included."""
    _, (_, results, _) = walk(cartpole(500), STREAM, push_right, 200)
    return int(np.argmax(results.terminated[0])) + 1


def test_the_successor_is_the_one_before_the_restart(walk):
    _, (states, results, frames) = walk(cartpole(500), STREAM, push_right, 200)
    over = np.asarray(results.terminated | results.truncated)[0]
    obs, nxt = np.asarray(results.obs)[0], np.asarray(frames.obs)[0]
    assert over.sum() > 10
    assert np.all(np.abs(obs[over, 2]) > 0.2094)  # the pole as it fell: beyond 12 degrees = 0.20944 rad
    assert np.all(np.abs(nxt[over]) <= 0.05)  # and the start of the next episode
    assert np.array_equal(obs[~over], nxt[~over])
    np.testing.assert_array_equal(nxt, np.stack(states.physics, axis=-1)[0])  # the state goes on from the frame
    assert np.all(np.asarray(states.elapsed)[0, over] == 0)


def test_falling_on_the_very_step_of_the_limit_is_a_termination(walk):
    fall = first_fall(walk)
    ends = {}
    for limit in (fall - 1, fall, fall + 1):
        _, (_, results, _) = walk(cartpole(limit), STREAM, push_right, fall)
        ends[limit] = [(bool(results.terminated[0, t]), bool(results.truncated[0, t])) for t in (fall - 2, fall - 1)]
    assert ends[fall - 1][0] == (False, True)  # the limit alone
    assert ends[fall] == [(False, False), (True, False)]  # both at once
    assert ends[fall + 1] == [(False, False), (True, False)]  # the fall alone


def test_every_episode_has_the_whole_limit(walk):
    _, (_, results, _) = walk(cartpole(7), STREAM, balance, 70)
    assert np.flatnonzero(results.truncated[0]).tolist() == list(range(6, 70, 7))
    assert not results.terminated.any()


def test_an_episode_of_a_good_controller_ends_at_500_steps(walk):
    _, (_, results, _) = walk(make("CartPole-v1"), STREAM, balance, 1000)
    assert np.flatnonzero(results.truncated[0]).tolist() == [499, 999]
    assert not results.terminated.any()
    assert float(results.reward.sum()) == 1000.0


@pytest.mark.parametrize("when", ["init", "restart"])
def test_episodes_start_uniformly_within_5_hundredths(walk, when):
    if when == "init":
        _, frame = jax.jit(jax.vmap(make("CartPole-v1").init))(environment_keys(jax.random.key(0), 4000))
        starts = np.asarray(frame.obs)
    else:  # 2 streams x 2000 episodes of one step
        _, (_, _, frames) = walk(cartpole(1), environment_keys(jax.random.key(1), 2), push_right, 2000)
        starts = np.asarray(frames.obs).reshape(-1, 4)
    assert len(np.unique(starts, axis=0)) == len(starts)  # never the same start twice
    assert np.abs(starts).max() <= 0.05
    for coordinate in starts.T:
        assert stats.kstest(coordinate, stats.uniform(-0.05, 0.1).cdf).pvalue > 1e-4
    # Coordinates and successive episodes are independent: a correlation of n pairs has standard error 1/sqrt(n).
    pairs = np.corrcoef(np.hstack([starts[:-1], starts[1:]]).T)
    assert np.abs(pairs - np.eye(8)).max() < 5 / np.sqrt(len(starts))


@pytest.mark.parametrize("name", NAMES)
def test_frames_and_actions_lie_in_their_spaces(walk, name):
    env = make(name)
    (_, first), (_, results, frames) = walk(env, STREAM, push_at_random, 300)
    seen = [np.asarray(first.obs[0]), *np.asarray(results.obs[0]), *np.asarray(frames.obs[0])]
    assert all(env.observation_space.contains(obs) for obs in seen)
    assert env.action_space.n == 2 and env.action_space.start == 0


def test_compiled_and_batched_equal_plain():
    env, streams = make("FlickeringCartPole-v0"), environment_keys(jax.random.key(4), 4)
    states = EnvState(CartPoleState(*jnp.full((4, 4), 0.01)), jnp.zeros(4, bool), jnp.array([0, 0, 499, 499]))
    actions = jnp.array([0, 1, 0, 1])
    compiled = jax.jit(lambda *args: step_and_restart(env, *args))
    together = jax.jit(jax.vmap(lambda *args: step_and_restart(env, *args)))(streams, states, actions)
    assert together[1].truncated.tolist() == [False, False, True, True]  # two go on, two start anew
    for i in range(4):
        mine = jax.tree.map(lambda leaf, i=i: leaf[i], (streams, states, actions))
        alone = compiled(*mine)
        if i == 0:
            with jax.disable_jit():
                _, plain = env.step(*mine)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), plain, alone[1])
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a, b[i], atol=1e-6), alone, together)


@pytest.mark.parametrize("name", NAMES)
def test_compiles_once_whatever_the_key_and_the_action(name):
    env, traces = make(name), []

    @jax.jit
    def step(key, state, action):
        traces.append(1)
        return step_and_restart(env, key, state, action)

    state, _ = env.init(jax.random.key(0))
    for t in range(40):  # far enough to pass a restart
        state, _, _ = step(jax.random.key(t), state, jnp.array(t % 3 > 0, int))
    assert len(traces) == 1


def test_equal_environments_are_one_key_of_a_cache():
    assert make("FlickeringCartPole-v0", flicker_prob=0.25) == make("FlickeringCartPole-v0", flicker_prob=0.25)
    assert len({make("CartPole-v1"), make("CartPole-v1"), make("CartPole-v1", integrator="semi-implicit")}) == 2
