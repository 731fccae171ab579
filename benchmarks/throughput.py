"""Throughput: environment steps per second of whole training (acting and learning), compiling excluded.

Prints one line per case, all measured in one run on one machine, so that their ratios can be trusted:
one worker, one worker per core, and all seeds vectorized in one program with XLA's default thread pool.
"""

import argparse
import os
import subprocess
import sys

from thrust_rl.config import ARMS, ArmConfig, TrainConfig
from thrust_rl.envs.registry import env_parameters
from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.runner import Runner, usable_cores

ENV = "FlickeringCartPole-v0"
VECTORIZED = """
import sys
from thrust_rl import TrainConfig, make, train
arm, steps, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
env, config = make("FlickeringCartPole-v0"), TrainConfig(total_timesteps=steps)
results = train(env, arm, config, seeds=range(seeds), vectorize_seeds=True)
print(sum(result.steps for result in results) / results[0].seconds_run)
"""


def workers_rate(arm: ArmConfig, config: TrainConfig, *, num_workers: int) -> float:
    """Steps per second of `num_workers` processes that each train two seeds, the first unmeasured."""
    jobs = [Job(ENV, env_parameters(ENV), arm, config, (seed,)) for seed in range(2 * num_workers)]
    with Runner(num_workers=num_workers) as runner:
        results = [result for _, found in runner.run(jobs) for result in found]
    measured = [result for result in results if result.seconds_compile == 0.0]
    return num_workers * sum(result.steps_per_second for result in measured) / len(measured)


def vectorized_rate(arm: str, steps: int, *, seeds: int) -> float:
    """Steps per second of all seeds in one program of one process, with the default thread pool."""
    environment = {name: value for name, value in os.environ.items() if name != "NPROC"}
    command = [sys.executable, "-c", VECTORIZED, arm, str(steps), str(seeds)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return float(printed.stdout)


def main() -> None:
    """Measure every case for both arms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total-timesteps", type=int, default=500_000)
    options = parser.parse_args()
    config, cores = TrainConfig(total_timesteps=options.total_timesteps), usable_cores()
    print(
        f"{ENV}, {config.num_envs} environments x {config.num_steps} steps, {cores} cores; environment steps per second"
    )
    for name, arm in ARMS.items():
        one = workers_rate(arm, config, num_workers=1)
        print(f"{name:6} one worker                            {one:10,.0f}  1.00", flush=True)
        rate = workers_rate(arm, config, num_workers=cores)
        print(f"{name:6} {cores} workers                             {rate:10,.0f}  {rate / one:.2f}", flush=True)
        rate = vectorized_rate(name, options.total_timesteps, seeds=4)
        print(f"{name:6} 4 seeds vectorized, default pool      {rate:10,.0f}  {rate / one:.2f}", flush=True)


if __name__ == "__main__":
    main()
