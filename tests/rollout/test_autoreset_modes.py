"""The autoreset modes of Gymnasium's vector environments give the same experience; what running moments change."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorWrapper
from gymnasium.vector.async_vector_env import _async_worker

from autoreset_for_tests import IN_A_STEP, MODES, RESETS_TAKE_NO_STEP, stepped, vector_of
from host_envs_for_tests import Telling
from host_rollouts_for_tests import ARM, CONFIG, Mixed, acted, collected
from thrust_rl.config import ConfigError
from thrust_rl.envs.task import VectorTask
from thrust_rl.maths.moments import Moments, initial_moments
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.advantages import rollout_advantages
from thrust_rl.rollout.hosted import HostCollector
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.loop import initial_learner
from thrust_rl.training.train import train

RUNNING = dataclasses.replace(CONFIG, ppo=dataclasses.replace(CONFIG.ppo, normalize_obs=True))
COLD = dataclasses.replace(RUNNING, window_start="cold")
TWO_UPDATES = dataclasses.replace(RUNNING, total_timesteps=96)
# Of so many frames that a float32 does not notice another hundred.
HELD = Moments(np.float32([0.4, 2.5, 0.7]), np.float32([0.1, 2.0, 0.6]), np.float32(1e12))

targets_of = jax.jit(lambda rollout: rollout_advantages(rollout, gamma=0.9, gae_lambda=0.8).value_target)


def transitions(window, env):
    """What one environment lived through, resets left out: rows of everything that matters.

    A target is NaN where the window ends before the episode: then it depends on where that is.
    """
    rollout = window.rollout
    valid = np.ones(16, bool) if isinstance(rollout.valid, tuple) else rollout.valid[env]
    over = (rollout.terminated | rollout.truncated)[env]
    ends_here = np.logical_or.accumulate(over[::-1])[::-1]
    rows = {
        "obs": rollout.obs.obs[env],
        "previous action": rollout.obs.action[env],
        "previous reward": rollout.obs.reward[env],
        "start": rollout.episode_start[env],
        "action": rollout.action[env],
        "log_prob": rollout.log_prob[env],
        "value": rollout.value[env],
        "reward": rollout.reward[env],
        "terminated": rollout.terminated[env],
        "truncated": rollout.truncated[env],
        "target": np.where(ends_here, targets_of(rollout)[env], np.nan),
        "began here": np.logical_or.accumulate(rollout.episode_start[env]),
    }
    return {name: row[valid] for name, row in rows.items()}


def lives(windows):
    """Of every environment, over all windows."""
    pieces = [[transitions(window, env) for window in windows] for env in range(3)]
    return [{name: np.concatenate([piece[name] for piece in mine]) for name in mine[0]} for mine in pieces]


def assert_same(mine, theirs, *, least, whole_episodes=False):
    """As far as both lived, in every environment; if asked for, only in episodes that no start of a window cut."""
    for life, other in zip(mine, theirs, strict=True):
        length = min(len(life["start"]), len(other["start"]))  # resets take steps of the window in one mode
        life, other = ({name: rows[:length] for name, rows in each.items()} for each in (life, other))
        chosen = life.pop("began here") & other.pop("began here") if whole_episodes else np.ones(length, bool)
        targeted = chosen & np.isfinite(life["target"]) & np.isfinite(other["target"])
        assert targeted.sum() >= least
        for name in life.keys() - {"began here"}:
            where = targeted if name == "target" else chosen
            np.testing.assert_allclose(life[name][where], other[name][where], rtol=1e-5, atol=1e-6, err_msg=name)


@functools.cache
def seen(mode, config, *, held):
    """Three windows of one policy."""
    windows, moments = acted(stepped(Mixed, mode), config, windows=3, held=HELD if held else None)
    if held:
        jax.tree.map(np.testing.assert_array_equal, moments, HELD)
    return windows


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(("config", "held"), [(CONFIG, False), (RUNNING, True)], ids=["raw", "normalized"])
def test_all_autoreset_modes_give_the_same_transitions_and_targets(mode, config, held):
    """F9, F10: and the same as environments that are stepped one by one; normalized, at given moments."""
    windows = seen(mode, config, held=held)
    mine, theirs = lives(windows), lives(seen(None, config, held=held))
    assert any(life["terminated"].any() for life in mine) and any(life["truncated"].any() for life in mine)
    assert_same(mine, theirs, least=24)
    for rollout in (window.rollout for window in windows):
        if mode == IN_A_STEP:
            assert not rollout.valid.all()
            over = rollout.terminated | rollout.truncated
            np.testing.assert_array_equal(~rollout.valid[:, 1:], over[:, :-1])
        else:
            assert isinstance(rollout.valid, tuple)


def test_where_resets_take_steps_cold_windows_differ_only_in_the_episodes_that_they_cut():
    """A window that holds resets starts at other transitions, and there memory is emptied."""
    mine, theirs = (lives(seen(each, COLD, held=True)) for each in (IN_A_STEP, None))
    assert_same(mine, theirs, least=16, whole_episodes=True)


@pytest.mark.parametrize("mode", RESETS_TAKE_NO_STEP, ids=str)
@pytest.mark.parametrize("config", [RUNNING, COLD], ids=["stored", "cold"])
def test_where_resets_take_no_step_all_is_the_same_to_the_last_bit(config, mode):
    """F9: in all three modes of Gymnasium, with the moments that training has, and with any start of windows."""
    mine, theirs = (acted(stepped(Mixed, each), config, windows=3) for each in (mode, None))
    jax.tree.map(np.testing.assert_array_equal, mine, theirs)


class Unseen(Mixed):
    """Shows nothing."""

    def __init__(self):
        super().__init__()
        self.observation_space = Box(-1.0, 1.0, (0,))

    def _obs(self, action):
        return np.zeros(0, np.float32)


PROCESSES = {  # how they are built, in what, and whether a reset takes a step in NEXT_STEP
    "shared memory": ({}, Mixed, False),
    "pipes": ({"shared_memory": False}, Mixed, True),  # told to reset, they would reset once more
    "nothing to share": ({}, Unseen, True),  # likewise
    "worker of one's own": ({"worker": _async_worker}, Mixed, True),
}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=str)
@pytest.mark.parametrize(("options", "make_env", "in_step"), PROCESSES.values(), ids=PROCESSES)
def test_processes_that_step_them_change_nothing(mode, options, make_env, in_step):
    build = functools.partial(AsyncVectorEnv, context="forkserver", autoreset_mode=mode, **options)
    mine = acted(VectorTask("processes", lambda n: build([make_env] * n)), RUNNING, windows=2)
    in_step = in_step and mode == AutoresetMode.NEXT_STEP
    theirs = acted(stepped(make_env, IN_A_STEP if in_step else None), RUNNING, windows=2)
    jax.tree.map(np.testing.assert_array_equal, mine, theirs)
    assert in_step == (not isinstance(mine[0][0].rollout.valid, tuple))


@pytest.mark.parametrize("mode", AutoresetMode, ids=str)
def test_a_vector_keeps_its_mode_when_another_of_its_class_is_built(mode):
    """Gymnasium writes the mode into metadata that all environments of a class share."""

    def first_of_two(n):
        made = vector_of(Mixed, mode, n)
        for other in AutoresetMode:
            vector_of(Mixed, other, 1)
        return made

    mine, theirs = (acted(task, RUNNING, windows=1) for task in (VectorTask("two", first_of_two), stepped(Mixed, None)))
    jax.tree.map(np.testing.assert_array_equal, mine, theirs)


def test_where_all_episodes_end_together_running_moments_change_nothing():
    """Nobody waits for anybody, so the frames come in the order of separate environments."""
    modes = (IN_A_STEP, None)
    mine, theirs = (
        collected(stepped(functools.partial(Telling, ends=4), mode), config=RUNNING, windows=3) for mode in modes
    )
    assert not mine[0].rollout.valid.all()
    assert_same(lives(mine), lives(theirs), least=32)


class Turns(Telling):
    """Episodes of 2 and of 4 steps by turns; the first tag says which come first."""

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        self.ends = 6 - self.ends if seed is None else 2 if self.tag < 0.5 else 4
        return obs, info


def test_running_moments_agree_whenever_all_have_shown_the_same_frames():
    """48 transitions are 16 episodes, whose resets may take 16 steps; in between the order differs."""
    (mine, after), (theirs, expected) = (
        acted(stepped(Turns, mode), RUNNING, windows=windows, scale=0.0)
        for mode, windows in ((IN_A_STEP, 4), (None, 3))
    )
    assert after.count == expected.count == 3 * (1 + 48)
    np.testing.assert_allclose(after.mean, expected.mean, rtol=1e-5)
    np.testing.assert_allclose(after.var, expected.var, rtol=1e-5)
    for life, other in zip(lives(mine), lives(theirs), strict=True):
        np.testing.assert_array_equal(life["action"], other["action"])
        assert 0.01 < np.abs(life["obs"] - other["obs"]).max() < 0.5


@functools.cache
def trained(mode):
    """By two updates, in which the moments run."""
    [result] = train(stepped(Mixed, mode), ARM, TWO_UPDATES)
    return result


@pytest.mark.parametrize("mode", RESETS_TAKE_NO_STEP, ids=str)
def test_where_resets_take_no_step_training_is_that_of_separate_environments(mode):
    mine, theirs = trained(mode), trained(None)
    assert mine.curve == theirs.curve
    learned = [(each.state.learner.policy, each.state.moments) for each in (mine, theirs)]
    jax.tree.map(np.testing.assert_array_equal, *learned)


@functools.cache
def played(mode, *, greedy, forget=False):
    """Nine episodes of a policy like the one that separate environments trained, but surer of itself."""
    state = trained(None).state
    policy = jax.tree.map(lambda leaf: 30.0 * leaf, state.learner.policy)
    state = state._replace(learner=state.learner._replace(policy=policy))
    if forget:
        state = state._replace(moments=initial_moments((3,))._replace(var=np.ones(3, np.float32)))
    return evaluate(stepped(Mixed, mode), ARM, TWO_UPDATES, state, episodes=9, greedy=greedy)


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_evaluation_is_the_same_in_all_modes(mode, greedy):
    """F9: by the moments that training left, on which what is played depends."""
    mine, theirs = played(mode, greedy=greedy), played(None, greedy=greedy)
    np.testing.assert_array_equal(mine.length, theirs.length)
    np.testing.assert_array_equal(mine.episode_return, theirs.episode_return)
    assert not mine.cut.any()
    assert (played(None, greedy=greedy, forget=True).episode_return != theirs.episode_return).any()


class BothAtOnce(Telling):
    """Its third step says terminated and truncated together."""

    def __init__(self):
        super().__init__(ends=3, limit=3)


@pytest.mark.parametrize("mode", [None, *MODES], ids=str)
def test_what_ends_in_both_ways_terminates(mode):
    """Its successor is worth nothing, and nobody ever sees both flags."""
    (window,) = collected(stepped(BothAtOnce, mode))
    assert window.rollout.terminated.sum(axis=1).tolist() == [4 if mode == IN_A_STEP else 5] * 3
    assert not window.rollout.truncated.any()


class PayingForResets(VectorWrapper):
    """Says 100 as the reward of a step that only resets."""

    def reset(self, **kwargs):
        self.ended = np.zeros(self.num_envs, bool)
        return self.env.reset(**kwargs)

    def step(self, actions):
        obs, reward, terminated, truncated, info = self.env.step(actions)
        reward, self.ended = np.where(self.ended, 100.0, reward), terminated | truncated
        return obs, reward, terminated, truncated, info


def test_what_a_reset_pays_is_neither_learned_nor_reported():
    plain, paying = (
        collected(VectorTask("mixed", lambda n, wrap=wrap: wrap(vector_of(Mixed, IN_A_STEP, n))))
        for wrap in (lambda vector: vector, PayingForResets)
    )
    assert not plain[0].rollout.valid.all()
    jax.tree.map(np.testing.assert_array_equal, paying, plain)


@pytest.mark.parametrize("mode", [None, *MODES], ids=str)
def test_moments_are_those_of_the_frames_that_are_acted_on(mode):
    """No final frame counts, not even where it takes a step of the window; the frame to act on next does."""
    task = stepped(Mixed, mode)
    envs, what = task.start(RUNNING.num_envs), Task.of(task, ARM)
    policy = jax.jit(initial_learner, static_argnums=(0, 1))(what, RUNNING, jax.random.key(3)).policy
    seen, step, begin = [], envs.step, envs.begin

    def telling_begin(seed):
        frames = begin(seed)
        seen.append((frames.obs.copy(), np.ones(len(frames.obs), bool)))
        return frames

    def telling_step(actions):
        hosted = step(actions)
        over = hosted.result.over
        acted_on = ~over if mode == IN_A_STEP else np.ones_like(over)
        seen.append((hosted.frames.obs.copy(), acted_on))
        return hosted

    envs.begin, envs.step = telling_begin, telling_step
    try:
        collector = HostCollector(envs, what, policy, RUNNING, seed=3)
        collector.collect(policy)
    finally:
        envs.close()
    frames = np.concatenate([obs[acted_on] for obs, acted_on in seen]).astype(np.float64)
    assert collector.moments.count == len(frames)
    np.testing.assert_allclose(collector.moments.mean, frames.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(collector.moments.var, frames.var(axis=0), rtol=1e-4)


@pytest.mark.parametrize("mode", [None, *MODES], ids=str)
def test_returns_are_sums_of_raw_rewards_over_window_ends(mode):
    windows = collected(stepped(Mixed, mode), windows=3)
    reward = np.concatenate([window.rollout.reward for window in windows], axis=1) / 0.01
    over = np.concatenate([w.rollout.terminated | w.rollout.truncated for w in windows], axis=1)
    reported = np.concatenate([window.episode_return for window in windows]).T
    np.testing.assert_array_equal(np.isfinite(reported), over)
    for env in range(3):
        pieces = np.split(reward[env], np.flatnonzero(over[env]) + 1)[:-1]
        np.testing.assert_allclose(reported[env][over[env]], [piece.sum() for piece in pieces], rtol=1e-5)


def test_an_unknown_autoreset_mode_is_refused():
    def vector(n):
        made = vector_of(Telling, AutoresetMode.DISABLED, n)
        made.metadata = {**made.metadata, "autoreset_mode": "whenever"}
        return made

    with pytest.raises(ConfigError, match="autoreset mode .* 'whenever': it must be one of NEXT_STEP"):
        collected(VectorTask("odd", vector))
