"""A worker process: reads one job per line on stdin, writes events, one JSON object per line, on stdout.

Started by `experiment.runner` as `python -m thrust_rl.experiment.worker`. Every event is a heartbeat, written between
compiled chunks by the thread that trains: a stalled computation is silent, and the parent notices.
"""

import dataclasses
import json
import os
import queue
import sys
import threading
from typing import IO, Any

from thrust_rl.envs.faults import EnvError
from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.process import PATH_VARIABLE
from thrust_rl.training.result import Progress, TrainingError


def main() -> None:
    """Serve jobs until stdin closes; then leave at once, even in the middle of one."""
    events = _private_stdout()
    _extend_path()
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()

    import jax

    _send(events, {"event": "hello", "backend": jax.default_backend(), "devices": jax.local_device_count()})
    while True:
        _serve(Job.from_dict(json.loads(jobs.get())), events)


def _serve(job: Job, events: IO[str]) -> None:
    from thrust_rl.experiment.trial import run

    def report(progress: Progress) -> None:
        _send(events, {"event": "progress", **progress._asdict()})

    try:
        results = run(job, report)
    except (TrainingError, EnvError, ValueError, TypeError) as error:
        _send(events, {"event": "error", "message": " ".join(str(error).split())})
        return
    _send(events, {"event": "result", "seeds": [dataclasses.asdict(result) for result in results]})


def _extend_path() -> None:
    """Find the modules that the parent finds, those of the current directory too."""
    for entry in os.environ.get(PATH_VARIABLE, "").split(os.pathsep):
        if entry and entry not in sys.path:
            sys.path.append(entry)


def _private_stdout() -> IO[str]:
    """Keep stdout for events alone: whatever else prints goes to stderr."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return events


def _read_jobs(jobs: "queue.Queue[str]") -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)  # the parent is gone or done with us; a running computation cannot be asked to stop


def _send(events: IO[str], event: dict[str, Any]) -> None:
    try:
        events.write(json.dumps(event) + "\n")
        events.flush()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
