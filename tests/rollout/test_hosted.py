"""Acting on the host: faults, workers and masks leave one rollout, as it should be, in as few calls as there should."""

import dataclasses
import functools

import gymnasium
import jax
import numpy as np
import pytest

from autoreset_for_tests import IN_A_STEP, stepped
from host_envs_for_tests import Failing, Masked, Telling
from host_rollouts_for_tests import ARM, CONFIG, Mixed, collected
from thrust_rl.config import ConfigError
from thrust_rl.envs.task import HostTask
from thrust_rl.rollout import hosted as acting
from thrust_rl.training import hosted as training
from thrust_rl.training.train import train


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


@pytest.mark.parametrize("workers", [2, 3])
def test_worker_processes_give_what_one_process_gives(workers):
    """F19: also where one of them has more of the three environments than the other."""
    mine, theirs = collected(HostTask("mixed", Mixed, workers=workers)), collected(HostTask("mixed", Mixed))
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


class Counted:
    """A compiled function that counts its calls."""

    def __init__(self, compiled):
        self.compiled, self.calls = compiled, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.compiled(*args, **kwargs)


@pytest.mark.parametrize("mode", [None, IN_A_STEP], ids=["separate", IN_A_STEP])
def test_a_step_is_one_compiled_call_an_update_is_one_and_nothing_compiles_again(mode, monkeypatch):
    """In windows with truncations and without: the first holds none, the second does."""
    config = dataclasses.replace(CONFIG, total_timesteps=5 * 48, num_steps=16)
    compiled = acting._calls, training._compiled_learn
    found = {}

    def counted_calls(*what):
        calls = {name: Counted(function) for name, function in compiled[0](*what)._asdict().items()}
        found.update(calls)
        return acting._Calls(**calls)

    def counted_learn(*what):
        found["learn"] = Counted(compiled[1](*what))
        return found["learn"]

    monkeypatch.setattr(acting, "_calls", counted_calls)
    monkeypatch.setattr(training, "_compiled_learn", counted_learn)
    calls, sizes = {}, {}

    def look(progress):
        """The first report of a number of steps comes right after an update."""
        calls.setdefault(progress.steps, {name: counted.calls for name, counted in found.items()})
        sizes.setdefault(progress.steps, {name: counted.compiled._cache_size() for name, counted in found.items()})

    [result] = train(stepped(functools.partial(Telling, limit=24), mode), ARM, config, on_progress=look)
    a_window = {"open": 1, "decide": 1, "step": 15, "receive": 1, "close": 1, "learn": 1}
    for updates in range(1, 6):
        assert calls[updates * 48] == {name: updates * each for name, each in a_window.items()}
    assert result.curve.episodes == 9
    assert sizes[2 * 48] == sizes[5 * 48]
    assert sizes[2 * 48]["step"] == 2  # without values of true successors, and with them
