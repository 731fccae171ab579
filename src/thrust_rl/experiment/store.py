"""The folder of a comparison: finished runs, kept one by one, so that an interrupted comparison goes on."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thrust_rl.config import ConfigError, require
from thrust_rl.differences import changes
from thrust_rl.experiment.beforehand import spans
from thrust_rl.experiment.comparison import Comparison
from thrust_rl.experiment.jobs import EvalConfig, Job, SeedResult
from thrust_rl.experiment.schema import RESULT_FILE, plain
from thrust_rl.experiment.settings import digest_of, settings_of, settings_of_run
from thrust_rl.experiment.verdict import SECOND_LOOK
from thrust_rl.files import read_json, slug, write_json
from thrust_rl.training.checkpoint import SUFFIX, read_checkpoint
from thrust_rl.training.keeping import Checkpoints

RUN, PLAN = "thrust-rl/run", "thrust-rl/plan"
VERSION = 1
PLAN_FILE = "plan.json"


class RunStore:
    """Finished runs under `folder/runs`, each a file that is whole or not there.

    Args:
        folder: of the comparison; it exists.
        planned: the comparison before any run.
        fresh: begin anew: what earlier runs left is deleted.

    Raises:
        ConfigError: the folder holds runs made with other settings; those that differ are named.
    """

    def __init__(self, folder: Path, planned: Comparison, *, fresh: bool = False) -> None:
        self._runs, self._versions = folder / "runs", planned.versions
        self._looks: list[list[int]] = []  # the seeds of every time that all runs had finished
        if fresh:
            _clear(self._runs)
        else:
            self._looks = _require_same(folder, self._runs / PLAN_FILE, _plan_data(planned)).get("looks", [])
        self._planned = planned

    def begin(self) -> None:
        """Note what the folder is for."""
        self._runs.mkdir(exist_ok=True)
        write_json(self._runs / PLAN_FILE, {**_plan_data(self._planned), "looks": self._looks})

    def looked(self) -> None:
        """Note that all runs have finished, so that whoever adds seeds has seen a verdict."""
        if (seeds := list(self._planned.seeds)) not in self._looks:
            self._looks.append(seeds)
            self.begin()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader has to know of verdicts that this folder gave before, with other seeds."""
        earlier = [spans(look) for look in self._looks if look != list(self._planned.seeds)]
        return (f"Decided before with seeds {'; and with '.join(earlier)}: {SECOND_LOOK}.",) if earlier else ()

    def find(self, job: Job, seed: int) -> SeedResult | None:
        """The result of a run that finished before.

        Raises:
            ConfigError: its file is damaged, or was made with other settings.
        """
        path = self._path(job, seed)
        if not path.exists():
            return None
        remedy = "delete it, and the run is done again"
        data = read_json(path, schema=RUN, version=VERSION, remedy=remedy)
        settings = settings_of_run(job, seed, self._versions)
        try:
            fits, result = data["digest"] == digest_of(settings), SeedResult.from_dict(data["result"])
            require(not fits or data["check"] == digest_of(data["result"]), "its content was changed")
        except (ConfigError, KeyError, TypeError) as error:
            raise ConfigError(f"{path} is damaged ({error}): {remedy}") from error
        if not fits:
            changed = changes(data["settings"], plain(settings))
            raise ConfigError(f"{path} was made with other settings ({changed}): {remedy}")
        most = job.evaluation.max_steps
        require(
            result.longest <= most,  # of a release in which this was no setting
            f"{path} has an evaluation episode of {result.longest} steps, and eval_steps is {most}: {remedy}",
        )
        return result

    def keep(self, job: Job, result: SeedResult) -> None:
        """Write a finished run."""
        settings, data = settings_of_run(job, result.seed, self._versions), dataclasses.asdict(result)
        written = {"digest": digest_of(settings), "check": digest_of(data), "settings": settings, "result": data}
        write_json(self._path(job, result.seed), {"schema": RUN, "schema_version": VERSION, **written}, indent=None)

    def checkpointed(self, job: Job, *, every: int) -> Job:
        """The job, with its runs kept here, beside their results, every so many steps.

        Raises:
            ConfigError: what is kept there of one of them is damaged.
        """
        checkpoints = Checkpoints(str(self._runs.absolute()), every, self._name(job))
        for path in (checkpoints.path(job.arm.name, seed=seed) for seed in job.seeds):
            if path.exists():
                read_checkpoint(path)
        return dataclasses.replace(job, checkpoints=checkpoints)

    def _path(self, job: Job, seed: int) -> Path:
        return self._runs / f"{self._name(job)}-{seed}.json"

    @staticmethod
    def _name(job: Job) -> str:
        """Of files, before the seed."""
        condition = "twin" if job.env.twin else "task"
        return f"{slug(dataclasses.replace(job.env, twin=False).label)}-{condition}-{slug(job.arm.name)}"


def split_jobs(jobs: Sequence[Job], store: "RunStore | None") -> tuple[list[tuple[Job, SeedResult]], list[Job]]:
    """What has finished before, and what is left to do."""
    kept: list[tuple[Job, SeedResult]] = []
    left: list[Job] = []
    for job in jobs:
        results = [None if store is None else store.find(job, seed) for seed in job.seeds]
        found = [result for result in results if result is not None]
        if len(found) == len(job.seeds):
            kept += [(job, result) for result in found]
        else:
            left.append(job)
    return kept, left


def _clear(runs: Path) -> None:
    """Delete what earlier comparisons left, and nothing else that may lie there."""
    if (runs / PLAN_FILE).exists():
        for path in (*runs.glob("*.json"), *runs.glob(f"*{SUFFIX}"), *runs.glob(f".*{SUFFIX}.*")):
            path.unlink()


def _plan_data(planned: Comparison) -> dict[str, Any]:
    settings = plain({**settings_of(planned), "first_seed": planned.seeds[0], "versions": planned.versions})
    return {"schema": PLAN, "schema_version": VERSION, "settings": settings}


def _require_same(folder: Path, path: Path, now: dict[str, Any]) -> dict[str, Any]:
    """What the folder says it is for, which must be this; empty where it says nothing."""
    if not path.exists():
        require(
            not (folder / RESULT_FILE).exists(),
            f"out is {folder}: it holds a {RESULT_FILE} without the runs it came from, so this comparison cannot go on"
            " from there; give another folder, or --fresh to replace it",
        )
        return {}
    remedy = "give another folder, or --fresh to start over"
    before = read_json(path, schema=PLAN, version=VERSION, remedy=remedy)
    then = before.get("settings", {})
    then["evaluation"] = {"max_steps": EvalConfig.max_steps, **then.get("evaluation", {})}  # since it is a setting
    changed = changes(then, now["settings"])
    require(not changed, f"out is {folder}: it holds runs made with other settings ({changed}); {remedy}")
    return before
