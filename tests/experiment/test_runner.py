"""The runner finishes every job whatever its workers do, and leaves no process behind."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.experiment.devices import by_arm, environment_of, spread
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.process import Patience
from thrust_rl.experiment.runner import RunError, Runner, usable_cores

FAKE_WORKER = str(Path(__file__).with_name("fake_worker.py"))
CONFIG = TrainConfig(total_timesteps=256, num_envs=4, num_steps=32)
# Long enough for an interpreter to start on a busy machine, short enough to wait for.
SHORT = Patience(first=3.0, later=1.5, factor=3.0, attempts=2)


def job(arm, *seeds):
    return Job(EnvSpec("CartPole-v1"), ArmConfig(arm), CONFIG, seeds)


def jobs_of(arms, num_seeds):
    return [job(arm, seed) for seed in range(num_seeds) for arm in arms]


def expected(jobs):
    return {(job.arm.name, seed): 10.0 * seed + len(job.arm.name) for job in jobs for seed in job.seeds}


def running(mark):
    """Processes whose environment holds the mark, other than this one; zombies have no environment left."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def comes_true(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Bench:
    """Runners on fake workers that share one log, and the events they told."""

    def __init__(self, folder, mark):
        self.log, self.mark, self.events = folder / "log", mark, []

    def command(self, **options):
        flags = [f"--{name}={value}" for name, value in options.items()]
        return [sys.executable, "-S", "-E", FAKE_WORKER, f"--log={self.log}", *flags]

    def runner(self, *, num_workers=2, patience=SHORT, listener=None, **options):
        def listen(event):
            self.events.append(event)
            if listener is not None:
                listener(event)

        return Runner(num_workers=num_workers, patience=patience, command=self.command(**options), listener=listen)

    def run(self, jobs, **options):
        """The final returns by arm and seed; every one is there once."""
        with self.runner(**options) as runner:
            finished = [(job.arm.name, seed.seed, seed.final) for job, seeds in runner.run(jobs) for seed in seeds]
        assert len(finished) == len({(arm, seed) for arm, seed, _ in finished})
        return {(arm, seed): final for arm, seed, final in finished}

    def started(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def told(self, kind):
        return [event for event in self.events if event.kind == kind]


@pytest.fixture(autouse=True)
def limit():
    """A runner that waits for ever fails its test instead of stopping all of them."""

    def stop(*_):
        raise TimeoutError("the test has taken too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to look for processes")
    mark = f"THRUST_TEST_{os.getpid()}_{time.monotonic_ns()}"
    monkeypatch.setenv(mark, "1")
    yield Bench(tmp_path, mark)
    assert running(mark) == []


@pytest.mark.parametrize("num_workers", [1, 2, 5])
def test_every_job_is_finished_once(bench, num_workers):
    jobs = jobs_of(["a", "bb"], 4)
    assert bench.run(jobs, num_workers=num_workers) == expected(jobs)
    assert len(bench.told("started")) == len(bench.told("finished")) == len(jobs)
    assert len(bench.told("progress")) == 2 * len(jobs)
    assert not bench.told("restarted")
    assert len({start["pid"] for start in bench.started()}) <= num_workers


def test_no_more_workers_than_jobs_are_started(bench):
    bench.run([job("a", 0), job("a", 1)], num_workers=8)
    assert len(bench.log.with_suffix(".starts").read_text().split()) <= 2


def test_without_a_job_nothing_is_yielded(bench):
    assert bench.run([]) == {}


@pytest.mark.parametrize("order", ["aaaaabbbbb", "abbaaabbab"])
def test_a_worker_keeps_to_the_arm_it_has_compiled_while_there_are_jobs_of_it(bench, order):
    jobs = [job({"a": "a", "b": "bb"}[arm], seed) for seed, arm in enumerate(order)]
    bench.run(jobs, num_workers=2, pause=0.1)
    starts = [(start["pid"], start["label"].split()[0], start["time"]) for start in bench.started()]
    pids = list(dict.fromkeys(pid for pid, _, _ in starts))
    assert len(pids) == 2
    firsts = [next(arm for pid, arm, _ in starts if pid == one) for one in pids]
    assert sorted(firsts) == ["a", "bb"], "the second worker compiles what nobody has compiled"
    for one in pids:
        mine = [(arm, moment) for pid, arm, moment in starts if pid == one]
        for (before, _), (after, moment) in zip(mine, mine[1:], strict=False):
            if before != after:
                assert all(other <= moment for _, arm, other in starts if arm == before)


@pytest.mark.parametrize("trouble", ["hang", "hang-later"])
def test_a_job_whose_worker_falls_silent_is_started_over_with_the_same_result(bench, trouble):
    jobs = jobs_of(["a", "bb"], 2)
    assert bench.run(jobs, trouble=trouble, at="bb seed 1", times=1) == expected(jobs)
    [restarted] = bench.told("restarted")
    assert restarted.job.label == "bb seed 1"
    assert "no sign of progress for" in restarted.data["reason"]
    assert [start["label"] for start in bench.started()].count("bb seed 1") == 2
    first, second = (start["pid"] for start in bench.started() if start["label"] == "bb seed 1")
    assert first != second


def test_a_worker_that_never_says_hello_is_replaced(bench):
    jobs = jobs_of(["a"], 2)
    assert bench.run(jobs, num_workers=1, trouble="hang-first", times=1) == expected(jobs)
    assert len(bench.log.with_suffix(".starts").read_text().split()) == 2


@pytest.mark.parametrize(("trouble", "reason"), [("die", "exit status -9"), ("complain-and-die", "no memory")])
def test_a_job_whose_worker_dies_is_started_over(bench, trouble, reason):
    jobs = jobs_of(["a", "bb"], 2)
    assert bench.run(jobs, trouble=trouble, at="a seed 1", times=1) == expected(jobs)
    [restarted] = bench.told("restarted")
    assert restarted.job.label == "a seed 1"
    assert "its worker process died" in restarted.data["reason"] and reason in restarted.data["reason"]


def test_a_job_restarted_after_progress_is_not_counted_twice(bench):
    jobs = jobs_of(["a"], 3)
    assert bench.run(jobs, num_workers=1, trouble="hang-later", at="a seed 0", times=1) == expected(jobs)
    assert len(bench.told("finished")) == 3


@pytest.mark.parametrize("trouble", ["hang-later", "die"])
def test_a_job_is_given_up_after_the_attempts_with_an_error_that_names_it(bench, trouble):
    jobs = jobs_of(["a", "bb"], 2)
    with pytest.raises(RunError, match=r"^bb seed 1: .*; gave up after 2 attempts$"):
        bench.run(jobs, trouble=trouble, at="bb seed 1")
    assert [start["label"] for start in bench.started()].count("bb seed 1") == 2


def test_workers_that_cannot_start_end_the_run_with_their_complaint():
    broken = Runner(command=[sys.executable, "-c", "raise SystemExit('no module named jax')"], patience=SHORT)
    with broken as runner, pytest.raises(RunError, match=r"start of a worker.*no module named jax.*2 attempts"):
        list(runner.run([job("a", 0)]))


def test_an_error_in_a_job_ends_the_run_at_once_and_names_the_job(bench):
    with pytest.raises(RunError, match=r"^bb seed 0: non-finite loss at update 3$"):
        bench.run(jobs_of(["a", "bb"], 2), trouble="error", at="bb seed 0")
    assert [start["label"] for start in bench.started()].count("bb seed 0") == 1
    assert not bench.told("restarted")


def test_a_slow_job_that_shows_progress_is_left_alone(bench):
    patience = Patience(first=5.0, later=1.0, factor=2.0, attempts=1)
    jobs = [job("a", 0)]
    assert bench.run(jobs, patience=patience, beats=6, pause=0.4) == expected(jobs)


def test_patience_grows_with_the_pace_of_the_job(bench):
    patience = Patience(first=5.0, later=1.0, factor=5.0, attempts=1)
    jobs, gaps = [job("a", 0)], dict(beats=3, pause=0.2, growth=3.0)  # 0.2, 0.6 and 1.8 s
    assert bench.run(jobs, patience=patience, **gaps) == expected(jobs)
    with pytest.raises(RunError, match="no sign of progress"):
        bench.run(jobs, patience=dataclasses.replace(patience, factor=1.0), **gaps)


def test_time_in_which_the_parent_itself_was_held_up_is_not_the_workers_silence(bench):
    jobs = jobs_of(["a"], 4)
    patience = Patience(first=3.0, later=1.5, factor=1.0, attempts=1)
    with bench.runner(num_workers=2, patience=patience, pause=0.2) as runner:
        finished = []
        for done, _ in runner.run(jobs):
            finished.append(done.label)
            time.sleep(3.5 if len(finished) == 1 else 0.0)
    assert len(finished) == 4
    assert not bench.told("restarted")


def test_a_worker_with_nothing_left_to_do_may_die(bench):
    def kill_the_idle(event):
        first = event.kind == "finished" and event.job.label == "a seed 0"
        if first and len(bench.told("finished")) == 1 and len(bench.told("started")) == 2:
            os.kill(next(start["pid"] for start in bench.started() if start["label"] == "a seed 0"), signal.SIGKILL)

    jobs, slow = [job("a", 0), job("bb", 0)], dict(trouble="slow", at="bb seed 0")
    patience = dataclasses.replace(SHORT, attempts=1)
    assert bench.run(jobs, patience=patience, listener=kill_the_idle, pause=0.4, **slow) == expected(jobs)
    assert len(bench.log.with_suffix(".starts").read_text().split()) == 2


def test_stray_output_among_the_events_of_a_worker_is_skipped(bench):
    jobs = jobs_of(["a", "bb"], 2)
    assert bench.run(jobs, trouble="garbage") == expected(jobs)
    assert not bench.told("restarted")


def test_closing_ends_busy_workers(bench):
    runner = bench.runner(trouble="hang", at="bb seed 0", patience=Patience())
    next(runner.run([job("a", 0), job("bb", 0)]))
    assert comes_true(lambda: len(bench.started()) == 2)
    assert len(running(bench.mark)) == 2
    started = time.monotonic()
    runner.close()
    assert time.monotonic() - started < 5.0
    assert running(bench.mark) == []


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["listener", "consumer"])
def test_no_process_is_left_after_an_exception(bench, kind, where):
    def disturb(event):
        if where == "listener" and event.kind == "progress":
            assert running(bench.mark) != []
            raise kind("stop")

    with pytest.raises(kind), bench.runner(listener=disturb, pause=0.2) as runner:
        for _ in runner.run(jobs_of(["a", "bb"], 4)):
            if where == "consumer":
                raise kind("stop")
    assert running(bench.mark) == []


def test_no_process_is_left_after_a_failed_run(bench):
    with bench.runner(trouble="error", at="a seed 0", pause=0.5) as runner, pytest.raises(RunError):
        list(runner.run(jobs_of(["a", "bb"], 4)))
    assert running(bench.mark) == []


def test_on_an_accelerator_one_worker_runs_all_seeds_of_an_arm_together(bench):
    jobs = jobs_of(["a", "bb"], 3)
    assert bench.run(jobs, num_workers=4, backend="gpu") == expected(jobs)
    assert [start["label"] for start in bench.started()] == ["a seed 0, 1, 2", "bb seed 0, 1, 2"]
    assert len(bench.log.with_suffix(".starts").read_text().split()) == 1


def test_on_an_accelerator_a_dead_worker_is_replaced_too(bench):
    jobs = jobs_of(["a", "bb"], 3)
    assert bench.run(jobs, num_workers=4, backend="gpu", trouble="die", at="a seed 0, 1, 2", times=1) == expected(jobs)
    assert len(bench.log.with_suffix(".starts").read_text().split()) == 2


def test_every_accelerator_has_a_worker_that_sees_no_other(bench, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    jobs = jobs_of(["a", "bb"], 3)
    assert bench.run(jobs, backend="gpu", devices=4, num_workers=None, pause=1.0) == expected(jobs)
    started = bench.started()
    assert {start["label"] for start in started} == {"a seed 0, 1", "a seed 2", "bb seed 0, 1", "bb seed 2"}
    assert {start["device"] for start in started} == {"0", "1", "2", "3"}
    assert len({start["pid"] for start in started}) == 4
    assert len(bench.log.with_suffix(".starts").read_text().split()) == 5, "the first, which saw all, is replaced"


def test_a_dead_worker_is_replaced_on_its_accelerator(bench, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    jobs = jobs_of(["a", "bb"], 2)
    options = dict(backend="gpu", devices=2, num_workers=None, trouble="die", at="bb seed 0, 1", times=1, pause=1.0)
    assert bench.run(jobs, **options) == expected(jobs)
    again = [start["device"] for start in bench.started() if start["label"] == "bb seed 0, 1"]
    assert len(again) == 2 and again[0] == again[1]


def test_no_more_accelerators_are_used_than_workers_asked_for_or_jobs(bench, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    jobs = jobs_of(["a"], 4)
    assert bench.run(jobs, backend="gpu", devices=8, num_workers=1) == expected(jobs)
    assert [start["label"] for start in bench.started()] == ["a seed 0, 1, 2, 3"]
    bench.log.unlink()
    assert bench.run(jobs[:2], backend="gpu", devices=8, num_workers=None, pause=1.0) == expected(jobs[:2])
    assert {start["device"] for start in bench.started()} == {"0", "1"}


@pytest.mark.parametrize("devices", [1, 2, 3, 5, 16])
@pytest.mark.parametrize(("arms", "seeds"), [(1, 1), (1, 7), (2, 3), (3, 10)])
def test_spreading_loses_no_seed_and_leaves_no_accelerator_idle_that_could_work(devices, arms, seeds):
    jobs = jobs_of([f"arm{i}" for i in range(arms)], seeds)
    cut = spread(jobs, devices)
    assert sorted((job.arm.name, seed) for job in cut for seed in job.seeds) == sorted(
        (job.arm.name, seed) for job in jobs for seed in job.seeds
    )
    assert len(cut) >= min(devices, len(jobs))
    assert len(cut) < devices + arms, "and no more programs than that takes"
    sizes = [len(job.seeds) for job in cut]
    assert max(sizes) - min(sizes) <= 1
    assert spread([], devices) == []


def test_a_worker_sees_one_of_those_that_the_parent_sees():
    assert environment_of(1, {})["CUDA_VISIBLE_DEVICES"] == "1"
    assert environment_of(1, {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"})["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert environment_of(1, {"HIP_VISIBLE_DEVICES": "5,6"})["HIP_VISIBLE_DEVICES"] == "6"


@pytest.mark.parametrize("spec", [EnvSpec("gymnasium:CartPole-v1"), EnvSpec("gymnasium:CartPole-v1", workers=1)])
def test_where_an_environment_may_have_ended_the_process_the_message_says_how_to_find_out(bench, spec):
    asked = dataclasses.replace(job("bb", 0), env=spec)
    with pytest.raises(RunError) as raised:
        list(bench.runner(trouble="die", at="bb seed 0", times=99).run([asked]))
    assert ("--env-workers 1 says which one" in str(raised.value)) == (spec.workers == 0)


def test_patience_outlasts_a_step_that_others_put_an_end_to():
    patience = Patience(first=3.0, later=1.5).after(100.0)
    assert (patience.first, patience.later, patience.factor) == (103.0, 101.5, 20.0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_a_worker_starts_waits_until_the_worker_is_known(bench, monkeypatch, number):
    before = signal.signal(number, signal.default_int_handler)
    start = subprocess.Popen.__init__

    def interrupted(self, *args, **options):
        os.kill(os.getpid(), number)
        start(self, *args, **options)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(subprocess.Popen, "__init__", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            bench.run(jobs_of(["a"], 2))
        assert comes_true(lambda: not running(bench.mark)), "it was known, so it was ended"
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_only_jobs_that_differ_in_nothing_but_their_seeds_are_joined():
    other_env = dataclasses.replace(job("a", 5), env=EnvSpec("MaskedCartPole-v0"))
    joined = by_arm([job("a", 0), job("bb", 0), other_env, job("a", 1)])
    assert joined == [job("a", 0, 1), job("bb", 0), other_env]


def test_a_worker_has_a_thread_pool_of_one_and_the_parents_environment_is_untouched(bench):
    before = dict(os.environ)
    bench.run(jobs_of(["a"], 2))
    assert {start["nproc"] for start in bench.started()} == {"1"}
    assert dict(os.environ) == before


def test_importing_the_package_changes_no_environment_variable():
    script = """
import os
before = dict(os.environ)
import thrust_rl, thrust_rl.cli, thrust_rl.experiment.worker, thrust_rl.experiment.plots, thrust_rl.experiment.trial
changed = {key for key in before.keys() | os.environ.keys() if before.get(key) != os.environ.get(key)}
raise SystemExit(repr(changed) if changed else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_there_is_a_worker_for_every_usable_core():
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
