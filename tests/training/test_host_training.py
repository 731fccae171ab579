"""Training on the host: faults end it or are survived, and no environment is too short or too long."""

import functools
import multiprocessing
import re
import time

import numpy as np
import pytest

from host_envs_for_tests import Failing, FailingAtClose, FailingOnce, Masked, Telling
from thrust_rl.config import ArmConfig, ConfigError, PPOConfig, TrainConfig
from thrust_rl.envs import workers
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.task import HostTask
from thrust_rl.training.beating import Beating
from thrust_rl.training.evaluate import evaluate
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
    "unprintable": r"it raised Unprintable: \(its message cannot be read\)",
    "surrogate": "it raised RuntimeError: no \udc80 byte",
    "four values": r"expected 5, got 4\); step\(\) must return observation, reward, terminated, truncated and info",
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


@pytest.mark.parametrize("how", ["surrogate", "interrupt", "unprintable"])
def test_a_process_says_whatever_its_environment_raised(how):
    said = {"surrogate": "RuntimeError: no . byte", "interrupt": "KeyboardInterrupt", "unprintable": "Unprintable"}[how]
    with pytest.raises(EnvError, match=f"environment [01] at step 5: it raised {said}"):
        run(functools.partial(Failing, how, at=5), workers=2)


@pytest.mark.filterwarnings("default")
def test_an_environment_that_fails_at_its_close_was_trained_all_the_same():
    with pytest.warns(UserWarning, match="environment 1 at its close: it raised RuntimeError: the door is stuck"):
        assert run(FailingAtClose).steps == 32


DEATHS = {
    "raise": "RuntimeError: the motor is on fire",
    "die": r"its worker process .*died \(exit status 7\)",
    "killed": "its worker process .*was killed by SIGKILL",
    "hang": r"its worker process .*does not answer: .*step_timeout \(--step-timeout\)",
}
PATIENCE = {how: 5.0 if how == "hang" else 300.0 for how in DEATHS}


@pytest.mark.parametrize("how", DEATHS)
def test_a_worker_that_fails_ends_the_run_within_seconds_and_leaves_no_process(how, tmp_path):
    """It names the very environment, though both live in the process that dies."""
    started = time.monotonic()
    with pytest.raises(EnvError, match=f"environment 1 at step 5: .*{DEATHS[how]}"):
        run(functools.partial(FailingOnce, how, f"{tmp_path}/failed", due=2), workers=1, step_timeout=PATIENCE[how])
    assert time.monotonic() - started < 60
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("how", DEATHS)
def test_a_worker_that_fails_is_replaced_where_that_is_asked_for(how, tmp_path):
    """Its running episodes end as truncated ones, and everybody else's go on."""
    make_env = functools.partial(FailingOnce, how, f"{tmp_path}/failed")
    envs = HostTask("test", make_env, 2, "restart", step_timeout=PATIENCE[how]).start(2)
    try:
        first = envs.begin(0).obs
        steps = [envs.step(np.zeros(2, np.int64)) for _ in range(8)]
        assert envs.restarts() == 1
    finally:
        envs.close()
    assert not multiprocessing.active_children()
    result, frames = steps[4].result, steps[4].frames
    one, other = np.argsort(~result.truncated)
    assert result.truncated.tolist().count(True) == 1 and not result.terminated.any()
    assert result.reward[one] == 0.0 and result.reward[other] == 1.0
    np.testing.assert_array_equal(result.obs[one], steps[3].frames.obs[one])  # cut where it was last seen
    assert frames.obs[one, 0] not in (first[one, 0], result.obs[one, 0])  # another episode, not the first once more
    assert [step.frames.obs[one, 1] for step in steps[4:]] == [0.0, 1.0, 2.0, 3.0]
    assert [step.frames.obs[other, 1] for step in steps[4:]] == [1.0, 2.0, 3.0, 0.0]


def test_a_worker_that_always_dies_is_given_up():
    with pytest.raises(EnvError, match=r"environment [01] at step 4: .*, as 3 times before: it is not replaced again"):
        run(functools.partial(Failing, "die", at=1), workers=2, on_env_error="restart")
    assert not multiprocessing.active_children()


def test_deaths_with_steps_in_between_are_counted_too(monkeypatch):
    monkeypatch.setattr(workers, "MAX_DEATHS", 1)
    with pytest.raises(EnvError, match=r"environment 0 at step 4: .*, as once before: it is not replaced again"):
        run(functools.partial(Failing, "die", at=2), workers=1, on_env_error="restart")


def test_an_environment_that_cannot_be_built_again_says_so(tmp_path):
    class Once(Telling):
        def __init__(self):
            if (tmp_path / "built").exists():
                raise RuntimeError("only one licence")
            (tmp_path / "built").touch()
            super().__init__()

    with pytest.raises(EnvError, match="environment 0 at step 0: test cannot be built: RuntimeError: only one licence"):
        run(Once, workers=1)
    assert not multiprocessing.active_children()


def test_what_is_replaced_is_closed():
    closed = []

    class Closing(Failing):
        def close(self):
            closed.append(self.lived)

    run(functools.partial(Closing, "raise"), on_env_error="restart")
    assert closed.count(5) == 2 * 3  # both, at steps 5, 10 and 15 of the run


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_step_timeout_is_a_positive_number(seconds):
    with pytest.raises(ConfigError, match="step_timeout is .*: it must be a positive number of seconds"):
        HostTask("test", Telling, step_timeout=seconds)


def test_evaluation_goes_through_worker_processes_and_gives_the_same():
    results = []
    for count in (0, 1):
        task = HostTask("test", functools.partial(Telling, limit=4), count)
        [trained] = train(task, ARM, CONFIG)
        results.append(evaluate(task, ARM, CONFIG, trained.state, episodes=5))
    np.testing.assert_array_equal(results[0].episode_return, results[1].episode_return)


@pytest.mark.parametrize("count", [0, 1])
def test_failures_in_evaluation_are_counted_too(count):
    """Five episodes in rounds of two: each environment is new in its round, and fails where it would have gone on."""
    task = HostTask("test", functools.partial(Failing, "raise", at=3), count, "restart")
    [trained] = train(task, ARM, CONFIG)
    played = evaluate(task, ARM, CONFIG, trained.state, episodes=5)
    assert played.length.tolist() == [3] * 5 and played.env_restarts == 6
    assert not played.cut.any()


def test_a_slow_window_gives_signs_of_life_and_changes_nothing(monkeypatch):
    task, heard = HostTask("test", functools.partial(Telling, limit=4)), []
    [calm] = train(task, ARM, CONFIG)
    monkeypatch.setattr("thrust_rl.training.hosted.Beating", functools.partial(Beating, seconds=0.0))
    [lively] = train(task, ARM, CONFIG, on_progress=lambda progress: heard.append(progress.steps))
    assert heard == [0] * 8 + [16] + [16] * 8 + [32]
    assert lively.curve == calm.curve


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

    class OldReset(Telling):
        def reset(self):
            return super().reset()

    expected = "test cannot be built: its first reset.*take seed and options.*return an observation and an info"
    for make_env in (NeverBegins, OldReset):
        with pytest.raises(ConfigError, match=expected):
            run(make_env)


def test_a_task_that_builds_no_environment_is_a_type_error():
    with pytest.raises(TypeError, match=re.escape("make_env built a int: expected a gymnasium.Env")):
        HostTask("odd", lambda: 3).start(1)
