"""A short while in which Ctrl-C waits: an interrupt between a process's start and our knowing it leaves it behind."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Answer a signal after the block instead of in the middle of it; elsewhere than in the main thread none comes.

    Example:
        with held_back():
            workers.append(WorkerProcess(command, inbox))  # started and known, or neither
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, Any]] = []
    before = {number: handler for number in NUMBERS if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for came_first, frame in came[:1]:
        before[signal.Signals(came_first)](came_first, frame)
