"""Acting on the host: faults, worker processes and action masks leave one rollout, as it should be."""

import functools

import gymnasium
import jax
import numpy as np
import pytest

from host_envs_for_tests import Failing, Masked, Telling
from host_rollouts_for_tests import CONFIG, Mixed, collected
from thrust_rl.config import ConfigError
from thrust_rl.envs.task import HostTask


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


def test_worker_processes_give_what_one_process_gives():
    """F19."""
    mine, theirs = collected(HostTask("mixed", Mixed, workers=3)), collected(HostTask("mixed", Mixed))
    jax.tree.map(np.testing.assert_array_equal, mine, theirs)


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
