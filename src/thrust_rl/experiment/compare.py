"""`compare`: train several arms on the identical stream, score them on fresh episodes, and say whether memory helps."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from thrust_rl.config import ArmConfig, TrainConfig, require
from thrust_rl.envs.host import OnEnvError
from thrust_rl.envs.workers import STEP_TIMEOUT
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult, TaskResult
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, Job, SeedResult
from thrust_rl.experiment.plan import Options, jobs_of, plan
from thrust_rl.experiment.process import Patience
from thrust_rl.experiment.runner import JobEvent, Runner
from thrust_rl.experiment.scale import MIN_EFFECT
from thrust_rl.experiment.schema import RESULT_FILE
from thrust_rl.experiment.store import RunStore, split_jobs
from thrust_rl.files import writable_folder, write_json
from thrust_rl.training.keeping import Checkpoints

Finished = list[tuple[Job, SeedResult]]


def compare(
    env: str | EnvSpec | Sequence[str | EnvSpec],
    *,
    arms: Sequence[str | ArmConfig] = ("lstm", "mlp"),
    seeds: int = 10,
    seed: int = 0,
    config: TrainConfig | None = None,
    env_params: Mapping[str, Any] | None = None,
    observe: str | Sequence[str] = (),
    env_workers: int = 0,
    on_env_error: OnEnvError = "stop",
    check_range: bool = True,
    step_timeout: float = STEP_TIMEOUT,
    twin: bool = False,
    previous_action: bool = False,
    previous_reward: bool = False,
    match_params: bool = False,
    eval_episodes: int = 100,
    eval_steps: int = EvalConfig.max_steps,
    min_effect: float = MIN_EFFECT,
    return_range: tuple[float, float] | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    checkpoint_every: int | None = None,
    workers: int | None = None,
    listener: Callable[[JobEvent], None] | None = None,
    command: str | None = None,
) -> Comparison:
    """Train every arm with every seed on the same environment streams, and score it on the same fresh episodes.

    The runs are spread over worker processes, one per core. Ctrl-C ends them and returns what was finished,
    with `status` "interrupted"; the same call with the same `out` goes on from there.

    Args:
        env: name of an environment (see `envs.named.make`), or several: each is a task with a verdict of its own.
        arms: names (see `experiment.arms.arm_named`) or `ArmConfig`s, at least one.
        seeds: how many seeds each arm gets: `seed`, `seed + 1`, …
        seed: the first seed.
        config: budget, window and PPO settings.
        env_params: parameters of the environment that differ from their defaults.
        observe: observation models in front of the environment, as texts such as "mask:1,3".
        env_workers: processes that step the environments of a run which are not compiled.
        on_env_error: "stop" ends everything when an environment fails, "restart" puts a new one in its place.
        check_range: an observation outside its space is such a failure.
        step_timeout: seconds after which a step of a process of `env_workers` is such a failure.
        twin: run all arms on the fully observable twin too.
        previous_action: feed every arm its previous action.
        previous_reward: feed every arm its previous reward.
        match_params: give arms without memory about as many parameters as the first with memory.
        eval_episodes: fresh episodes that score a trained policy.
        eval_steps: after which such an episode is cut, if it has not ended; the report says so.
        min_effect: smallest effect of interest, as a share of the return scale.
        return_range: lowest and highest return of an episode, where they are not known of the environments.
        out: folder for `result.json` and the report; created if needed. None writes nothing.
        fresh: start over where `out` holds earlier runs, which are deleted.
        checkpoint_every: environment steps after which a run is written to `out`, as also at its end and at a fault; an
            interrupted one goes on from there (see `train`). None writes none.
        workers: worker processes; None is one per core this process may use.
        listener: told of every start, progress, restart and finish.
        command: what to note as the shell command that repeats this.

    Raises:
        TypeError: an environment is given otherwise than by name.
        ConfigError: a setting breaks a rule; nothing has been run or written.
        RunError: a run failed; what had finished before is in `out` as an interrupted comparison.

    Example:
        >>> from thrust_rl import TrainConfig, compare
        >>> tiny = TrainConfig(total_timesteps=2048, num_envs=4, num_steps=64)
        >>> compare("FlickeringCartPole-v0", arms=["mlp"], seeds=1, config=tiny).arm("mlp").params
        17539
    """
    options = Options(
        arms=arms,
        seeds=seeds,
        seed=seed,
        config=config,
        env_params=env_params,
        observe=observe,
        env_workers=env_workers,
        on_env_error=on_env_error,
        check_range=check_range,
        step_timeout=step_timeout,
        twin=twin,
        previous_action=previous_action,
        previous_reward=previous_reward,
        match_params=match_params,
        eval_episodes=eval_episodes,
        eval_steps=eval_steps,
        min_effect=min_effect,
        return_range=return_range,
    )
    planned = dataclasses.replace(plan(env, options), command=command)
    return run(planned, out=out, fresh=fresh, checkpoint_every=checkpoint_every, workers=workers, listener=listener)


def run(
    planned: Comparison,
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    checkpoint_every: int | None = None,
    workers: int | None = None,
    listener: Callable[[JobEvent], None] | None = None,
    starting: Callable[[], None] | None = None,
) -> Comparison:
    """Run what was planned, save and return what came out; arguments and errors are those of `compare`.

    `starting` is called once, when everything has been checked and before anything runs.
    """
    require(workers is None or workers >= 1, f"workers is {workers}: it must be at least 1")
    if checkpoint_every is not None:
        require(out is not None, "checkpoint_every is given without out: name the folder for the checkpoints")
        Checkpoints("", checkpoint_every)  # checks it before anything is made
    started, tell = time.monotonic(), listener or (lambda event: None)
    folder = writable_folder(out) if out is not None else None
    store = RunStore(folder, planned, fresh=fresh) if folder is not None else None
    finished, left = split_jobs(jobs_of(planned), store)
    if store is not None:
        if checkpoint_every is not None:
            left = [store.checkpointed(job, every=checkpoint_every) for job in left]
        store.begin()
        planned = dataclasses.replace(planned, notes=(*planned.notes, *store.notes))
    if starting is not None:
        starting()
    complete, failed = False, True
    try:
        for job, _ in finished:
            tell(JobEvent("kept", job))
        with Runner(num_workers=workers, patience=_patience(planned), listener=listener) as runner:
            for job, results in runner.run(left):
                for result in results:
                    if store is not None:
                        store.keep(job, result)
                    finished.append((job, result))
        complete, failed = True, False
    except KeyboardInterrupt:
        failed = False
    finally:
        seconds = round(time.monotonic() - started, 1)
        comparison = assembled(planned, finished, complete=complete, seconds=seconds)
        if folder is not None and (finished or not (failed or (folder / RESULT_FILE).exists())):
            save(comparison, folder)  # an earlier result is not replaced by an empty one; if all failed there is none
        if store is not None and complete:
            store.looked()
    return comparison


def _patience(planned: Comparison) -> Patience:
    """Longer than a step may take in the processes of `env_workers`, which notice by themselves what hangs there."""
    specs = [condition.environment for task in planned.tasks for condition in task.conditions]
    return Patience().after(max((spec.step_timeout for spec in specs if spec.workers), default=0.0))


def assembled(planned: Comparison, finished: Finished, *, complete: bool, seconds: float) -> Comparison:
    """The plan with what has finished filled in, in the order of the seeds."""

    def arm_with(condition: ConditionResult, arm: ArmResult) -> ArmResult:
        mine = [result for job, result in finished if job.env == condition.environment and job.arm.name == arm.name]
        return dataclasses.replace(arm, seeds=tuple(sorted(mine, key=lambda result: result.seed)))

    def condition_with(condition: ConditionResult) -> ConditionResult:
        return dataclasses.replace(condition, arms=tuple(arm_with(condition, arm) for arm in condition.arms))

    tasks = tuple(TaskResult(task.label, tuple(map(condition_with, task.conditions))) for task in planned.tasks)
    return dataclasses.replace(planned, tasks=tasks, status="complete" if complete else "interrupted", seconds=seconds)


def save(comparison: Comparison, folder: Path) -> list[Path]:
    """Write `result.json` and the report; the paths of what was written, the result first."""
    result = folder / RESULT_FILE
    write_json(result, comparison.to_dict())  # first: an impatient second Ctrl-C may cut the rest off
    return [result, *write_figures(comparison, folder)]


def save_whole(comparison: Comparison, folder: Path) -> None:
    """The same, but nothing is replaced before everything is written: what cannot be reported on stays as it was."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".thrust-report-") as beside:
        for path in save(comparison, Path(beside)):
            os.replace(path, folder / path.name)


def write_figures(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the report; the paths of what was written."""
    from thrust_rl.experiment.report import write_report  # it plots, which takes long to import

    return list(write_report(comparison, folder))
