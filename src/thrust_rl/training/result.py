"""What training gives: progress on the way, a result at every point where it may stop, an error where it must."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thrust_rl.config import TrainConfig
from thrust_rl.training.curve import LearningCurve
from thrust_rl.training.loop import ACTION_MASKS, TrainState


class TrainingError(RuntimeError):
    """Training cannot go on; the message says at which update and why."""


class Progress(NamedTuple):
    """Where a run stands after a chunk."""

    seeds: tuple[int, ...]
    steps: int  # environment steps done, per seed
    total_steps: int
    mean_return: float | None  # of the last ≤100 episodes, mean over the seeds
    seconds: float  # running so far, compiling excluded


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """What training one seed gave."""

    seed: int
    curve: LearningCurve
    params: int  # trainable scalars
    steps: int  # environment steps
    seconds_compile: float  # 0 where the program was compiled before
    seconds_run: float
    state: TrainState  # final; `state.learner.policy` is the trained policy
    env_restarts: int = 0  # host environments that failed and were replaced
    resumed_at: tuple[int, ...] = ()  # steps after which a checkpoint went on in new host environments

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second of running."""
        return self.steps / self.seconds_run


def progress_of(
    seeds: tuple[int, ...], curves: Sequence[LearningCurve], done: int, config: TrainConfig, seconds: float
) -> Progress:
    """After so many updates."""
    returns = [curve.final for curve in curves if curve.final is not None]
    return Progress(
        seeds=seeds,
        steps=done * config.steps_per_update,
        total_steps=config.num_updates * config.steps_per_update,
        mean_return=float(np.mean(returns)) if returns else None,
        seconds=seconds,
    )


def non_finite(broken: list[str], update: int, config: TrainConfig) -> TrainingError:
    """What to say of an update in which something was not finite, or in which nothing was allowed."""
    if ACTION_MASKS in broken:  # then the rest follows from it
        return TrainingError(
            f"action masks that leave some choice no alternative at update {update} of {config.num_updates}:"
            " allow one of every choice, or end the episode"
        )
    return TrainingError(
        f"non-finite {' and '.join(broken)} at update {update} of {config.num_updates}:"
        " lower the learning rate, or check the environment's observations and rewards"
    )
