"""The real worker: events alone on its stdout, and gone as soon as its parent is."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from thrust_rl.config import ARMS, TrainConfig
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, Job
from thrust_rl.experiment.runner import WORKER_COMMAND, RunError, Runner

TINY = TrainConfig(total_timesteps=512, num_envs=4, num_steps=32)

# Training replaced by something that prints in every way there is, so that nothing has to be compiled.
PRINTING = """
import os, sys, numpy
import thrust_rl.experiment.trial as trial
import thrust_rl.training.result as module
from thrust_rl.training.curve import LearningCurve
from thrust_rl.training.evaluate import Episodes

def train(env, arm, config, *, seeds, on_progress, checkpoints):
    print("stray line"); sys.stdout.write("stray words without an end"); sys.stdout.flush()
    os.write(1, b'{"event": "result", "seeds": []}\\n')
    os.system("echo stray echo")
    on_progress(module.Progress(tuple(seeds), 128, 512, None, 0.1))
    print("another"); os.write(1, b"half a line")
    curve = LearningCurve()
    curve.add(128, numpy.array([[20.0 + seeds[0]]]))
    return [module.TrainResult(seeds[0], curve, 7, 512, 1.0, 2.0, None)]

def evaluate(env, arm, config, state, *, episodes, greedy, seed, max_steps, on_progress):
    print("stray evaluation")
    on_progress()
    return Episodes(numpy.full(episodes, 30.0 + greedy), numpy.full(episodes, 9), numpy.zeros(episodes, bool))

trial.train, trial.evaluate = train, evaluate
from thrust_rl.experiment.worker import main
main()
"""

# A parent that says who its worker is once training is under way, and then does nothing but listen.
PARENT = """
import dataclasses, sys
from thrust_rl.config import ARMS, TrainConfig
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.runner import Runner

config = TrainConfig(total_timesteps=10**9, num_envs=4, num_steps=32)
with Runner(num_workers=1) as runner:
    def listen(event):
        if event.kind == "progress":
            print(runner._workers[0].process.pid, flush=True)
    runner._tell = listen
    list(runner.run([Job(EnvSpec("CartPole-v1"), ARMS["mlp"], config, (0,))]))
"""


def job(arm="mlp", env="CartPole-v1", config=TINY, seed=3):
    return Job(EnvSpec(env), ARMS[arm], config, (seed,), EvalConfig(2))


def exists(pid):
    """Whether the process runs; one that has ended but was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pid, seconds):
    deadline = time.monotonic() + seconds
    while exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not exists(pid)


@pytest.fixture(autouse=True)
def limit():
    """A runner that waits for ever fails its test instead of stopping all of them."""

    def stop(*_):
        raise TimeoutError("the test has taken too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(150)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_what_training_prints_does_not_end_up_among_the_events():
    events = []
    with Runner(num_workers=1, command=[sys.executable, "-c", PRINTING], listener=events.append) as runner:
        [(done, [result])] = list(runner.run([job(seed=3)]))
    assert [event.kind for event in events] == ["started", *["progress"] * 5, "finished"]
    assert done == job(seed=3)
    assert (result.seed, result.final, result.steps, result.steps_per_second) == (3, 23.0, 512, 256.0)
    assert (result.score, result.greedy_score, result.auc) == (30.0, 31.0, 23.0)
    assert result.evaluation["sampled"] == {"mean_return": 30.0, "returns": [30.0] * 2, "lengths": [9] * 2, "cut": 0}


def test_a_job_that_cannot_be_run_is_reported_with_its_reason():
    """The runner gets no such job from `compare`, which checks first."""
    uneven = TrainConfig(total_timesteps=512, num_envs=3, num_steps=32)
    with Runner(num_workers=1) as runner, pytest.raises(RunError, match=r"^mlp seed 3: .*batch_size 128 does not div"):
        list(runner.run([job(config=uneven)]))


def test_the_worker_serves_one_job_after_the_other_and_leaves_when_told_nothing_more():
    """Spoken to as the runner does, over the pipes alone."""
    lines = "".join(json.dumps(one.to_dict()) + "\n" for one in (job(env="NoSuchEnv"), job(env="NoOtherEnv")))
    two = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    worker = subprocess.Popen(WORKER_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=two)
    try:
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(lines)
        worker.stdin.flush()
        hello, first, second = (json.loads(worker.stdout.readline()) for _ in range(3))
        assert (hello["event"], isinstance(hello["backend"], str), hello["devices"]) == ("hello", True, 2)
        assert (first["event"], second["event"]) == ("error", "error")
        assert "NoSuchEnv" in first["message"] and "NoOtherEnv" in second["message"]
        worker.stdin.close()
        assert worker.wait(timeout=10) == 0
        assert worker.stdout.read() == ""
    finally:
        worker.kill()
        worker.wait()
        worker.stdin.close()
        worker.stdout.close()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to look for processes")
def test_a_worker_in_the_middle_of_training_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    worker = None
    try:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.stdout.readline()  # a second sign of progress: it is training
        assert exists(worker)
        parent.kill()
        parent.wait()
        assert wait_until_gone(worker, seconds=5.0)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        if worker is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


ENVIRONMENT = """
import gymnasium, numpy

class Failing(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, at=10**9):
        self.at, self.t = at, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        self.t += 1
        if self.t == self.at:
            raise RuntimeError("the motor is off")
        return numpy.zeros(1, numpy.float32), float(action), self.t % 5 == 0, False, {}
"""


@pytest.mark.slow
def test_an_environment_of_ones_own_is_found_beside_the_command_and_its_failure_names_it(tmp_path, monkeypatch):
    (tmp_path / "my_tasks.py").write_text(ENVIRONMENT)
    monkeypatch.chdir(tmp_path)
    tiny = TrainConfig(total_timesteps=128, num_envs=4, num_steps=32)
    own = Job(EnvSpec("my_tasks:Failing", {"at": 20}), ARMS["mlp"], tiny, (0,), EvalConfig(3))
    with Runner(num_workers=1) as runner:
        said = r"^mlp seed 0: environment 0 at step 20: it raised RuntimeError: the motor is off$"
        with pytest.raises(RunError, match=said):
            list(runner.run([own]))
    spec = EnvSpec("my_tasks:Failing", {"at": 20}, on_env_error="restart", workers=2)
    again = dataclasses.replace(own, env=spec, recorded=0)
    with Runner(num_workers=1) as runner:
        [(_, [result])] = list(runner.run([again]))
    assert result.env_restarts == 4, "every environment failed once in its 32 steps"
    assert result.evaluation["sampled"]["lengths"] == [5, 5, 5]
    assert sum(result.recording["rewards"]) == result.evaluation["sampled"]["returns"][0]
