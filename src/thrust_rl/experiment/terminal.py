"""What a comparison shows on a terminal while it runs: one bar per arm, and one that counts the runs."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.runner import JobEvent, usable_cores

RUNS = "runs"


def opening(jobs: Sequence[Job], *, workers: int | None, folder: Path) -> str:
    """What is about to happen, before the first half a minute in which nothing moves.

    Example:
        >>> opening([], workers=2, folder=Path("runs/mine"))
        '0 runs on up to 2 workers, written to runs/mine; compiling takes about half a minute before steps are counted'
    """
    runs, most = sum(len(job.seeds) for job in jobs), workers or usable_cores()
    return (
        f"{runs} run{'s' if runs != 1 else ''} on {'1 worker' if most == 1 else f'up to {most} workers'}, written to"
        f" {folder}; compiling takes about half a minute before steps are counted"
    )


class LiveProgress:
    """Bars fed by `Runner` events; on something that is no terminal, one line per finished job."""

    def __init__(self, console: Console, jobs: Sequence[Job]) -> None:
        """`jobs`: all there are, those included that have finished before."""
        self._console, self._started, self._kept, self._done = console, time.monotonic(), 0, 0
        self._progress = Progress(
            TextColumn("{task.description:>10}", markup=False),  # brackets in a name are no markup
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}  {task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        totals: dict[str, int] = {}
        for job in jobs:
            totals[job.arm.name] = totals.get(job.arm.name, 0) + _steps_of(job)
        self._tasks: dict[str, TaskID] = {
            arm: self._progress.add_task(arm, total=total, note="waiting", unit="steps", start=False)
            for arm, total in totals.items()
        }
        self._steps: dict[tuple[str, str, int], int] = {}
        self._num_runs = sum(len(job.seeds) for job in jobs)
        self._runs = self._progress.add_task("all", total=self._num_runs, note="", unit=RUNS)

    def __enter__(self) -> "LiveProgress":
        """Start drawing."""
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop drawing."""
        self._tell_kept()
        self._progress.stop()

    def __call__(self, event: JobEvent) -> None:
        """Show one event."""
        job, task = event.job, self._tasks[event.job.arm.name]
        match event.kind:
            case "started":
                self._tell_kept()
                self._progress.start_task(task)
                self._progress.update(task, note="compiling")
            case "progress":
                self._count(job, event.data["seeds"], event.data["steps"])
                self._progress.update(task, note=_note(event))
            case "restarted":
                again = "started over" if job.checkpoints is None else "started again from its checkpoint, if any"
                self._say(f"{job.label}: {event.data['reason']}; {again}", style="yellow")
                self._count(job, job.seeds, 0)
            case "kept":
                self._kept += len(job.seeds)
                self._finish(job)
            case "finished":
                self._finish(job)
                if not self._console.is_terminal:
                    seconds, count = time.monotonic() - self._started, f"{self._done} of {self._num_runs}"
                    said = f"{job.label}: finished after {seconds:.0f} s ({count})"
                    self._say(said)

    def _say(self, text: str, style: str | None = None) -> None:
        """One line, its names as they are."""
        self._console.print(text, style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def _finish(self, job: Job) -> None:
        self._count(job, job.seeds, _steps_of(job) // len(job.seeds))
        self._done += len(job.seeds)
        self._progress.advance(self._runs, len(job.seeds))

    def _count(self, job: Job, seeds: Sequence[int], steps: int) -> None:
        """Every one of the seeds is so far."""
        arm = job.arm.name
        self._steps.update({(arm, job.where, seed): steps for seed in seeds})
        done = sum(each for (name, _, _), each in self._steps.items() if name == arm)
        self._progress.update(self._tasks[arm], completed=done)

    def _tell_kept(self) -> None:
        """Say once how much is not run again."""
        if self._kept:
            self._console.print(f"{self._kept} of {self._num_runs} runs had finished before and are not run again")
            self._kept = 0


def _steps_of(job: Job) -> int:
    return job.config.num_updates * job.config.steps_per_update * len(job.seeds)


def _note(event: JobEvent) -> str:
    if event.data["steps"] == event.data["total_steps"]:
        return "evaluating"
    mean_return, seconds = event.data["mean_return"], max(event.data["seconds"], 1e-9)
    rate = event.data["steps"] * len(event.data["seeds"]) / seconds
    reached = "no episode yet" if mean_return is None else f"return {mean_return:6.1f}"
    return f"{reached}  {rate / 1000:5.1f}k/s"
