"""Environments in worker processes: one of Gymnasium's `AsyncVectorEnv` for each, so that one alone can be replaced."""

import contextlib
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from numpy.typing import NDArray

from thrust_rl.config import require
from thrust_rl.envs.batch import Frames, StepResult
from thrust_rl.envs.bundle import BundleMaker, mapped_place
from thrust_rl.envs.faults import EnvError, env_error
from thrust_rl.envs.host import HostBatch
from thrust_rl.envs.hosted import Hosted
from thrust_rl.envs.spaces import ObsSpec

STEP_TIMEOUT = 300.0  # seconds, by default
CLOSE_TIMEOUT = 5.0  # seconds
START_TIMEOUT = 300.0  # seconds, to build environments and begin them
MAX_DEATHS = 100  # of one worker: then it is no accident
MAX_DEATHS_IN_A_ROW = 3  # without a step in between: then it is none either
FAILURES = (EOFError, OSError, multiprocessing.TimeoutError, gymnasium.error.Error)  # of a process that is talked to


class SteppedByWorkers:
    """`num_envs` environments in `workers` processes; the same numbers as in one process.

    Args:
        make_batch: builds the environments from an index on: `make_batch(first_index, count)`.
        spec: what an observation is made of.
        action_space: of one environment.
        num_envs: how many.
        workers: processes, at most as many; each gets a run of neighbouring environments, the first ones one more where
            they cannot have as many each.
        step_timeout: seconds; a step that takes longer counts as hung.
        restart: replace a process that dies or hangs; the episodes of its environments count as truncated.
    """

    def __init__(
        self,
        make_batch: Callable[[int, int], HostBatch],
        spec: ObsSpec,
        action_space: gymnasium.Space[Any],
        *,
        num_envs: int,
        workers: int,
        step_timeout: float,
        restart: bool,
    ) -> None:
        runs = np.array_split(np.arange(num_envs), workers)
        makers = [BundleMaker(make_batch, spec.tree, action_space, first=int(run[0]), count=len(run)) for run in runs]
        self._workers = [_Worker(make, restart=restart) for make in makers]
        self._spec, self._step_timeout, self._steps = spec, step_timeout, 0
        self._last: Any = None  # what came of the last step

    def begin(self, seed: int) -> Frames:
        """Begin every environment."""
        with self._ending_all(), ThreadPoolExecutor(len(self._workers)) as pool:  # each waits for its process
            self._last = self._joined(list(pool.map(lambda worker: worker.begin(seed, self._steps), self._workers)))
        return self._frames("next", "blank", self._last)

    def step(self, actions: NDArray[Any]) -> Hosted:
        """One step of every environment."""
        self._steps += 1
        with self._ending_all():
            for worker in self._workers:
                worker.send(actions[worker.whose])
            deadline = time.monotonic() + self._step_timeout
            came = [worker.receive(self._steps, deadline) for worker in self._workers]
            came = [self._cut(i) if what is None else what for i, what in enumerate(came)]
        obs = self._last = self._joined(came)
        successors = self._frames("successor", "successor_blank", obs)
        terminated, truncated = obs["terminated"].astype(bool), obs["truncated"].astype(bool)
        result = StepResult(successors.obs, obs["reward"], terminated, truncated, successors.info)
        return Hosted(result, self._frames("next", "blank", obs), result.over, ())

    def restarts(self) -> int:
        """How many environments failed, or were in a process that did, and were replaced."""
        return sum(int(worker.replaced.sum()) for worker in self._workers)

    def close(self) -> None:
        """Let the environments close, then end every process."""
        for worker in self._workers:
            worker.ask_to_close()
        for worker in self._workers:
            worker.end(patience=CLOSE_TIMEOUT)

    @contextlib.contextmanager
    def _ending_all(self) -> Any:
        """When one process fails for good, end them all."""
        try:
            yield
        except EnvError:
            for worker in self._workers:
                worker.end()
            raise

    def _cut(self, i: int) -> Any:
        """What came from a process that was replaced: its episodes were cut where their last frames were seen."""
        worker = self._workers[i]
        begun = worker.begin_again(self._steps)
        last = jax.tree.map(lambda leaf: leaf[worker.whose], {name: self._last[name] for name in ("next", "blank")})
        nothing = np.zeros(worker.make.count, np.uint8)
        flags = {"terminated": nothing, "truncated": nothing + 1, "reward": nothing.astype(np.float32)}
        return {**begun, **flags, "successor": last["next"], "successor_blank": last["blank"]}

    @staticmethod
    def _joined(came: Sequence[Any]) -> Any:
        """One tree of arrays `[env, ...]`; copied, since processes write into theirs again."""
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *came)

    def _frames(self, name: str, blank: str, obs: Any) -> Frames:
        """In the types of the spec."""
        values = [
            np.asarray(leaf).astype(part.dtype)
            for part, leaf in zip(self._spec.parts, self._spec.leaves(obs[name]), strict=True)
        ]
        return Frames(self._spec.treedef.unflatten(values), {"blank": obs[blank].astype(bool)})


def require_environments_for(workers: int, num_envs: int) -> None:
    """Check that every process has an environment to step.

    Raises:
        ConfigError: there are more processes than environments.
    """
    require(
        workers <= num_envs,
        f"env_workers is {workers} and num_envs is {num_envs}: every process needs an environment to step;"
        f" set env_workers to at most {num_envs}",
    )


class _Worker:
    """A run of neighbouring environments and the process they live in, which may be another one later.

    Args:
        make: builds their bundle.
        restart: whether a process that fails is replaced.
    """

    def __init__(self, make: BundleMaker, *, restart: bool) -> None:
        self.make, self._restart = make, restart
        self.replaced = np.zeros(make.count, np.int32)  # how often each environment was
        self._deaths, self._in_a_row, self._seed = 0, 0, 0
        self._vector: AsyncVectorEnv | None = None
        self._place: NDArray[np.int32] = np.zeros(1, np.int32)  # of the environment that it is at
        self._sent = False

    @property
    def whose(self) -> slice:
        """Which environments are its own."""
        return slice(self.make.first, self.make.first + self.make.count)

    def begin(self, seed: int, steps: int) -> Any:
        """Begin its environments, new ones, after this many steps; a process is started where there is none.

        Raises:
            EnvError: they cannot begin.
        """
        self._seed = seed
        while True:
            try:
                return self._begun(steps)
            except FAILURES as error:
                self._bury(error, steps)

    def begin_again(self, steps: int) -> Any:
        """Begin in a new process, in the place of one that failed."""
        return self.begin(self._seed, steps)

    def send(self, actions: NDArray[Any]) -> None:
        """Ask for a step."""
        assert self._vector is not None, "begin() comes first"
        with contextlib.suppress(OSError):  # it died between two steps: `receive` says so
            self._vector.step_async(actions[None])
            self._sent = True

    def receive(self, step: int, deadline: float) -> Any:
        """What came of the step; None if the process failed and shall be replaced.

        Raises:
            EnvError: an environment failed, or the process died or hangs, for good.
        """
        assert self._vector is not None
        try:
            if not self._sent:
                raise EOFError
            obs = self._vector.step_wait(timeout=max(deadline - time.monotonic(), 0.0))[0]
        except FAILURES as error:
            self._bury(error, step)
            return None
        self._sent, self._in_a_row = False, 0
        return self._taken(obs)

    def ask_to_close(self) -> None:
        """Let the environments close: the answer comes before the process ends."""
        if self._vector is None:
            return
        with contextlib.suppress(*FAILURES):
            if self._sent:
                self._vector.step_wait(timeout=CLOSE_TIMEOUT)
            self._vector.call_async("shut")

    def end(self, *, patience: float = 0.0) -> None:
        """End the process, also one that is in the middle of a step."""
        vector, self._vector, self._sent = self._vector, None, False
        if vector is None:
            return
        if patience:
            with contextlib.suppress(*FAILURES):
                vector.call_wait(timeout=patience)
        vector.closed = True
        for process in vector.processes:
            process.kill()
            process.join()
        for pipe in vector.parent_pipes:
            pipe.close()

    def _begun(self, steps: int) -> Any:
        """Frames to begin with, of a process that may have to be started."""
        if self._vector is None:
            self._vector = AsyncVectorEnv(
                [self.make],
                shared_memory=True,
                copy=False,
                context="forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn",
                autoreset_mode=AutoresetMode.DISABLED,
                observation_mode="same",
            )
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # until the process has opened the file
            path = Path(folder) / "place"
            path.write_bytes(bytes(self._place.nbytes))
            self._place = mapped_place(str(path))
            given = {"base_seed": self._seed, "steps": steps, "replaced": self.replaced, "place": str(path)}
            self._vector.reset_async(options=given)
            obs: Any = self._vector.reset_wait(timeout=START_TIMEOUT)[0]
        return self._taken(obs)

    def _taken(self, obs: Any) -> Any:
        """An observation of the bundle as arrays `[env, ...]`; where it holds a fault, that is raised."""
        mine = jax.tree.map(lambda leaf: leaf[0], obs)
        fault = mine.pop("fault")
        if fault[0]:
            raise EnvError(bytes(fault).rstrip(b"\0").decode(errors="replace"))
        self.replaced = mine.pop("replaced").copy()
        return mine

    def _bury(self, error: BaseException, step: int) -> None:
        """End a process that failed.

        Raises:
            EnvError: it is not to be replaced, or was too often.
        """
        what = _cause(self._vector, error)
        self.end()
        self._deaths += 1
        self._in_a_row += 1
        self.replaced = self.replaced + 1
        if self._restart and self._deaths <= MAX_DEATHS and self._in_a_row <= MAX_DEATHS_IN_A_ROW:
            return
        if self._restart:
            times = "once" if self._deaths == 2 else f"{self._deaths - 1} times"
            what += f", as {times} before: it is not replaced again"
        first, last = self.make.first, self.make.first + self.make.count - 1
        whose = f" (that of environments {first} to {last})" if last > first else ""
        raise env_error(first + int(self._place[0]), step, f"its worker process{whose} {what}") from error


def _cause(vector: AsyncVectorEnv | None, error: BaseException) -> str:
    """What became of a process that does not answer."""
    if vector is None:
        return f"could not start ({type(error).__name__}: {error})"
    [process] = vector.processes
    process.join(timeout=1.0)  # its pipe may close first
    if process.exitcode is None:
        return "does not answer: a step takes longer than step_timeout (--step-timeout) allows"
    if process.exitcode < 0:
        return f"was killed by {signal.Signals(-process.exitcode).name}"
    return f"died (exit status {process.exitcode})"
