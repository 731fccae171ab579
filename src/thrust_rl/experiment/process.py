"""One worker process as its parent sees it: started, given a job, listened to, ended."""

import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

from thrust_rl.experiment.devices import environment_of
from thrust_rl.experiment.jobs import Job

PATH_VARIABLE = "THRUST_MODULE_PATH"  # where a worker looks for modules, besides where it looks anyway


@dataclasses.dataclass(frozen=True)
class Patience:
    """How long a worker may be silent before it counts as stalled, and how often its job is tried."""

    first: float = 300.0
    """Seconds from a job's start to its first progress: importing and compiling."""
    later: float = 60.0
    """Seconds between two signs of progress, at least; a chunk normally takes one."""
    factor: float = 20.0
    """Silence of this many times the longest gap seen in the job is tolerated too."""
    attempts: int = 3
    """Times a job is started before giving up."""

    def after(self, seconds: float) -> "Patience":
        """This much at least, beyond silences of so many seconds that somebody else puts an end to."""
        return dataclasses.replace(self, first=self.first + seconds, later=self.later + seconds)


class WorkerProcess:
    """One process and the job it is on. Its events arrive in the shared queue as `(worker, event)`."""

    def __init__(
        self,
        command: Sequence[str],
        inbox: "queue.Queue[tuple[WorkerProcess, dict[str, Any]]]",
        *,
        device: int | None = None,
    ) -> None:
        """Start the process with a thread pool of one and, if told which, one accelerator; ours is left alone."""
        own = {"NPROC": "1", PATH_VARIABLE: os.pathsep.join([os.getcwd(), *sys.path])}
        if device is not None:
            own |= environment_of(device, os.environ)
        self.device = device
        self.complaints: IO[bytes] = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            env={**os.environ, **own},
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends its workers
        )
        self.job: Job | None = None
        self.heard = time.monotonic()
        self.longest_gap: float | None = None  # None until the job's first progress
        self.greeted = False
        self.compiled: set[str] = set()
        self._inbox = inbox
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = _as_event(line)
            if event is not None:
                self._inbox.put((self, event))
        self._inbox.put((self, {"event": "gone"}))

    def start(self, job: Job) -> None:
        """Hand it a job; a worker that has just died is noticed by its `gone` event."""
        assert self.process.stdin is not None
        self.job, self.heard, self.longest_gap = job, time.monotonic(), None
        self.compiled.add(job.program)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(job.to_dict()) + "\n")
            self.process.stdin.flush()

    def beat(self) -> None:
        """Note a sign of progress."""
        gap, self.heard = time.monotonic() - self.heard, time.monotonic()
        self.longest_gap = 0.0 if self.longest_gap is None else max(gap, self.longest_gap)

    def silent_too_long(self, patience: Patience) -> bool:
        """Whether its silence means that it is stalled."""
        silence = time.monotonic() - self.heard
        if self.longest_gap is None:
            return silence > patience.first
        return silence > max(patience.later, patience.factor * self.longest_gap)

    def end(self) -> str:
        """Kill the process and its children; the last line it complained with. It holds nothing worth saving."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # with the processes that step its environments
        self.process.wait()
        self._listener.join()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream and stream.close()
        self.complaints.seek(0)
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        self.complaints.close()
        return lines[-1] if lines else f"exit status {self.process.returncode}"


def _as_event(line: str) -> dict[str, Any] | None:
    """The event on a line; None for what something else printed before the worker made stdout its own."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None
