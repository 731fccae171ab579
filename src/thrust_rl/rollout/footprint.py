"""How many bytes a window takes: what cannot fit into this machine is refused before it is tried."""

import math
import os

import numpy as np

from thrust_rl.config import ArmConfig, TrainConfig, require
from thrust_rl.envs.spaces import ObsSpec

NOTED = 28  # bytes of a step beside its frame: action, log-probability, value, reward, advantage, target, flags


def window_bytes(frame: ObsSpec, arm: ArmConfig, config: TrainConfig) -> int:
    """What one window takes: frames, as an arm consumes them, and what is written down about each.

    Example:
        >>> from thrust_rl import ARMS
        >>> from thrust_rl.envs.spaces import vector_spec
        >>> window_bytes(vector_spec(4), ARMS["mlp"], TrainConfig(num_envs=16, num_steps=128))
        90112
    """
    one = sum(math.prod(part.shape) * np.dtype(part.dtype).itemsize for part in frame.parts)
    return (one * arm.frame_stack + NOTED) * config.num_envs * config.num_steps


def require_fits(frame: ObsSpec, arm: ArmConfig, config: TrainConfig, *, memory: int | None = None) -> None:
    """Refuse a window that takes more than half of the memory there is, since learning from it takes as much again.

    This is a lower bound: networks and environments take memory too, so that what passes may fail all the same.

    Args:
        frame: of the environment.
        arm: that consumes them.
        config: of the training.
        memory: bytes there are; None asks the machine.

    Raises:
        ConfigError: it cannot fit; sizes and remedies are named.
    """
    there = machine_memory() if memory is None else memory
    needed = window_bytes(frame, arm, config)
    remedy = "num_envs or num_steps" if arm.frame_stack == 1 else "num_envs, num_steps or the frame stack"
    require(
        there is None or 2 * needed < there,
        f"a window of {arm.name} takes {needed / 2**30:,.1f} GiB ({config.num_envs:,} environments,"
        f" {config.num_steps:,} steps, {needed // (config.num_envs * config.num_steps):,} bytes each), learning from it"
        f" as much again, and this machine has {(there or 0) / 2**30:,.1f} GiB of memory: lower {remedy}",
    )


def machine_memory() -> int | None:
    """Bytes of main memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
