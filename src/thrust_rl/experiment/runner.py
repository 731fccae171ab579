"""Runs jobs on worker processes, one per core, and never hangs: a silent worker is replaced.

XLA's CPU thread pool can stall for good (docs/decisions/0002). A pool of one thread does not, and the small matrices of
these networks gain nothing from more; so each worker gets `NPROC=1` in its own environment, and several
workers use the cores. On an accelerator one worker runs all seeds of an arm in one program; where there are several,
each has a worker, which sees no other (`experiment.devices`).
"""

import dataclasses
import os
import queue
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from thrust_rl.experiment.devices import num_workers_on, spread
from thrust_rl.experiment.interrupts import held_back
from thrust_rl.experiment.jobs import Job, SeedResult
from thrust_rl.experiment.process import Patience, WorkerProcess

EventKind = Literal["started", "progress", "finished", "restarted", "kept"]

POLL_SECONDS = 0.2
HELD_UP_SECONDS = 1.0  # longer than this between two looks at the workers, and it was we who were not there

WORKER_COMMAND = (sys.executable, "-m", "thrust_rl.experiment.worker")


class RunError(RuntimeError):
    """A job could not be finished; the message says which and why."""


@dataclasses.dataclass(frozen=True)
class JobEvent:
    """Something a listener may want to show."""

    kind: EventKind
    job: Job
    data: dict[str, Any] = dataclasses.field(default_factory=dict)
    """progress: the fields of `training.train.Progress`; restarted: the `reason`; kept: it had finished before."""


class Runner:
    """Runs jobs to the end, whatever happens to the workers; `close` (or leaving the block) ends every process.

    Example:
        with Runner(num_workers=2) as runner:
            for job, seeds in runner.run(jobs): ...
    """

    def __init__(
        self,
        *,
        num_workers: int | None = None,
        patience: Patience | None = None,
        command: Sequence[str] = WORKER_COMMAND,
        listener: Callable[[JobEvent], None] | None = None,
    ) -> None:
        """`num_workers` None: one per core this process may use, or one per accelerator."""
        self._asked = num_workers
        self._num_workers = num_workers or usable_cores()
        self._patience = patience or Patience()
        self._command = command
        self._tell = listener or (lambda event: None)
        self._workers: list[WorkerProcess] = []
        self._inbox: queue.Queue[tuple[WorkerProcess, dict[str, Any]]] = queue.Queue()
        self._pending: list[Job] = []
        self._attempts: dict[str, int] = {}
        self._looked = time.monotonic()

    def __enter__(self) -> "Runner":
        """The runner itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End every process."""
        self.close()

    def close(self) -> None:
        """End every worker at once."""
        while self._workers:
            self._workers.pop().end()

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[SeedResult]]]:
        """Yield each job's results as it finishes, in the order of finishing.

        Args:
            jobs: one seed each; on an accelerator those of one arm are run together.

        Raises:
            RunError: a job failed, or its worker died or stalled `attempts` times.
        """
        self._pending, left = list(jobs), sum(len(job.seeds) for job in jobs)
        self._looked = time.monotonic()
        self._start_worker()
        while left:
            finished = self._next_finished()
            if finished is not None:
                left -= len(finished[1])
                yield finished
                self._tell(JobEvent("finished", finished[0]))  # not before the caller has it: Ctrl-C may come any time

    def _next_finished(self) -> tuple[Job, list[SeedResult]] | None:
        """Wait a moment for an event and act on it."""
        try:
            worker, event = self._inbox.get(timeout=POLL_SECONDS)
        except queue.Empty:
            self._replace_stalled()
            return None
        if worker not in self._workers:
            return None  # last words of a worker that was ended
        match event["event"]:
            case "hello":
                self._greet(worker, event["backend"], event.get("devices", 1))
            case "progress":
                worker.beat()
                self._report("progress", worker, event)
            case "error":
                raise RunError(f"{self._job_of(worker).label}: {event['message']}")
            case "gone":
                self._lose(worker)
            case "result":
                return self._finish(worker, event)
        self._replace_stalled()
        return None

    def _greet(self, worker: WorkerProcess, backend: str, devices: int) -> None:
        """Give a new worker its first job; the first worker's backend decides how the jobs are cut."""
        worker.greeted = True
        if backend != "cpu" and worker.device is None:
            self._num_workers = num_workers_on(backend, devices, self._asked)
            self._pending = spread(self._pending, self._num_workers)
            if self._num_workers > 1:
                self._share_out(worker)
                return
        self._give(worker)
        starting = sum(not other.greeted for other in self._workers)
        for _ in range(min(self._num_workers - len(self._workers), len(self._pending) - starting)):
            self._start_worker()

    def _share_out(self, worker: WorkerProcess) -> None:
        """Begin anew with one worker per accelerator, in place of the first, which holds them all."""
        self._workers.remove(worker)
        worker.end()
        self._num_workers = min(self._num_workers, len(self._pending))
        for device in range(self._num_workers):
            self._start_worker(device)

    def _finish(self, worker: WorkerProcess, event: dict[str, Any]) -> tuple[Job, list[SeedResult]]:
        job, worker.job = self._job_of(worker), None
        self._give(worker)
        return job, [SeedResult.from_dict(data) for data in event["seeds"]]

    def _start_worker(self, device: int | None = None) -> None:
        with held_back():
            self._workers.append(WorkerProcess(self._command, self._inbox, device=device))

    def _give(self, worker: WorkerProcess) -> None:
        """Hand over the next job, rather of an arm it has compiled, then of one that nobody has."""
        if not self._pending:
            return
        taken = {name for other in self._workers for name in other.compiled}

        def preference(job: Job) -> int:
            return 0 if job.program in worker.compiled else 1 if job.program not in taken else 2

        job = min(self._pending, key=preference)
        self._pending.remove(job)
        worker.start(job)
        self._report("started", worker, {})

    def _replace_stalled(self) -> None:
        now = time.monotonic()
        away, self._looked = now - self._looked, now
        if away > HELD_UP_SECONDS:  # suspended, or a slow listener: events may be waiting, so nobody counts as silent
            for worker in self._workers:
                worker.heard += away
            return
        for worker in list(self._workers):
            waiting = worker.job is not None or not worker.greeted
            if waiting and worker.silent_too_long(self._patience):
                self._replace(worker, f"no sign of progress for {time.monotonic() - worker.heard:.0f} s")

    def _lose(self, worker: WorkerProcess) -> None:
        """Replace a worker that died, unless there was nothing left for it to do."""
        if worker.greeted and worker.job is None:
            self._workers.remove(worker)
            worker.end()
        else:
            alone = worker.job is not None and not worker.job.env.is_compiled and not worker.job.env.workers
            hint = "; if an environment ends its own process, --env-workers 1 says which one and when" if alone else ""
            self._replace(worker, "its worker process died", hint)

    def _replace(self, worker: WorkerProcess, reason: str, hint: str = "") -> None:
        """End a worker and start its job over on a new one: the job is deterministic, so nothing is lost but time."""
        self._workers.remove(worker)
        reason = f"{reason} ({worker.end()})"
        label = worker.job.label if worker.job else "start of a worker"
        self._attempts[label] = self._attempts.get(label, 1) + 1
        if self._attempts[label] > self._patience.attempts:
            raise RunError(f"{label}: {reason}; gave up after {self._patience.attempts} attempts{hint}")
        if worker.job is not None:
            self._report("restarted", worker, {"reason": reason})
            self._pending.insert(0, worker.job)
        self._start_worker(worker.device)

    def _report(self, kind: EventKind, worker: WorkerProcess, data: dict[str, Any]) -> None:
        self._tell(JobEvent(kind, self._job_of(worker), data))

    @staticmethod
    def _job_of(worker: WorkerProcess) -> Job:
        assert worker.job is not None
        return worker.job


def usable_cores() -> int:
    """Cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
