"""Does it pay to step half of the environments while the other half is inferred? Acting on the host, steps/s.

    python benchmarks/overlap.py

Three ways to act for the same number of steps: all environments at once with calls that return when they are done (what
the library does), the same with calls that return at once, and two halves that take turns, so that the call of one runs
while the environments of the other are stepped. Each way is a process of its own; they take turns for several rounds.
"""

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

WAYS = {"at once, blocking": (1, False), "at once": (1, True), "two halves": (2, True)}  # parts, asynchronous
NUM_ENVS, NUM_STEPS, WINDOWS = 16, 128, 30


def measure(env_id: str, hidden_dim: int, parts: int, is_async: bool) -> float:
    """Steps per second of acting in so many parts."""
    import jax
    import numpy as np

    import thrust_rl
    from thrust_rl.config import ARMS, TrainConfig
    from thrust_rl.policies.inputs import Task
    from thrust_rl.rollout.hosted import HostCollector
    from thrust_rl.training.loop import initial_learner

    jax.config.update("jax_cpu_enable_async_dispatch", is_async)

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

    arm, env = dataclasses.replace(ARMS["lstm"], hidden_dim=hidden_dim), thrust_rl.make(env_id)
    config = TrainConfig(NUM_ENVS * NUM_STEPS, NUM_ENVS // parts, NUM_STEPS)
    task = Task.of(env, arm)
    policy = initial_learner(task, config, jax.random.key(0)).policy
    started = [env.start(config.num_envs) for _ in range(parts)]
    halves = [Part(envs, task, policy, config, seed=i) for i, envs in enumerate(started)]
    for window in range(WINDOWS + 1):
        if window == 1:  # the first compiled everything
            begun = time.perf_counter()
        for _ in zip(*(half.turns(policy) for half in halves), strict=True):
            pass
    seconds = time.perf_counter() - begun
    for envs in started:
        envs.close()
    return WINDOWS * NUM_STEPS * NUM_ENVS / seconds


def main() -> None:
    """Measure every way in turn, for networks of several sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="gymnasium:CartPole-v1", help="an environment that the host steps")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return print(measure(*arguments.measure))
    print(f"{arguments.env}, {NUM_ENVS} environments, acting only; steps per second, median of {arguments.rounds}")
    for hidden_dim in (64, 256):
        rates: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(arguments.rounds):
            for name, way in WAYS.items():
                work = json.dumps([arguments.env, hidden_dim, *way])
                command = [sys.executable, __file__, "--measure", work]
                printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
                rates[name].append(float(printed.stdout))
        first = statistics.median(rates["at once, blocking"])
        for name, found in rates.items():
            rate = statistics.median(found)
            print(f"LSTM {hidden_dim:3}  {name:18} {rate:8,.0f}  {rate / first:.2f}", flush=True)


if __name__ == "__main__":
    main()
