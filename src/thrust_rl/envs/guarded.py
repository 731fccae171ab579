"""A Gymnasium vector environment, called so that what fails inside says at which step, and where if it is known."""

import contextlib
import itertools
import multiprocessing.connection
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array

from thrust_rl.envs.faults import EnvError, Fault, env_error, fault_of

Came = TypeVar("Came")
PATIENCE = 1.0  # seconds until a process that closed its pipe must have ended


class Guarded:
    """Calls a vector environment; a call that fails ends it, and its processes if it has some.

    Example:
        >>> import gymnasium
        >>> guarded = Guarded(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"))
        >>> guarded.call(0, guarded.vector.reset, seed=3)[0].shape
        (2, 4)
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.vector = vector
        self._failed = False

    def call(self, step: int, method: Callable[..., Came], *args: Any, **kwargs: Any) -> Came:
        """What a method of the vector environment returns.

        Raises:
            EnvError: it raised something; everything that the vector environment started has ended.
        """
        try:
            return method(*args, **kwargs)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # an environment may raise anything
            said = self._said(step, error)
            self._end()
            raise said from error

    def close(self) -> None:
        """Close it, unless a failure has ended it."""
        if not self._failed:
            self.vector.close()

    def _said(self, step: int, error: BaseException) -> EnvError:
        inner = self.vector.unwrapped
        if isinstance(error, Fault) and error.index is not None:
            return env_error(error.index, step, fault_of(error))
        if isinstance(inner, SyncVectorEnv):
            raised_in = _raised_in(inner, error)
            if raised_in is not None:
                return env_error(raised_in, step, fault_of(error))
            misfit = _misfit(inner)
            if misfit is not None:
                return env_error(misfit, step, f"its observation has not the shape or structure of its space: {error}")
        if isinstance(inner, AsyncVectorEnv):
            raised = _dropped(inner)
            if len(raised) == 1:
                return env_error(raised[0], step, fault_of(error))
            if raised:  # Gymnasium passes one of their errors on, and not whose it is
                all_of_them = ", ".join(map(str, raised))
                return EnvError(f"environments {all_of_them} at step {step} all failed; one of them: {fault_of(error)}")
            ending = multiprocessing.connection.wait([process.sentinel for process in inner.processes], PATIENCE)
            for i, process in enumerate(inner.processes):
                if process.sentinel in ending:
                    process.join(PATIENCE)
                    return env_error(i, step, f"its process ended with exit status {process.exitcode}")
        which = f"{type(inner).__name__} does not tell which of them it was"
        return EnvError(f"one of {self.vector.num_envs} environments at step {step}: {fault_of(error)} ({which})")

    def _end(self) -> None:
        """Close it; processes of which one does not answer are killed, since closing would wait for it forever."""
        self._failed, inner = True, self.vector.unwrapped
        if isinstance(inner, AsyncVectorEnv) and not _dropped(inner):
            inner.closed = True
            for process in inner.processes:
                process.kill()
                process.join()
        with contextlib.suppress(Exception):  # what failed may fail at this too
            self.vector.close()


def _raised_in(vector: SyncVectorEnv, error: BaseException) -> int | None:
    """Which environment it was calling, by the counter of the loop that the error came through; None if none."""
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)]
    for caller, called in itertools.pairwise(frames):
        i = caller.get("i")
        if caller.get("self") is vector and isinstance(i, int) and called.get("self") is vector.envs[i]:
            return i
    return None


def _misfit(vector: SyncVectorEnv) -> int | None:
    """An environment whose last observation does not go into an array of its space."""
    space = vector.single_observation_space
    for i, obs in enumerate(vector._env_obs):
        try:
            concatenate(space, [obs], create_empty_array(space, 1))
        except Exception:  # noqa: BLE001  # in whatever way
            return i
    return None


def _dropped(vector: AsyncVectorEnv) -> list[int]:
    """Environments that raised: Gymnasium puts None in the place of their pipes."""
    pipes: list[Any] = list(vector.parent_pipes)
    return [i for i, pipe in enumerate(pipes) if pipe is None]
