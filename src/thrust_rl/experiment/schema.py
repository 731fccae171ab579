"""A comparison as `result.json` and back (docs/result-schema.md)."""

import dataclasses
from pathlib import Path
from typing import Any

from thrust_rl.config import ArmConfig, ConfigError, TrainConfig, from_dict, require
from thrust_rl.experiment.analysis import TaskAnalysis
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult, TaskResult
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, SeedResult
from thrust_rl.experiment.sensible import require_sensible, require_sensible_derived
from thrust_rl.experiment.shape import require_shape
from thrust_rl.files import read_json

SCHEMA = "thrust-rl/comparison"
SCHEMA_VERSION = 2
RESULT_FILE = "result.json"
EARLIER_STEPS = 100_000  # after which evaluation on the host cut before this was a setting


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """As JSON types."""
    analysis = comparison.analysis
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "status": comparison.status,
        "command": comparison.command,
        "config": dataclasses.asdict(comparison.config),
        "evaluation": dataclasses.asdict(comparison.evaluation),
        "min_effect": comparison.min_effect,
        "seeds": list(comparison.seeds),
        "tasks": [_task_data(task, one) for task, one in zip(comparison.tasks, analysis.tasks, strict=True)],
        "aggregate": plain(analysis.aggregate.to_dict()) if analysis.aggregate else None,
        "sentences": list(analysis.sentences),
        "versions": dict(comparison.versions),
        "machine": dict(comparison.machine),
        "seconds": comparison.seconds,
        "merged_from": list(comparison.merged_from),
        "notes": list(comparison.notes),
        "pair": list(comparison.pair) if comparison.pair else None,
    }


def load(path: Path) -> Comparison:
    """Read a result, or the one in a folder.

    Raises:
        ConfigError: there is none, it is damaged, or of another version.
    """
    file = path / RESULT_FILE if path.is_dir() else path
    require(file.exists(), f"{file} does not exist: give a folder that thrust compare wrote to")
    remedy = (
        "repeat the command that made it, with the same --out: runs that are kept in its runs/ folder are not run again"
    )
    data = read_json(file, schema=SCHEMA, version=SCHEMA_VERSION, remedy=remedy)
    try:
        require_shape(data)
        require_sensible_derived(data)
        comparison = _comparison(data)
        require_sensible(comparison)
        return comparison
    except ConfigError as error:
        raise ConfigError(f"{file} is damaged ({error}): {remedy}") from error
    except RecursionError as error:
        raise ConfigError(f"{file} is damaged (too many lists or objects inside each other): {remedy}") from error
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError) as error:
        raise ConfigError(f"{file} is damaged ({type(error).__name__}: {error}): {remedy}") from error


def plain(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, tuple | list) else value


def arm_data(arm: ArmConfig) -> dict[str, Any]:
    """An arm as JSON types."""
    return dataclasses.asdict(arm) | {"encoder_sizes": list(arm.encoder_sizes)}


def seed_data(seed: SeedResult) -> dict[str, Any]:
    """One seed as JSON types; its recording is kept with the arm."""
    data: dict[str, Any] = plain(dataclasses.asdict(dataclasses.replace(seed, recording=None)))
    del data["recording"]
    return data


def _task_data(task: TaskResult, analysis: TaskAnalysis) -> dict[str, Any]:
    return {
        "label": task.label,
        "conditions": [_condition_data(condition) for condition in task.conditions],
        "verdict": plain(analysis.verdict.to_dict()) if analysis.verdict else None,
        "contrasts": [{"about": one.about, **plain(one.contrast.to_dict())} for one in analysis.contrasts],
        "twin_effects": plain(analysis.twin_effects.to_dict()) if analysis.twin_effects else None,
    }


def _condition_data(condition: ConditionResult) -> dict[str, Any]:
    return {
        "name": condition.name,
        "environment": condition.environment.to_dict(),
        "arms": {arm.name: _arm_result_data(arm) for arm in condition.arms},
    }


def _arm_result_data(arm: ArmResult) -> dict[str, Any]:
    return {
        "arm": arm_data(arm.arm),
        "learning_rate": arm.learning_rate,
        "params": arm.params,
        "mean": {name: getattr(arm, name) for name in ("score", "greedy", "final", "best", "auc")},
        "summary": plain(arm.summary.to_dict()) if arm.summary else None,
        "seeds": [seed_data(seed) for seed in arm.seeds],
        "recording": arm.recording,
    }


def _comparison(data: dict[str, Any]) -> Comparison:
    return Comparison(
        tasks=tuple(
            TaskResult(task["label"], tuple(_condition(condition) for condition in task["conditions"]))
            for task in data["tasks"]
        ),
        config=from_dict(TrainConfig, data["config"]),
        seeds=tuple(data["seeds"]),
        status=data["status"],
        evaluation=_evaluation(data),
        min_effect=data["min_effect"],
        command=data["command"],
        versions=data["versions"],
        machine=data["machine"],
        seconds=data["seconds"],
        merged_from=tuple(data.get("merged_from", ())),  # files of earlier releases have none of these
        notes=tuple(data.get("notes", ())),
        pair=tuple(pair) if (pair := data.get("pair")) else None,
    )


def _evaluation(data: dict[str, Any]) -> EvalConfig:
    """Earlier releases, whose files have no `max_steps`, cut later, and some episodes not at all."""
    evaluation: EvalConfig = from_dict(EvalConfig, data["evaluation"])
    if "max_steps" in data["evaluation"]:
        return evaluation
    arms = [arm for task in data["tasks"] for each in task["conditions"] for arm in each["arms"].values()]
    longest = max((_seed(seed, None).longest for arm in arms for seed in arm["seeds"]), default=0)
    later = max(longest, EARLIER_STEPS)
    return evaluation if longest <= evaluation.max_steps else dataclasses.replace(evaluation, max_steps=later)


def _condition(data: dict[str, Any]) -> ConditionResult:
    arms = tuple(_arm_result(arm) for arm in data["arms"].values())
    for name, arm in zip(data["arms"], arms, strict=True):
        require(name == arm.name, f"the arm under {name!r} is called {arm.name!r}")
    return ConditionResult(data["name"], EnvSpec.from_dict(data["environment"]), arms)


def _arm_result(data: dict[str, Any]) -> ArmResult:
    recording = data["recording"]
    seeds = tuple(_seed(seed, recording) for seed in data["seeds"])
    return ArmResult(from_dict(ArmConfig, data["arm"]), data["learning_rate"], data["params"], seeds)


def _seed(data: dict[str, Any], recording: dict[str, Any] | None) -> SeedResult:
    mine = recording if recording is not None and recording["seed"] == data["seed"] else None
    return SeedResult.from_dict({**data, "recording": mine})
