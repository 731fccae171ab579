"""Acting: rows are consecutive, flags sit on their steps, memory forgets, successors are the true ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_for_tests import LSTM_ARM, MLP_ARM, Counter, Cue, Short, act, by_hand, environment, one_step, settings
from thrust_rl.envs.cartpole import CartPolePhysics
from thrust_rl.envs.observation import Flicker
from thrust_rl.maths.moments import standardize
from thrust_rl.training.ppo import experience_of

WINDOW_STARTS = pytest.mark.parametrize("window_start", ["cold", "stored"])


def joined(leaf):
    """[window, env, time, ...] → [env, all time, ...]."""
    return np.concatenate(np.asarray(leaf), axis=1)


def same(a, b, tolerance=1e-5):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def counted(window_start):
    """Three windows of acting where the observation says whose, when and by which action."""
    config = settings(normalize_obs=False, window_start=window_start, reward_scale=0.25)
    return act(environment(Counter(), max_steps=5), LSTM_ARM, config)


@WINDOW_STARTS
def test_every_row_is_consecutive_and_of_one_environment(window_start):
    """F6: episodes of 5 steps, each with its own tag, over three windows of 8."""
    obs = joined(counted(window_start).rollout.obs)
    tag, time = obs[..., 0], obs[..., 1]
    np.testing.assert_array_equal(time, np.broadcast_to(np.arange(24) % 5, (4, 24)))
    first_tags = tag[:, ::5]
    np.testing.assert_array_equal(tag, np.repeat(first_tags, 5, axis=1)[:, :24])
    assert len(set(first_tags.ravel())) == 4 * 5


@WINDOW_STARTS
def test_flags_actions_and_rewards_sit_on_their_steps(window_start):
    rollout = jax.tree.map(joined, counted(window_start).rollout._replace(memory=()))
    time, arrived_by = rollout.obs[..., 1], rollout.obs[..., 2]
    np.testing.assert_array_equal(time, np.broadcast_to(np.arange(24) % 5, (4, 24)))
    np.testing.assert_array_equal(rollout.episode_start, time == 0)
    np.testing.assert_array_equal(rollout.truncated, time == 4)
    assert not rollout.terminated.any()
    same(rollout.reward, 0.25 * (time + rollout.action / 2))
    inside = ~rollout.episode_start[:, 1:]
    np.testing.assert_array_equal(arrived_by[:, 1:][inside], rollout.action[:, :-1][inside])
    assert 0.2 < rollout.action.mean() < 0.8


def test_an_end_of_either_kind_starts_an_episode():
    config = settings(normalize_obs=False, window_start="stored")
    rollout = jax.tree.map(
        joined, act(environment(Short(6), max_steps=4), LSTM_ARM, config).rollout._replace(memory=())
    )
    assert rollout.episode_start[:, 0].all()
    np.testing.assert_array_equal(rollout.episode_start[:, 1:], (rollout.terminated | rollout.truncated)[:, :-1])
    np.testing.assert_array_equal(rollout.episode_start, rollout.obs[..., 1] == 1.0)
    assert rollout.terminated.any() and rollout.truncated.any()
    assert not (rollout.terminated & rollout.truncated).any()


@WINDOW_STARTS
@pytest.mark.parametrize("arm", [LSTM_ARM, MLP_ARM], ids=lambda arm: arm.name)
def test_acting_is_each_episode_alone_from_an_empty_memory(arm, window_start):
    """F7, F8: whatever came before an episode (or, in cold windows, a window) has no influence."""
    config = settings(normalize_obs=False, window_start=window_start)
    acted = act(environment(Short(6), max_steps=4), arm, config)
    rollout = jax.tree.map(joined, acted.rollout._replace(memory=()))
    forget = rollout.episode_start.copy()
    if window_start == "cold":
        forget[:, ::8] = True
    for env in range(4):
        values, logits, _ = by_hand(acted.policy, acted.policy.initial(), rollout.obs[env], forget[env])
        same(rollout.value[env], values)
        log_probs = jax.nn.log_softmax(logits)
        same(rollout.log_prob[env], log_probs[np.arange(24), rollout.action[env]])


@WINDOW_STARTS
def test_a_cue_survives_the_window_boundary_only_when_stored(window_start):
    config = settings(num_envs=8, num_steps=2, normalize_obs=False, window_start=window_start)
    acted = act(environment(Cue(length=4)), LSTM_ARM, config, windows=4)
    rollout = jax.tree.map(joined, acted.rollout._replace(memory=()))
    for first in (0, 4):  # the second episode must answer to its own cue alone
        positive = rollout.obs[:, first, 0] > 0
        assert 0 < positive.sum() < 8
        values = rollout.value[:, first : first + 4]
        for cue in (positive, ~positive):
            same(values[cue], np.broadcast_to(values[cue][:1], values[cue].shape), 1e-6)
        apart = np.abs(values[positive][0] - values[~positive][0])
        assert apart[:2].min() > 1e-2
        assert apart[2:].min() > 1e-3 if window_start == "stored" else apart[2:].max() < 1e-6


@WINDOW_STARTS
def test_bootstrap_is_the_value_of_the_true_successor_with_its_episodes_memory(window_start):
    """F4, F5: at truncations and at the window's end; never the value of the next episode's first frame."""
    acted = counted(window_start)
    for window in range(3):
        rollout = jax.tree.map(lambda leaf, window=window: np.asarray(leaf[window]), acted.rollout)
        for env in range(4):
            memory = jax.tree.map(lambda leaf, env=env: leaf[env], rollout.memory)
            _, _, memories = by_hand(acted.policy, memory, rollout.obs[env], rollout.episode_start[env])
            for t in np.flatnonzero(rollout.truncated[env] | (np.arange(8) == 7)):
                tag, time, _ = rollout.obs[env, t]
                successor = np.array([tag, time + 1.0, rollout.action[env, t]], np.float32)
                _, out = one_step(acted.policy, memories[t], successor)
                same(rollout.bootstrap_value[env, t], out.value)
                impostors = [rollout.value[env, t], *rollout.value[env, t + 1 : t + 2]]
                assert np.abs(out.value - np.array(impostors)).min() > 1e-4


def test_bootstrap_standardizes_the_final_observation():
    """Cut exactly at the window's end: the final frame [0, 1], by the moments that acting then has."""
    config = settings(num_steps=3, window_start="stored")
    acted = act(environment(Cue(length=9), max_steps=3), LSTM_ARM, config)
    rollout = jax.tree.map(lambda leaf: leaf[-1], acted.rollout)
    assert rollout.truncated[:, -1].all()
    final = standardize(acted.moments, jnp.array([0.0, 1.0]))
    for env in range(4):
        values, _, _ = by_hand(
            acted.policy, acted.policy.initial(), jnp.vstack([rollout.obs[env], final]), [True, False, False, False]
        )
        same(rollout.bootstrap_value[env, -1], values[-1])


def test_cutting_a_stream_into_windows_changes_nothing():
    """Stored windows: same numbers, and a window's last bootstrap is what the next one's first step says."""
    env = environment(Short(6), max_steps=4)
    three = act(env, LSTM_ARM, settings(num_steps=8, window_start="stored"))
    one = act(env, LSTM_ARM, settings(num_steps=24, window_start="stored"), windows=1)
    for name in ("obs", "episode_start", "action", "log_prob", "value", "reward", "terminated", "truncated"):
        same(joined(getattr(three.rollout, name)), getattr(one.rollout, name)[0])
    jax.tree.map(same, (three.actor.memory, three.moments), (one.actor.memory, one.moments))
    going_on = ~(three.rollout.terminated | three.rollout.truncated)[:-1, :, -1]
    assert going_on.any()
    same(three.rollout.bootstrap_value[:-1, :, -1][going_on], three.rollout.value[1:, :, 0][going_on])


def test_a_truncation_bootstraps_in_its_own_environment_only():
    """F10: where nothing was cut, `bootstrap_value` is never read; where something was, one row feels it."""
    config = settings(normalize_obs=False, window_start="stored")
    acted = act(environment(Short(6), max_steps=4), LSTM_ARM, config)
    rollout = jax.tree.map(lambda leaf: leaf.reshape(12, *leaf.shape[2:]), acted.rollout)  # 12 environments
    read = np.asarray(rollout.truncated).copy()
    alone = np.argwhere(read[:, :-1] & (read[:, :-1].sum(axis=0) == 1))
    read[:, -1] = True

    def advantages(bootstrap_value):
        changed = rollout._replace(bootstrap_value=jnp.asarray(bootstrap_value))
        return np.asarray(experience_of(changed, config.ppo, has_memory=True).advantage)

    before = advantages(rollout.bootstrap_value)
    np.testing.assert_array_equal(advantages(np.where(read, rollout.bootstrap_value, 1e3)), before)
    assert len(alone) > 0
    for env, t in alone:
        raised = np.array(rollout.bootstrap_value)
        raised[env, t] += 1.0
        gain = advantages(raised) - before
        same(gain[env, t], config.ppo.gamma)
        gain[env, : t + 1] = 0.0
        np.testing.assert_array_equal(gain, 0.0)


def test_episode_return_is_the_raw_reward_summed_over_windows():
    config = settings(normalize_obs=False, window_start="stored")
    acted = act(environment(Short(6), max_steps=4), LSTM_ARM, config)
    raw = joined(acted.rollout.reward) / config.ppo.reward_scale
    ended = joined(acted.rollout.terminated | acted.rollout.truncated)
    reported = np.concatenate(acted.episode_return).T
    np.testing.assert_array_equal(np.isfinite(reported), ended)
    for env in range(4):
        pieces = np.split(raw[env], np.flatnonzero(ended[env]) + 1)
        same(reported[env][ended[env]], [piece.sum() for piece in pieces[:-1]])
        same(acted.actor.episode_return[env], pieces[-1].sum())
    assert config.ppo.reward_scale == 0.02 and not ended[:, [7, 15]].all()  # some returns span two windows


def test_every_arm_meets_the_same_blanks():
    env = environment(CartPolePhysics(), max_steps=11, sensor=Flicker(0.5))
    by_arm = [act(env, arm, settings(normalize_obs=False)) for arm in (LSTM_ARM, MLP_ARM)]
    actions = [joined(acted.rollout.action) for acted in by_arm]
    blanks = [np.all(joined(acted.rollout.obs) == 0.0, axis=-1) for acted in by_arm]
    assert (actions[0] != actions[1]).any()
    np.testing.assert_array_equal(blanks[0], blanks[1])
    assert 0.3 < blanks[0].mean() < 0.7
