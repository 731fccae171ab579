"""What a comparison hands to its workers, and what they hand back: plain data that survives JSON."""

import dataclasses
import math
from typing import Any

from thrust_rl.config import ArmConfig, TrainConfig, from_dict


@dataclasses.dataclass(frozen=True)
class Job:
    """One arm to train on one environment with some seeds."""

    env: str
    env_params: dict[str, Any]
    arm: ArmConfig
    config: TrainConfig
    seeds: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "Job":
        """Back from JSON types."""
        arm, config = from_dict(ArmConfig, data["arm"]), from_dict(TrainConfig, data["config"])
        return Job(data["env"], data["env_params"], arm, config, tuple(data["seeds"]))

    @property
    def label(self) -> str:
        """For messages: the arm and its seeds."""
        return f"{self.arm.name} seed {', '.join(map(str, self.seeds))}"


@dataclasses.dataclass(frozen=True)
class SeedResult:
    """What one seed of one arm gave. Returns are raw; times are not reproducible."""

    seed: int
    params: int
    """Trainable scalars of the arm."""
    final: float | None
    """Mean return of the last ≤100 episodes at the end; None when none finished."""
    best: float | None
    """The curve's peak."""
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

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "SeedResult":
        """Back from JSON types."""
        curves = {name: tuple(data[name]) for name in ("curve_steps", "curve_mean_return")}
        return SeedResult(**{**data, **curves})


def mean_of(values: list[float | None]) -> float | None:
    """The mean, or None as soon as one value is missing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None
