"""What a comparison shows on a terminal: live bars while it runs, a table when it is done."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from thrust_rl.experiment.comparison import Comparison
from thrust_rl.experiment.runner import JobEvent


class LiveProgress:
    """One bar per arm, fed by `Runner` events; on something that is no terminal, one line per finished seed."""

    def __init__(self, console: Console, arms: Sequence[str], *, steps_per_arm: int) -> None:
        """`steps_per_arm`: environment steps over all seeds of one arm."""
        self._console = console
        self._started = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description:>10}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("steps  {task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {
            arm: self._progress.add_task(arm, total=steps_per_arm, note="waiting", start=False) for arm in arms
        }
        self._steps: dict[tuple[str, int], int] = {}

    def __enter__(self) -> "LiveProgress":
        """Start drawing."""
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop drawing."""
        self._progress.stop()

    def __call__(self, event: JobEvent) -> None:
        """Show one event."""
        arm, task = event.job.arm.name, self._tasks[event.job.arm.name]
        if event.kind == "started":
            self._progress.start_task(task)
            self._progress.update(task, note="compiling")
        elif event.kind == "progress":
            for seed in event.data["seeds"]:
                self._steps[arm, seed] = event.data["steps"]
            self._progress.update(task, completed=self._done(arm), note=_note(event))
        elif event.kind == "restarted":
            self._console.print(f"{event.job.label}: {event.data['reason']}; started over", style="yellow")
            for seed in event.job.seeds:
                self._steps[arm, seed] = 0
        elif not self._console.is_terminal:
            seconds = time.monotonic() - self._started
            self._console.print(f"{event.job.label}: finished after {seconds:.0f} s")

    def _done(self, arm: str) -> int:
        return sum(steps for (name, _), steps in self._steps.items() if name == arm)


def _note(event: JobEvent) -> str:
    mean_return, seconds = event.data["mean_return"], max(event.data["seconds"], 1e-9)
    rate = event.data["steps"] * len(event.data["seeds"]) / seconds
    reached = "no episode yet" if mean_return is None else f"return {mean_return:6.1f}"
    return f"{reached}  {rate / 1000:5.1f}k/s"


def results_table(comparison: Comparison) -> Table:
    """Final and best mean return per arm, per seed and on average."""
    table = Table(title=f"{comparison.env}: mean return of the last ≤100 finished episodes", title_justify="left")
    for column in ("arm", "seed"):
        table.add_column(column)
    for column in ("final", "best", "parameters", "steps/s"):
        table.add_column(column, justify="right")
    for arm in comparison.arms:
        for seed in arm.seeds:
            cells = (_number(seed.final), _number(seed.best), "", f"{seed.steps_per_second:,.0f}")
            table.add_row(arm.arm.name, str(seed.seed), *cells)
        cells = (_number(arm.final), _number(arm.best), f"{arm.params:,}" if arm.params else "–", "")
        table.add_row(arm.arm.name, "mean", *cells, style="bold", end_section=True)
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
