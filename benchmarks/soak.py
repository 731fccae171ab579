"""Soak: train for a long time over many seeds and count stalled or dead workers (docs/decisions/0002)."""

import argparse
import itertools
import time
from collections import Counter

from thrust_rl.config import ARMS, TrainConfig
from thrust_rl.envs.registry import env_parameters
from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.runner import JobEvent, Runner

ENV = "FlickeringCartPole-v0"
SEEDS_PER_ROUND = 24


def main() -> None:
    """Run rounds of full-budget jobs until the time is up; every round also repeats seed 0 and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--total-timesteps", type=int, default=500_000)
    options = parser.parse_args()
    config = TrainConfig(total_timesteps=options.total_timesteps)
    started, counts, reference = time.monotonic(), Counter[str](), {}

    def listen(event: JobEvent) -> None:
        counts[event.kind] += 1
        if event.kind == "restarted":
            print(f"{event.job.label}: {event.data['reason']}", flush=True)

    for round_ in itertools.count():
        seeds = [0, *range(1 + round_ * SEEDS_PER_ROUND, 1 + (round_ + 1) * SEEDS_PER_ROUND)]
        jobs = [Job(ENV, env_parameters(ENV), arm, config, (seed,)) for arm in ARMS.values() for seed in seeds]
        with Runner(listener=listen) as runner:
            for job, results in runner.run(jobs):
                if job.seeds == (0,):
                    same = reference.setdefault(job.arm.name, results[0].curve_mean_return)
                    assert same == results[0].curve_mean_return, f"{job.label} is not reproducible"
        minutes = (time.monotonic() - started) / 60
        print(f"{minutes:.1f} min: {counts['finished']} runs, {counts['restarted']} restarts", flush=True)
        if minutes >= options.minutes:
            return


if __name__ == "__main__":
    main()
