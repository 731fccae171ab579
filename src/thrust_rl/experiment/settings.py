"""What decides the numbers of a comparison, as JSON types."""

import dataclasses
import hashlib
import json
from typing import Any

from thrust_rl.experiment.comparison import Comparison
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, Job
from thrust_rl.experiment.schema import arm_data, plain


def settings_of(comparison: Comparison) -> dict[str, Any]:
    """Everything but the seeds: which of them have run changes no other."""
    return {
        "config": dataclasses.asdict(comparison.config),
        "evaluation": dataclasses.asdict(comparison.evaluation),
        "tasks": {
            task.label: {
                condition.name: {
                    "environment": _env_data(condition.environment),
                    "arms": {arm.name: arm_data(arm.arm) for arm in condition.arms},
                }
                for condition in task.conditions
            }
            for task in comparison.tasks
        },
    }


def settings_of_run(job: Job, seed: int, versions: dict[str, str]) -> dict[str, Any]:
    """Everything that decides the result of one seed."""
    return {
        "environment": _env_data(job.env),
        "arm": arm_data(job.arm),
        "config": dataclasses.asdict(job.config),
        "evaluation": _evaluation_data(job.evaluation),
        "seed": seed,
        "recorded": job.recorded == seed,
        "versions": versions,
    }


def digest_of(data: dict[str, Any]) -> str:
    """A short text that is equal for equal data."""
    return hashlib.sha256(json.dumps(plain(data), sort_keys=True).encode()).hexdigest()


def _env_data(spec: EnvSpec) -> dict[str, Any]:
    data = {key: value for key, value in spec.to_dict().items() if key not in ("workers", "step_timeout")}  # no number
    if data["return_range"] is None:
        del data["return_range"]  # folders of earlier releases have none, and go on
    return data


def _evaluation_data(evaluation: EvalConfig) -> dict[str, Any]:
    data = dataclasses.asdict(evaluation)
    if evaluation.max_steps == EvalConfig.max_steps:
        del data["max_steps"]  # likewise
    return data
