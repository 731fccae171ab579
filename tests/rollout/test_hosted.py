"""Acting on the host: one rollout, whoever steps the environments and whichever way they reset."""

import dataclasses
import functools

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from host_envs_for_tests import Failing, Masked, Telling
from thrust_rl.config import ArmConfig, ConfigError, PPOConfig, TrainConfig
from thrust_rl.envs.task import HostTask, VectorTask
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.advantages import rollout_advantages
from thrust_rl.rollout.hosted import HostCollector
from thrust_rl.training.loop import initial_learner

ARM = ArmConfig("tiny", cell="lstm", hidden_dim=6, previous_action=True, previous_reward=True)
CONFIG = TrainConfig(
    total_timesteps=48,
    num_envs=3,
    num_steps=16,
    window_start="stored",
    ppo=PPOConfig(normalize_obs=False, reward_scale=0.01, envs_per_minibatch=3),
)
LIVES = functools.partial(Telling, ends=5, limit=4)  # truncated; the fourth step of another one terminates


class Mixed(Telling):
    """Some episodes terminate, some are truncated, by the tag."""

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        self.ends, self.limit = (3, 9) if self.tag < 0.5 else (9, 4)
        return obs, info


def collected(task, config=CONFIG, arm=ARM, windows=1):
    """The windows that a first policy sees, and the environments they were seen in."""
    envs = task.start(config.num_envs)
    what = Task.of(task, arm)
    policy = jax.jit(initial_learner, static_argnums=(0, 1))(what, config, jax.random.key(3)).policy
    policy = jax.tree.map(lambda leaf: 3.0 * leaf, policy)  # so that what it sees decides what it does
    try:
        collector = HostCollector(envs, what, policy, config, seed=3)
        return [jax.tree.map(np.asarray, collector.collect(policy)) for _ in range(windows)]
    finally:
        envs.close()


def vector_of(make_env, mode, num_envs):
    return SyncVectorEnv([make_env] * num_envs, autoreset_mode=mode)


def stepped(make_env, mode):
    """One by one where there is no autoreset mode, else as a vector environment."""
    if mode is None:
        return HostTask("one by one", make_env)
    return VectorTask("vector", lambda n: vector_of(make_env, mode, n))


class BothAtOnce(Telling):
    """Its third step says terminated and truncated together."""

    def __init__(self):
        super().__init__(ends=3, limit=3)


class Dense(VectorWrapper):
    """Final observations as one dense array instead of an array of objects."""

    def step(self, actions):
        *rest, info = self.env.step(actions)
        if "final_obs" in info:
            final = np.zeros((self.num_envs, 3), np.float32)
            for i in np.flatnonzero(info["_final_obs"]):
                final[i] = info["final_obs"][i]
            info = {**info, "final_obs": final}
        return *rest, info


def transitions(window, advantages, env):
    """What one environment lived through, resets left out, up to its last end: rows of everything that matters."""
    rollout = window.rollout
    valid = np.ones(16, bool) if isinstance(rollout.valid, tuple) else rollout.valid[env]
    over = (rollout.terminated | rollout.truncated)[env][valid]
    stop = np.flatnonzero(over)[-1] + 1
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
        "target": np.asarray(advantages.value_target[env]),
    }
    return {name: row[valid][:stop] for name, row in rows.items()}


def seen(task):
    (window,) = collected(task)
    advantages = rollout_advantages(window.rollout, gamma=0.9, gae_lambda=0.8)
    return window, [transitions(window, advantages, env) for env in range(3)]


@pytest.fixture(scope="module", name="separate")
def separate_environments():
    return seen(HostTask("mixed", Mixed))


@pytest.mark.parametrize("how", [*AutoresetMode, "dense"], ids=str)
def test_all_autoreset_modes_give_the_same_transitions_and_targets(separate, how):
    """F9, F10: and the same as environments that are stepped one by one."""
    mode = AutoresetMode.SAME_STEP if how == "dense" else how
    wrap = Dense if how == "dense" else lambda vector: vector
    window, lives = seen(VectorTask("mixed", lambda n: wrap(vector_of(Mixed, mode, n))))
    assert any(life["terminated"].any() for life in lives) and any(life["truncated"].any() for life in lives)
    for mine, theirs in zip(lives, separate[1], strict=True):
        length = min(len(mine["start"]), len(theirs["start"]))  # resets take steps of the window in one mode
        assert length >= 8
        for name, rows in theirs.items():
            np.testing.assert_allclose(mine[name][:length], rows[:length], rtol=1e-5, atol=1e-6, err_msg=name)
    if mode == AutoresetMode.NEXT_STEP:
        rollout = window.rollout
        assert not rollout.valid.all()
        over = rollout.terminated | rollout.truncated
        np.testing.assert_array_equal(~rollout.valid[:, 1:], over[:, :-1])
    else:
        assert isinstance(window.rollout.valid, tuple)


@pytest.mark.parametrize("mode", [None, *AutoresetMode], ids=str)
def test_what_ends_in_both_ways_terminates(mode):
    """Its successor is worth nothing, and nobody ever sees both flags."""
    (window,) = collected(stepped(BothAtOnce, mode))
    assert window.rollout.terminated.sum(axis=1).tolist() == [4 if mode == AutoresetMode.NEXT_STEP else 5] * 3
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
        collected(VectorTask("mixed", lambda n, wrap=wrap: wrap(vector_of(Mixed, AutoresetMode.NEXT_STEP, n))))
        for wrap in (lambda vector: vector, PayingForResets)
    )
    assert not plain[0].rollout.valid.all()
    jax.tree.map(np.testing.assert_array_equal, paying, plain)


@pytest.mark.parametrize("mode", [None, *AutoresetMode], ids=str)
def test_moments_are_those_of_the_frames_that_are_acted_on(mode):
    """No final frame counts, not even where it takes a step of the window; the frame to act on next does."""
    config = dataclasses.replace(CONFIG, ppo=dataclasses.replace(CONFIG.ppo, normalize_obs=True))
    task = stepped(Mixed, mode)
    envs, what = task.start(config.num_envs), Task.of(task, ARM)
    policy = jax.jit(initial_learner, static_argnums=(0, 1))(what, config, jax.random.key(3)).policy
    seen, step, begin = [], envs.step, envs.begin

    def telling_begin(seed):
        frames = begin(seed)
        seen.append((frames.obs.copy(), np.ones(len(frames.obs), bool)))
        return frames

    def telling_step(actions):
        hosted = step(actions)
        over = hosted.result.over
        acted_on = ~over if mode == AutoresetMode.NEXT_STEP else np.ones_like(over)
        seen.append((hosted.frames.obs.copy(), acted_on))
        return hosted

    envs.begin, envs.step = telling_begin, telling_step
    try:
        collector = HostCollector(envs, what, policy, config, seed=3)
        collector.collect(policy)
    finally:
        envs.close()
    frames = np.concatenate([obs[acted_on] for obs, acted_on in seen]).astype(np.float64)
    assert collector.moments.count == len(frames)
    np.testing.assert_allclose(collector.moments.mean, frames.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(collector.moments.var, frames.var(axis=0), rtol=1e-4)


def test_the_step_of_a_fault_is_a_truncation_without_reward():
    """Its last frame is the last one without a fault; the frame to act on next opens the replacement's episode."""
    task = HostTask("failing", functools.partial(Failing, "raise", at=6, limit=9), on_env_error="restart")
    (window,) = collected(task)
    rollout, at = window.rollout, 5
    assert rollout.truncated[:, at].all() and not rollout.terminated.any()
    assert (rollout.reward[:, at] == 0.0).all() and (rollout.reward[:, :at] > 0.0).all()
    assert rollout.episode_start[:, at + 1].all() and not rollout.episode_start[:, 1 : at + 1].any()
    assert (rollout.obs.obs[:, at, 1] == at).all() and (rollout.obs.obs[:, at + 1, 1] == 0.0).all()
    earned = rollout.reward[:, :at].sum(axis=1) / CONFIG.ppo.reward_scale
    np.testing.assert_allclose(window.episode_return[at], earned, rtol=1e-5)


@pytest.mark.parametrize("mode", [None, *AutoresetMode], ids=str)
def test_returns_are_sums_of_raw_rewards_over_window_ends(mode):
    windows = collected(stepped(Mixed, mode), windows=3)
    reward = np.concatenate([window.rollout.reward for window in windows], axis=1) / 0.01
    over = np.concatenate([w.rollout.terminated | w.rollout.truncated for w in windows], axis=1)
    reported = np.concatenate([window.episode_return for window in windows]).T
    np.testing.assert_array_equal(np.isfinite(reported), over)
    for env in range(3):
        pieces = np.split(reward[env], np.flatnonzero(over[env]) + 1)[:-1]
        np.testing.assert_allclose(reported[env][over[env]], [piece.sum() for piece in pieces], rtol=1e-5)


def test_worker_processes_give_what_one_process_gives(separate):
    """F19."""
    (mine,), (theirs,) = collected(HostTask("mixed", Mixed, workers=3)), (separate[0],)
    jax.tree.map(np.testing.assert_array_equal, mine, theirs)


def test_an_unknown_autoreset_mode_is_refused():
    def vector(n):
        made = vector_of(Telling, AutoresetMode.DISABLED, n)
        made.metadata = {**made.metadata, "autoreset_mode": "whenever"}
        return made

    with pytest.raises(ConfigError, match="autoreset mode .* 'whenever': it must be one of NEXT_STEP"):
        collected(VectorTask("odd", vector))


@pytest.mark.parametrize("in_info", [True, False])
def test_masked_actions_are_never_drawn_and_memory_does_not_mind(in_info):
    """F16: the environment itself asserts that only the one allowed action comes."""
    (window,) = collected(HostTask("masked", functools.partial(Masked, in_info=in_info)))
    rollout = window.rollout
    time = (rollout.obs.obs["obs"] if in_info else rollout.obs.obs["it"])[..., 1]
    np.testing.assert_array_equal(rollout.action, time % 4)
    np.testing.assert_allclose(rollout.log_prob, 0.0, atol=1e-6)  # one action alone has probability 1
    assert np.isfinite(rollout.value).all()


def test_a_mask_over_continuous_actions_is_refused():
    class Odd(Telling):
        def reset(self, *, seed=None, options=None):
            self.action_space = gymnasium.spaces.Box(-1.0, 1.0)
            return super().reset(seed=seed)[0], {"action_mask": np.ones(1, np.int8)}

    with pytest.raises(ConfigError, match="cannot be masked"):
        collected(HostTask("odd", Odd))
