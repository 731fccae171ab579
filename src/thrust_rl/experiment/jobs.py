"""What a comparison hands to its workers, and what they hand back: plain data that survives JSON."""

import dataclasses
import math
from typing import Any

from thrust_rl.config import ArmConfig, TrainConfig, from_dict, require
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.training.evaluate import EVALUATION_SEED, EVALUATION_STEPS, MOST_STEPS
from thrust_rl.training.keeping import Checkpoints


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """How a trained policy is scored: fresh episodes on streams that no run was trained on.

    Raises:
        ConfigError: there is no episode, or none has a step.
    """

    episodes: int = 100
    """Played to their end, once drawing actions and once taking the likeliest."""
    seed: int = EVALUATION_SEED
    """The same for every arm and every training seed."""
    max_steps: int = EVALUATION_STEPS
    """An episode that has not ended after so many is cut there."""

    def __post_init__(self) -> None:
        """Check the rules."""
        require(self.episodes >= 1, f"eval_episodes is {self.episodes}: it must be at least 1")
        most = self.max_steps
        require(1 <= most <= MOST_STEPS, f"eval_steps is {most}: it must lie in [1, {MOST_STEPS}]")


@dataclasses.dataclass(frozen=True)
class Job:
    """One arm to train and to evaluate on one environment with some seeds."""

    env: EnvSpec
    arm: ArmConfig
    config: TrainConfig
    seeds: tuple[int, ...]
    evaluation: EvalConfig = EvalConfig()
    recorded: int | None = None
    """The seed whose first evaluation episode is kept step by step."""
    where: str = ""
    """For messages: the environment, where a comparison has more than one."""
    checkpoints: Checkpoints | None = None
    """Where its runs are kept before they have finished. They change no number of a compiled environment."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "Job":
        """Back from JSON types."""
        return Job(
            env=EnvSpec.from_dict(data["env"]),
            arm=from_dict(ArmConfig, data["arm"]),
            config=from_dict(TrainConfig, data["config"]),
            seeds=tuple(data["seeds"]),
            evaluation=from_dict(EvalConfig, data["evaluation"]),
            recorded=data["recorded"],
            where=data["where"],
            checkpoints=Checkpoints(**data["checkpoints"]) if data["checkpoints"] else None,
        )

    @property
    def label(self) -> str:
        """For messages: the arm, its seeds and where."""
        return f"{self.arm.name} seed {', '.join(map(str, self.seeds))}" + (f" on {self.where}" if self.where else "")

    @property
    def program(self) -> str:
        """Jobs of the same program share what was compiled."""
        return f"{self.arm.name} on {self.env.label}"


@dataclasses.dataclass(frozen=True)
class SeedResult:
    """What one seed of one arm gave. Returns are raw; times are not reproducible."""

    seed: int
    params: int
    """Trainable scalars of the arm."""
    final: float | None
    """Mean return of the last ≤100 training episodes at the end; None when none finished."""
    best: float | None
    """The curve's peak."""
    auc: float | None
    """Mean height of the curve over all steps; before the first finished episode its return counts."""
    curve_steps: tuple[int, ...]
    """Environment steps at the curve's points, one point per update."""
    curve_mean_return: tuple[float, ...]
    """Mean return of the last ≤100 episodes at those steps."""
    episodes: int
    """Finished episodes."""
    steps: int
    """Environment steps."""
    steps_per_second: float
    """Environment steps per second of running, compiling excluded."""
    seconds_compile: float
    """0 where the seed ran a program that its worker had compiled before."""
    seconds_run: float
    evaluation: dict[str, dict[str, Any]]
    """Under "sampled" and "greedy": `mean_return`, and per episode `returns` and `lengths`; `cut` counts those that
    had not ended after `max_steps`."""
    env_restarts: int = 0
    """Host environments that failed in training or evaluation and were replaced."""
    resumed_at: tuple[int, ...] = ()
    """Steps after which a checkpoint went on in new host environments."""
    recording: dict[str, Any] | None = None
    """The first sampled evaluation episode, step by step; None unless it was asked for."""

    @property
    def score(self) -> float:
        """What verdicts are about: the mean return of the sampled evaluation episodes."""
        return float(self.evaluation["sampled"]["mean_return"])

    @property
    def longest(self) -> int:
        """Steps of the longest evaluation episode."""
        return max((length for played in self.evaluation.values() for length in played["lengths"]), default=0)

    @property
    def greedy_score(self) -> float:
        """The mean return of the greedy evaluation episodes."""
        return float(self.evaluation["greedy"]["mean_return"])

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "SeedResult":
        """Back from JSON types."""
        lists = {name: tuple(data.get(name, ())) for name in ("curve_steps", "curve_mean_return", "resumed_at")}
        return SeedResult(**{**data, **lists})


def mean_of(values: list[float | None]) -> float | None:
    """The mean, or None as soon as one value is missing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def area_under(steps: tuple[int, ...], returns: tuple[float, ...]) -> float | None:
    """Mean height of a learning curve from step 0 to its last point, by trapezoids; None for an empty one.

    Before its first point the curve is as high as there, so that every arm's area covers the same steps.

    Example:
        >>> area_under((100, 200), (10.0, 20.0))
        12.5
    """
    if not steps:
        return None
    pieces = [returns[0] * steps[0]]
    for i in range(1, len(steps)):
        pieces.append((steps[i] - steps[i - 1]) * (returns[i] + returns[i - 1]) / 2)
    return math.fsum(pieces) / steps[-1]
