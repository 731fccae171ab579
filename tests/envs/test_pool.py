"""The pool: the compiled path's numbers, no reset of its own, and errors that name the environment."""

import re
import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest

from envs_for_tests import Short, environment
from thrust_rl.config import ConfigError
from thrust_rl.envs import batch
from thrust_rl.envs.batch import CompiledBatch
from thrust_rl.envs.core import step_and_restart
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.host import HostBatch
from thrust_rl.envs.pool import EnvPool
from thrust_rl.envs.register import register_environments
from thrust_rl.envs.registry import make
from thrust_rl.envs.stateful import CartPole, FlickeringCartPole, MaskedCartPole, StatefulEnv
from thrust_rl.envs.streams import restart_some, step_all
from thrust_rl.maths.keys import environment_keys, step_key

register_environments()

N = 5


def compiled_path(functional, seed, actions):
    """First frames, then results and frames `[time, env]`, as the packaged rollout makes them."""
    streams = environment_keys(jax.random.key(seed), actions.shape[1])

    def body(state, inputs):
        t, action = inputs
        keys = jax.vmap(step_key, in_axes=(0, None))(streams, t)
        state, result, frame = jax.vmap(lambda *args: step_and_restart(functional, *args))(keys, state, action)
        return state, (result, frame)

    @jax.jit
    def run():
        state, first = jax.vmap(functional.init)(jax.vmap(step_key, in_axes=(0, None))(streams, 0))
        return first, jax.lax.scan(body, state, (jax.numpy.arange(1, len(actions) + 1), actions))[1]

    return jax.tree.map(np.asarray, run())


@pytest.mark.parametrize(
    "build",
    [CartPole, lambda: FlickeringCartPole(0.5), lambda: FlickeringCartPole(0.5, burst_len=4.0), MaskedCartPole],
)
def test_the_pool_is_the_compiled_path_step_by_step(build):
    actions = np.random.default_rng(0).integers(0, 2, (300, N))
    first, (results, frames) = compiled_path(build().functional, 11, actions)
    pool = EnvPool(build, N, seed=11)
    assert np.array_equal(pool.reset(), first.obs)
    episodes = 0
    for t in range(300):
        result = pool.step(actions[t])
        assert np.array_equal(result.obs, results.obs[t])
        assert np.array_equal(result.reward, results.reward[t])
        assert np.array_equal(result.terminated, results.terminated[t])
        assert np.array_equal(result.truncated, results.truncated[t])
        assert np.array_equal(result.info["blank"], results.blank[t])
        assert np.array_equal(pool.reset_where(result.over), frames.obs[t])
        episodes += result.over.sum()
    assert episodes > 5 * N


def test_environment_0_of_a_pool_is_the_single_environment():
    pool, env = EnvPool(FlickeringCartPole, N, seed=4), FlickeringCartPole(seed=4)
    assert np.array_equal(pool.reset()[0], env.reset()[0])
    for action in np.random.default_rng(1).integers(0, 2, 100):
        result, single = pool.step(np.full(N, action)), env.step(action)
        assert np.array_equal(result.obs[0], single[0])
        assert np.array_equal(pool.reset_where(result.over)[0], env.reset()[0] if single[2] else single[0])


def test_arrays_over_environments():
    pool = EnvPool(FlickeringCartPole, N)
    obs, result = pool.reset(), pool.step([0, 1, 0, 1, 1])
    assert (pool.num_envs, pool.observation_space.shape, pool.action_space.n) == (N, (4,), 2)
    for array in (obs, result.obs, pool.reset_where(np.arange(N) == 1)):
        assert array.shape == (N, 4) and array.dtype == np.float32 and array.flags.writeable
    assert result.reward.dtype == np.float32
    for flags in (result.terminated, result.truncated, result.info["blank"], result.over):
        assert flags.shape == (N,) and flags.dtype == bool
    assert result._fields == ("obs", "reward", "terminated", "truncated", "info")
    one = pool.reset_env(2)
    assert one.shape == (4,) and one.dtype == np.float32 and one.base is None


def test_what_was_handed_out_is_never_written_to_again():
    pool = EnvPool(CartPole, N)
    obs = pool.reset()
    result = pool.step(np.ones(N, int))
    frames = pool.reset_where(np.arange(N) == 0)
    handed_out = obs, result.obs, frames
    copies = [array.copy() for array in handed_out]
    result.terminated[:] = True  # nor does the pool look at what it handed out
    pool.step(np.ones(N, int))
    pool.reset_where(np.ones(N, bool))
    assert all(np.array_equal(a, b) for a, b in zip(copies, handed_out, strict=True))
    frames = pool.reset_where(np.zeros(N, bool))
    now = frames.copy()
    frames[:] = 7.0
    assert np.array_equal(pool.reset_where(np.zeros(N, bool)), now)


def test_every_environment_has_numbers_of_its_own_and_a_seed_repeats_them():
    first = EnvPool(CartPole, 16, seed=3).reset()
    assert len({tuple(row) for row in first}) == 16
    assert np.array_equal(EnvPool(CartPole, 16, seed=3).reset(), first)
    assert np.array_equal(EnvPool(CartPole, 4, seed=3).reset(), first[:4])
    assert not np.array_equal(EnvPool(CartPole, 16, seed=4).reset(), first)


def test_resetting_again_begins_new_episodes():
    pool = EnvPool(CartPole, N)
    rows = np.concatenate([pool.reset(), pool.reset(), [pool.reset_env(0), pool.reset_env(0)]])
    assert len({tuple(row) for row in rows}) == len(rows)


def test_resetting_one_leaves_the_others_alone():
    actions = np.random.default_rng(2).integers(0, 2, (8, N))
    plain, other = EnvPool(CartPole, N), EnvPool(CartPole, N)
    plain.reset(), other.reset()
    other.reset_env(1)
    for row in actions:
        a, b = plain.step(row).obs, other.step(row).obs
        assert np.array_equal(np.delete(a, 1, 0), np.delete(b, 1, 0)) and not np.array_equal(a[1], b[1])


def host_pool(num_envs=N, seed=0, **kwargs):
    return EnvPool(lambda: gymnasium.make("CartPole-v1", **kwargs), num_envs, seed=seed)


BOTH = pytest.mark.parametrize("build", [lambda: EnvPool(CartPole, N), host_pool], ids=["compiled", "host"])


@BOTH
def test_resetting_some_is_resetting_them_one_by_one(build):
    rng = np.random.default_rng(3)
    some, one_by_one = build(), build()
    current = some.reset()
    assert np.array_equal(one_by_one.reset(), current)
    for _ in range(60):
        for wanted in (rng.random(N) < 0.3, rng.random(N) < 0.3):  # twice in a row, ended or not
            found = some.reset_where(wanted)
            for i in np.flatnonzero(wanted):
                current[i] = one_by_one.reset_env(i)
            assert np.array_equal(found, current)
        actions = rng.integers(0, 2, N)
        result = some.step(actions)
        current = one_by_one.step(actions).obs
        assert np.array_equal(result.obs, current)
        if result.over.any():
            found = some.reset_where(result.over)
            for i in np.flatnonzero(result.over):
                current[i] = one_by_one.reset_env(i)
            assert np.array_equal(found, current) and not np.array_equal(found, result.obs)


def test_however_many_begin_anew_it_is_one_compiled_call(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return restart_some(*arguments)

    monkeypatch.setattr(batch, "restart_some", counted)
    pool = EnvPool(CartPole, N)
    pool.reset()
    for wanted, expected in (([1, 1, 1, 1, 1], 1), ([0, 1, 0, 0, 0], 2), ([0, 0, 0, 0, 0], 2)):
        pool.reset_where(np.array(wanted, bool))
        assert len(calls) == expected


@BOTH
def test_resetting_none_gives_what_is_there(build):
    pool, nobody = build(), np.zeros(N, bool)
    assert np.array_equal(pool.reset(), pool.reset_where(nobody))
    assert np.array_equal(pool.step(np.ones(N, int)).obs, pool.reset_where(nobody))
    first = pool.reset_env(2)
    assert np.array_equal(pool.reset_where(nobody)[2], first)


@BOTH
def test_resetting_only_some_of_what_ended_leaves_the_others_ended(build):
    pool = build()
    pool.reset()
    over = np.zeros(N, bool)
    while over.sum() < 2:
        pool.reset_where(over)
        over = pool.step(np.ones(N, int)).over
    first, *others = np.flatnonzero(over).tolist()
    pool.reset_where(np.arange(N) == first)
    with pytest.raises(ValueError, match=rf"environments {re.escape(str(others))} have ended"):
        pool.step(np.ones(N, int))


@BOTH
@pytest.mark.parametrize(
    ("over", "error", "message"),
    [
        (np.zeros(N), TypeError, "over has dtype float64: booleans are expected; compare"),
        ([0, 1, 0, 0, 0], TypeError, "over has dtype int64: booleans are expected"),
        (np.zeros(N - 1, bool), ValueError, r"over has shape \(4,\): expected \(5,\) for the axes \[env\]"),
        (np.zeros((N, 1), bool), ValueError, r"over has shape \(5, 1\): expected \(5,\)"),
        (True, ValueError, r"over has shape \(\): expected \(5,\).*nothing is broadcast"),
    ],
)
def test_what_to_reset_must_be_said_for_each(build, over, error, message):
    pool = build()
    with pytest.raises(ValueError, match=r"reset_where\(\) before reset\(\)"):
        pool.reset_where(np.zeros(N, bool))
    before = pool.reset()
    with pytest.raises(error, match=message):
        pool.reset_where(over)
    assert np.array_equal(pool.reset_where(np.zeros(N, bool)), before)


@BOTH
def test_an_ended_environment_must_be_reset_by_hand(build):
    pool = build()
    pool.reset()
    result = pool.step(np.ones(N, int))
    while not result.over.any():
        result = pool.step(np.ones(N, int))
    ended = np.flatnonzero(result.over).tolist()
    with pytest.raises(ValueError, match=rf"environments {re.escape(str(ended))} have ended: call reset_where"):
        pool.step(np.ones(N, int))
    pool.reset_where(result.over)
    pool.step(np.ones(N, int))
    pool.close()


def test_reset_brings_ended_environments_back():
    pool = EnvPool(lambda: StatefulEnv(environment(Short(longest=1))), N)
    pool.reset()
    assert pool.step(np.zeros(N, int)).terminated.all()
    pool.reset()
    pool.step(np.zeros(N, int))


BAD_ACTIONS = [
    ([0, 1], ValueError, r"shape \(2,\): expected \(5,\).*nothing is broadcast"),
    (1, ValueError, r"shape \(\): expected \(5,\)"),
    (np.zeros((N, 1), int), ValueError, r"shape \(5, 1\): expected \(5,\)"),
    (np.zeros(N), TypeError, r"dtype float64: integers are expected.*astype"),
    (np.zeros(N, bool), TypeError, "dtype bool: integers are expected"),
    ([0, 1, np.nan, 0, np.inf], ValueError, r"actions\[2\] is nan: it must be finite.*\(the first of 2\)"),
    ([0, 2, 0, -1, 0], ValueError, r"actions\[1\] is 2: it must lie in \[0, 1\] \(the first of 2\)"),
    (np.full(N, 2**63, np.uint64), ValueError, "must lie in"),
]


@pytest.mark.parametrize(("actions", "error", "message"), BAD_ACTIONS)
@BOTH
def test_actions_that_do_not_fit(build, actions, error, message):
    pool = build()
    pool.reset()
    with pytest.raises(error, match=message):
        pool.step(actions)
    pool.step(np.zeros(N, np.uint8))  # and the pool goes on


def test_order_of_calls_and_indices():
    pool = EnvPool(CartPole, N)
    with pytest.raises(ValueError, match=r"step\(\) before reset\(\): call reset\(\)"):
        pool.step(np.zeros(N, int))
    with pytest.raises(ValueError, match=r"reset_env\(\) before reset\(\)"):
        pool.reset_env(0)
    pool.reset()
    for index in (N, -1):
        with pytest.raises(IndexError, match=rf"no environment {index}: 5 environments have indices 0 to 4"):
            pool.reset_env(index)
    with pytest.raises(TypeError, match="index is True"):
        pool.reset_env(True)


def test_settings_that_do_not_fit():
    with pytest.raises(ConfigError, match="num_envs is 0: it must be at least 1"):
        EnvPool(CartPole, 0)
    with pytest.raises(ConfigError, match="seed is -1"):
        EnvPool(CartPole, N, seed=-1)
    with pytest.raises(TypeError, match=r"built a FunctionalEnv: expected a gymnasium.Env .*StatefulEnv"):
        EnvPool(lambda: make("CartPole-v1"), N)
    env = CartPole()
    with pytest.raises(ConfigError, match="same environment twice: it must build a new one"):
        EnvPool(lambda: env, N)
    kinds = iter([CartPole, MaskedCartPole])
    with pytest.raises(ConfigError, match="observation_space differ"):
        EnvPool(lambda: next(kinds)(), 2)


def test_an_environment_in_place_of_a_function_is_explained():
    # In a process of its own: here, the annotations' checker would speak first.
    code = "from thrust_rl.envs.pool import EnvPool, StatefulEnv; from thrust_rl.envs.stateful import CartPole;"
    done = subprocess.run([sys.executable, "-c", code + "EnvPool(CartPole(), 2)"], capture_output=True, text=True)
    assert "TypeError: make_env is a CartPole: pass a function that builds one environment" in done.stderr


class Louder(FlickeringCartPole):
    """Rewards ten times as high."""

    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, 10 * reward, *rest


def test_only_the_librarys_own_behaviour_is_compiled():
    def batch(build):
        return type(EnvPool(build, 2)._batch)

    assert batch(FlickeringCartPole) is CompiledBatch
    assert batch(lambda: gymnasium.make("thrust/CartPole-v1")) is CompiledBatch
    assert batch(lambda: gymnasium.make("CartPole-v1")) is HostBatch
    assert batch(Louder) is HostBatch
    assert batch(lambda: gymnasium.wrappers.TimeLimit(CartPole(), 5)) is HostBatch
    mixed = iter([0.25, 0.75])
    assert batch(lambda: FlickeringCartPole(next(mixed))) is HostBatch


def test_what_is_stepped_by_hand_keeps_its_blanks_and_its_behaviour():
    probabilities = iter([0.0, 1.0])
    pool = EnvPool(lambda: Louder(next(probabilities)), 2)
    pool.reset()
    result = pool.step([0, 0])
    assert result.info["blank"].tolist() == [False, True] and result.reward.tolist() == [10.0, 10.0]
    assert result.obs.dtype == np.float32 and not result.obs[1].any() and result.obs[0].any()


def test_host_environments_are_seeded_from_the_base_seed_each_with_its_own():
    first = host_pool(seed=1).reset()
    assert len({tuple(row) for row in first}) == N
    assert np.array_equal(host_pool(seed=1).reset(), first) and not np.array_equal(host_pool(seed=2).reset(), first)
    assert np.array_equal(host_pool(num_envs=2, seed=1).reset(), first[:2])
    pool = host_pool(seed=1)
    assert not np.array_equal(pool.reset(), pool.reset())


def test_a_time_limit_around_host_environments_truncates():
    pool = host_pool(max_episode_steps=3)
    pool.reset()
    results = [pool.step(np.ones(N, int)) for _ in range(3)]
    assert [result.truncated.tolist() for result in results] == [[False] * N, [False] * N, [True] * N]
    assert not any(result.terminated.any() for result in results)
    assert (results[2].obs[:, 1] > 0.4).all(), "the successor, still moving, and not the next episode's first frame"


def test_a_host_environments_info_is_gathered():
    pool = EnvPool(lambda: gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("thrust/CartPole-v1")), 2)
    pool.reset()
    result = pool.step([1, 1])
    while not result.over.any():
        assert set(result.info) == {"blank"}
        result = pool.step([1, 1])
    for over, episode in zip(result.over, result.info["episode"], strict=True):
        assert (episode is not None) == over


class Broken(gymnasium.Env):
    """Gives what it is told to."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)

    def __init__(self, obs=(0.0, 0.0), reward=0.0):
        self.obs, self.reward = obs, reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.array(self.obs, np.float32), self.reward, False, False, {}


def test_a_broken_host_environment_is_named():
    for broken, message in (
        (Broken(obs=(0.0, np.nan)), "environment 1 at step 1: it gave an observation that is not finite"),
        (Broken(obs=(0.0,)), r"environment 1 .* it gave an observation of shape \(1,\): its space says \(2,\)"),
        (Broken(reward=np.inf), "environment 1 at step 1: its reward is inf: it must be finite"),
    ):
        envs = iter([Broken(), broken])
        pool = EnvPool(lambda envs=envs: next(envs), 2)
        pool.reset()
        with pytest.raises(EnvError, match=message):
            pool.step(np.zeros((2, 3), np.float32))


def test_continuous_actions_are_checked_too():
    pool = EnvPool(Broken, 2)
    pool.reset()
    assert pool.step(np.ones((2, 3), np.float32)).reward.tolist() == [0.0, 0.0]
    for actions, message in (
        (np.zeros((2, 2), np.float32), r"shape \(2, 2\): expected \(2, 3\)"),
        (np.full((2, 3), np.nan, np.float32), r"actions\[0, 0\] is nan: it must be finite"),
        (np.array([[0, 0, 0], [0, 0, 2]], np.float32), r"environments \[1\] are outside Box.*clip them"),
    ):
        with pytest.raises(ValueError, match=message):
            pool.step(actions)


def test_spaces_that_are_no_single_array_are_refused():
    class Nested(Broken):
        observation_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)})

    with pytest.raises(ConfigError, match="a pool needs one that is a single array; flatten it"):
        EnvPool(Nested, 2)


def test_stepping_compiles_once():
    pool = EnvPool(FlickeringCartPole, N)
    pool.reset()
    pool.step(np.zeros(N, int))
    pool.reset_env(0)
    before = step_all._cache_size(), restart_some._cache_size()
    for actions in ([0] * N, np.ones(N, np.uint8), np.zeros(N, np.int64)):
        pool.step(actions)
        for i in range(N):
            pool.reset_env(i)
        pool.reset_where(np.arange(N) < 2)
    assert (step_all._cache_size(), restart_some._cache_size()) == before
