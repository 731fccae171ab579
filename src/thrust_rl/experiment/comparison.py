"""The outcome of a comparison: per arm and seed, as an object and as `result.json` (docs/result-schema.md)."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.experiment.jobs import SeedResult, mean_of

SCHEMA = "thrust-rl/comparison"
SCHEMA_VERSION = 1
VERSIONED_PACKAGES = ("thrust-rl", "jax", "jaxlib", "equinox", "optax", "gymnasium", "numpy")

Status = Literal["complete", "interrupted"]


@dataclasses.dataclass(frozen=True)
class ArmResult:
    """One arm with the seeds it finished, in the order of the seeds."""

    arm: ArmConfig
    learning_rate: float
    """The one used: the arm's own, or the override."""
    seeds: tuple[SeedResult, ...]

    @property
    def params(self) -> int | None:
        """Trainable scalars; None before any seed finished."""
        return self.seeds[0].params if self.seeds else None

    @property
    def final(self) -> float | None:
        """Mean over the seeds of each seed's final mean return."""
        return mean_of([seed.final for seed in self.seeds])

    @property
    def best(self) -> float | None:
        """Mean over the seeds of each seed's best mean return."""
        return mean_of([seed.best for seed in self.seeds])


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Arms trained on the identical stream, and what came out.

    Example:
        comparison = compare("FlickeringCartPole-v0")
        print(comparison.sentence)
        comparison.arm("lstm").final
    """

    env: str
    env_params: dict[str, Any]
    config: TrainConfig
    seeds: tuple[int, ...]
    """The seeds asked for; every arm gets the same."""
    arms: tuple[ArmResult, ...]
    status: Status

    def arm(self, name: str) -> ArmResult:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.arm.name == name)

    @property
    def sentence(self) -> str:
        """Which arm won, and by how much."""
        ranked = sorted((arm for arm in self.arms if arm.final is not None), key=lambda arm: -(arm.final or 0.0))
        if self.status == "interrupted":
            return "Interrupted: no winner is named; the table shows the seeds that finished."
        if len(ranked) < len(self.arms):
            return "No episode finished in some runs: no winner can be named; give a larger budget."
        if len(ranked) == 1:
            return f"{ranked[0].arm.name} reached a mean final return of {ranked[0].final:.1f}."
        return _verdict(ranked, len(self.seeds))

    def to_dict(self) -> dict[str, Any]:
        """As JSON types: what `result.json` holds."""
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "status": self.status,
            "environment": {"name": self.env, "params": self.env_params},
            "config": dataclasses.asdict(self.config),
            "seeds": list(self.seeds),
            "arms": {arm.arm.name: _arm_data(arm) for arm in self.arms},
            "sentence": self.sentence,
            "versions": versions(),
        }


def _verdict(ranked: Sequence[ArmResult], num_seeds: int) -> str:
    """Name the first of the ranked arms the winner only where it leads all others on every seed."""
    first, second = ranked[:2]
    by_seed = zip(*([seed.final or 0.0 for seed in arm.seeds] for arm in ranked), strict=True)
    leads = sum(finals[0] > max(finals[1:]) for finals in by_seed)
    gap = (first.final or 0.0) - (second.final or 0.0)
    names = f"{first.arm.name} {{}} {second.arm.name}"
    if f"{gap:.1f}" == "0.0":
        return f"No clear winner: {names.format('and')} are level at a mean final return of {first.final:.1f}."
    numbers = f"mean final return {first.final:.1f} against {second.final:.1f}"
    seeds = f"{leads} of {num_seeds} seed{'s' if num_seeds != 1 else ''}"
    if leads == num_seeds:
        return f"{names.format('won against')} by {gap:.1f}: {numbers}, ahead on {seeds}."
    return f"No clear winner: {names.format('leads')} by {gap:.1f} on average ({numbers}) but on only {seeds}."


def _arm_data(arm: ArmResult) -> dict[str, Any]:
    config = dataclasses.asdict(arm.arm) | {"encoder_sizes": list(arm.arm.encoder_sizes)}
    return {
        "params": arm.params,
        "config": {**config, "learning_rate": arm.learning_rate},
        "mean": {"final": arm.final, "best": arm.best},
        "seeds": [_seed_data(seed) for seed in arm.seeds],
    }


def _seed_data(seed: SeedResult) -> dict[str, Any]:
    return {
        "seed": seed.seed,
        "final": seed.final,
        "best": seed.best,
        "curve": {"steps": list(seed.curve_steps), "mean_return": list(seed.curve_mean_return)},
        "episodes": seed.episodes,
        "steps": seed.steps,
        "steps_per_second": seed.steps_per_second,
        "seconds_compile": seed.seconds_compile,
        "seconds_run": seed.seconds_run,
    }


def versions() -> dict[str, str]:
    """Python and the packages that decide the numbers."""
    found = {"python": platform.python_version()}
    for package in VERSIONED_PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a file that is either whole or not there."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, allow_nan=False)
            file.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
