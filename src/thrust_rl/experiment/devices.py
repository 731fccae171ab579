"""Which accelerator a worker gets, and how jobs are cut so that every accelerator has something to do."""

import dataclasses
import json
from collections.abc import Mapping, Sequence

from thrust_rl.experiment.jobs import Job

# A process sees the devices that are listed here, and takes the memory of all that it sees.
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
PARTED = ("gpu", "cuda", "rocm")  # backends whose devices can be told apart in this way


def num_workers_on(backend: str, devices: int, asked: int | None) -> int:
    """How many workers share the accelerators: one each, if not fewer are asked for.

    Example:
        >>> num_workers_on("gpu", 4, None), num_workers_on("gpu", 4, 2), num_workers_on("tpu", 4, None)
        (4, 2, 1)
    """
    return min(devices, asked or devices) if backend in PARTED else 1


def environment_of(device: int, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that leave a process one of the accelerators that this one sees.

    Example:
        >>> environment_of(1, {"CUDA_VISIBLE_DEVICES": "4,7"})
        {'CUDA_VISIBLE_DEVICES': '7', 'HIP_VISIBLE_DEVICES': '1'}
    """
    found = {}
    for name in VISIBLE:
        seen = [entry for entry in environment.get(name, "").split(",") if entry]
        found[name] = seen[device] if device < len(seen) else str(device)
    return found


def by_arm(jobs: Sequence[Job]) -> list[Job]:
    """Join the jobs that differ only in their seeds."""
    joined: dict[str, Job] = {}
    for job in jobs:
        rest = json.dumps(dataclasses.replace(job, seeds=()).to_dict())
        before = joined.get(rest)
        seeds = (*before.seeds, *job.seeds) if before else job.seeds
        joined[rest] = dataclasses.replace(job, seeds=seeds)
    return list(joined.values())


def spread(jobs: Sequence[Job], devices: int) -> list[Job]:
    """Jobs for so many accelerators: all seeds of an arm together, cut only where there would be idle ones.

    A program of several seeds takes hardly longer than one of a single seed, and every cut is compiled on its own.

    Example:
        >>> from thrust_rl.config import ARMS, TrainConfig
        >>> from thrust_rl.experiment.environment import EnvSpec
        >>> one = [Job(EnvSpec("CartPole-v1"), ARMS["lstm"], TrainConfig(), (seed,)) for seed in range(5)]
        >>> [job.seeds for job in spread(one, 1)], [job.seeds for job in spread(one, 2)]
        ([(0, 1, 2, 3, 4)], [(0, 1, 2), (3, 4)])
    """
    joined = by_arm(jobs)
    if not joined:
        return []
    pieces = -(-devices // len(joined))  # of each arm, rounded up
    return [piece for job in joined for piece in _cut(job, min(pieces, len(job.seeds)))]


def _cut(job: Job, pieces: int) -> list[Job]:
    """The same with its seeds in so many pieces, as equal as can be, the longer ones first."""
    size, longer = divmod(len(job.seeds), pieces)
    ends = [0]
    for i in range(pieces):
        ends.append(ends[-1] + size + (i < longer))
    return [dataclasses.replace(job, seeds=job.seeds[low:high]) for low, high in zip(ends[:-1], ends[1:], strict=True)]
