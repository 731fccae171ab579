"""Does it pay to step half of the environments while the other half is inferred? Acting on the host, steps/s.

    python benchmarks/overlap.py
    python benchmarks/overlap.py --env-workers 2 --step-ms 1 --windows 2

Three ways to act for the same number of steps: all environments at once with calls that return when they are done (what
the library does), the same with calls that return at once, and two halves that take turns, so that the call of one runs
while the environments of the other are stepped. Each way is a process of its own; they take turns for several rounds.

With worker processes each half has as many as all environments together have otherwise; those of one half work while
those of the other wait, so the same number works at a time. `--step-ms` makes an environment wait at each of its steps,
or compute with `--busy`.
"""

import argparse
import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium

WAYS = {"at once, blocking": (1, False), "at once": (1, True), "two halves": (2, True)}  # parts, asynchronous
NUM_ENVS, NUM_STEPS = 16, 128


class Work(NamedTuple):
    """What one process measures."""

    env_id: str
    workers: int  # of every part; 0 steps the environments in the process that acts
    step_ms: float
    is_busy: bool
    windows: int
    hidden_dim: int
    parts: int
    is_async: bool


class Slow(gymnasium.Wrapper):
    """Every step takes so many milliseconds more: of waiting, or of a processor's time."""

    def __init__(self, env: gymnasium.Env[Any, Any], step_ms: float, *, is_busy: bool) -> None:
        super().__init__(env)
        self.seconds, self.is_busy = step_ms / 1000, is_busy

    def step(self, action: Any) -> Any:
        begun = time.perf_counter()
        if not self.is_busy:
            time.sleep(self.seconds)
        while time.perf_counter() - begun < self.seconds:
            pass
        return self.env.step(action)


def slow(make_env: Any, step_ms: float, is_busy: bool) -> gymnasium.Env[Any, Any]:
    """Build an environment of the task and slow it down."""
    return Slow(make_env(), step_ms, is_busy=is_busy)


def task_of(work: Work) -> Any:
    """What is stepped, and by whom."""
    import dataclasses

    import thrust_rl

    task = thrust_rl.make(work.env_id)
    if not isinstance(task, thrust_rl.HostTask):
        sys.exit(f"{work.env_id} is not stepped by the host one by one: try gymnasium:CartPole-v1")
    make_env = task.make_env
    if work.step_ms:
        make_env = functools.partial(slow, make_env, work.step_ms, work.is_busy)
    return dataclasses.replace(task, make_env=make_env, workers=work.workers)


def measure(work: Work) -> float:
    """Steps per second of acting in so many parts."""
    import dataclasses

    import jax
    import numpy as np

    import thrust_rl  # noqa: F401  # sets what the next line sets otherwise
    from thrust_rl.config import ARMS, TrainConfig
    from thrust_rl.policies.inputs import Task
    from thrust_rl.rollout.hosted import HostCollector
    from thrust_rl.training.loop import initial_learner

    jax.config.update("jax_cpu_enable_async_dispatch", work.is_async)

    class Part(HostCollector):
        """Acts for one window, and lets others act after every call."""

        def turns(self, policy: object) -> Iterator[None]:
            weights = jax.tree.leaves(policy)
            acting, _ = self._calls.open(weights, self._acting, self._streams)
            acting = self._calls.decide(weights, acting)
            for _ in range(NUM_STEPS):
                yield
                hosted = self._envs.step(self._task.actions.to_env(np.asarray(acting.action)))
                came = self._came(hosted, hosted.result.reward, reads_successors=False)
                acting = self._calls.step(weights, acting, came)
            self._acting = acting

    arm, env = dataclasses.replace(ARMS["lstm"], hidden_dim=work.hidden_dim), task_of(work)
    config = TrainConfig(NUM_ENVS * NUM_STEPS, NUM_ENVS // work.parts, NUM_STEPS)
    task = Task.of(env, arm)
    policy = initial_learner(task, config, jax.random.key(0)).policy
    started = [env.start(config.num_envs) for _ in range(work.parts)]
    try:
        halves = [Part(envs, task, policy, config, seed=i) for i, envs in enumerate(started)]
        for window in range(work.windows + 1):
            if window == 1:  # the first compiled everything
                begun = time.perf_counter()
            for _ in zip(*(half.turns(policy) for half in halves), strict=True):
                pass
        seconds = time.perf_counter() - begun
    finally:
        for envs in started:
            envs.close()
    return work.windows * NUM_STEPS * NUM_ENVS / seconds


def rate(work: Work) -> float:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", json.dumps(work)]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if printed.returncode != 0:
        sys.exit(f"{work} failed:\n{printed.stderr}")
    return float(printed.stdout.splitlines()[-1])


def main() -> None:
    """Measure every way in turn, for networks of several sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="gymnasium:CartPole-v1", help="an environment that the host steps")
    parser.add_argument("--env-workers", type=int, default=0, help="processes that step them; 0: the one that acts")
    parser.add_argument(
        "--step-ms", type=float, default=0.0, help="what each step of each environment takes in addition"
    )
    parser.add_argument("--busy", action="store_true", help="it computes meanwhile instead of waiting")
    parser.add_argument("--windows", type=int, default=30, help=f"of {NUM_STEPS} steps, in a measurement")
    parser.add_argument("--hidden-dims", type=int, nargs="+", default=[64, 256], help="sizes of the LSTM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        return print(measure(Work(*asked.measure)))
    if asked.env_workers and (NUM_ENVS // 2) % asked.env_workers:
        parser.error(f"--env-workers {asked.env_workers} must divide half of the {NUM_ENVS} environments")
    what = f"{asked.env}, {NUM_ENVS} environments, {asked.env_workers} workers, +{asked.step_ms} ms a step"
    what += " of computing" if asked.busy else ""
    print(f"{what}; acting only; steps per second, median of {asked.rounds}")
    for hidden_dim in asked.hidden_dims:
        rates: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(asked.rounds):
            for name, way in WAYS.items():
                settings = asked.env, asked.env_workers, asked.step_ms, asked.busy, asked.windows
                rates[name].append(rate(Work(*settings, hidden_dim, *way)))
        first = statistics.median(rates["at once, blocking"])
        for name, found in rates.items():
            median = statistics.median(found)
            print(f"LSTM {hidden_dim:3}  {name:18} {median:8,.0f}  {median / first:.2f}", flush=True)


if __name__ == "__main__":
    main()
