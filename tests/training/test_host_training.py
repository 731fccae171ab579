"""Training on the host: faults end it or are survived, and no environment is too short or too long."""

import functools
import multiprocessing
import re
import time

import numpy as np
import pytest

from host_envs_for_tests import Failing, Masked, Telling
from thrust_rl.config import ArmConfig, ConfigError, PPOConfig, TrainConfig
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.task import HostTask
from thrust_rl.training.train import train

ARM = ArmConfig("tiny", cell="lstm", hidden_dim=4)
CONFIG = TrainConfig(
    total_timesteps=2 * 2 * 8,
    num_envs=2,
    num_steps=8,
    window_start="stored",
    ppo=PPOConfig(n_epochs=1, envs_per_minibatch=2),
)
FAULTS = {
    "raise": "RuntimeError: the motor is on fire",
    "nan": "not finite",
    "shape": r"shape \(2,\): its space says \(3,\)",
    "range": "outside its space.*--allow-out-of-range",
    "reward": "reward is inf",
    "exit": "it raised SystemExit: 3",
}


def run(make_env, **options):
    return train(HostTask("test", make_env, **options), ARM, CONFIG)[0]


class OnlySecond:
    """Builds environments of which only the second one of every batch fails."""

    def __init__(self, how, at=5):
        self.how, self.at, self.built = how, at, 0

    def __call__(self):
        self.built += 1
        probe_came_first = self.built == 3
        return Failing(self.how, self.at) if probe_came_first else Telling(limit=4)


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_ends_the_run_and_names_environment_step_and_fault(how):
    with pytest.raises(EnvError, match=f"environment 1 at step 5: .*{FAULTS[how]}"):
        run(OnlySecond(how))


def test_a_mask_that_allows_nothing_names_environment_and_step():
    with pytest.raises(EnvError, match="environment 0 at step 3: its action mask allows no action"):
        run(functools.partial(Masked, in_info=True, empty_at=3))


@pytest.mark.parametrize("how", ["raise", "nan"])
def test_a_faulty_environment_is_replaced_where_that_is_asked_for(how):
    result = run(OnlySecond(how), on_env_error="restart")
    assert result.env_restarts == 1
    # Environment 1: four steps; the fifth failed, so its reward is 0 and the episode is over; then 4 + 4 + 3 more.
    assert result.curve.episodes == 4 + 4
    assert np.isfinite(result.curve.mean_return).all()


@pytest.mark.parametrize("how", ["raise", "die"])
def test_a_worker_that_fails_ends_the_run_within_seconds_and_leaves_no_process(how):
    started = time.monotonic()
    expected = {
        "raise": "environment 0 at step 5: .*on fire",
        "die": "worker process died; it held environments ([01]) to [01]",
    }
    with pytest.raises(EnvError, match=expected[how]):
        run(functools.partial(Failing, how), workers=2)
    assert time.monotonic() - started < 60
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("make_env", [functools.partial(Telling, ends=1), functools.partial(Telling, limit=2), Telling])
def test_episodes_of_one_step_of_two_and_without_end_train(make_env):
    result = run(make_env)
    length = min(make_env().ends, make_env().limit)
    assert result.curve.episodes == (32 // length if length < 100 else 0)
    assert np.isfinite(
        np.concatenate([np.ravel(leaf) for leaf in result.state.learner.policy.actor.__dict__.values()])
    ).all()


def test_out_of_range_observations_pass_where_that_is_asked_for():
    assert run(OnlySecond("range"), check_range=False).curve.episodes == 8


def test_an_environment_that_cannot_begin_is_refused_before_anything_starts():
    class NeverBegins(Telling):
        def reset(self, *, seed=None, options=None):
            return None

    with pytest.raises(
        ConfigError, match="test cannot be built: its first reset.*must return an observation and an info"
    ):
        run(NeverBegins)


def test_a_task_that_builds_no_environment_is_a_type_error():
    with pytest.raises(TypeError, match=re.escape("make_env built a int: expected a gymnasium.Env")):
        HostTask("odd", lambda: 3).start(1)
