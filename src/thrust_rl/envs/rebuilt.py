"""A vector environment that is built anew when something in it fails, since no part of one can be replaced."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrust_rl.envs.autoreset import SteppedVector
from thrust_rl.envs.batch import Frames, StepResult
from thrust_rl.envs.faults import EnvError, fault_of
from thrust_rl.envs.hosted import Hosted

MAX_FAILURES = 100  # then it is no accident
MAX_FAILURES_IN_A_ROW = 3  # without a step in between: then it is none either


class RebuiltVector:
    """A `SteppedVector` as `HostedEnvs`, with another one in its place whenever it fails.

    The episodes of all its environments were cut where their last frames were seen: they count as truncated, the step
    that failed paid nothing, and every environment counts as replaced. New ones draw anew.

    Args:
        build: builds it, for environments that have so many steps behind them.
        num_envs: how many it holds.
    """

    def __init__(self, build: Callable[[int], SteppedVector], num_envs: int) -> None:
        self._build, self._num_envs = build, num_envs
        self._stepped = build(0)
        self._seed, self._steps, self._failures, self._in_a_row = 0, 0, 0, 0
        self._frames = Frames((), {})  # to act on
        self._resets = np.zeros(num_envs, bool)  # what the next step only resets

    def begin(self, seed: int) -> Frames:
        """Begin every environment.

        Raises:
            EnvError: one failed at that, as often before, or there is no building it again.
        """
        self._seed = seed
        try:
            return self._began(self._stepped.begin(seed))
        except EnvError as error:
            return self._began(self._begun_again(error))

    def step(self, actions: NDArray[Any]) -> Hosted:
        """One step of every environment; or the end of all episodes, and new ones.

        Raises:
            EnvError: one failed, as often before, or there is no building it again.
        """
        self._steps += 1
        try:
            hosted = self._stepped.step(actions)
        except EnvError as error:
            return self._cut(error)
        self._in_a_row, self._frames = 0, hosted.frames
        if self._stepped.spends_steps_on_resets:
            self._resets = hosted.result.over
        return hosted

    def restarts(self) -> int:
        """How many environments were replaced: all of them at every failure."""
        return self._failures * self._num_envs

    def close(self) -> None:
        """Close the vector environment."""
        self._stepped.close()

    def _cut(self, error: EnvError) -> Hosted:
        """What is said of a step that failed: every episode was cut, and another has begun."""
        rewards, never = np.zeros(self._num_envs, np.float32), np.zeros(self._num_envs, bool)
        valid = ~self._resets
        cut = StepResult(self._frames.obs, rewards, never, valid, self._frames.info)
        frames = self._began(self._begun_again(error))
        return Hosted(cut, frames, ~never, valid if self._stepped.spends_steps_on_resets else ())

    def _began(self, frames: Frames) -> Frames:
        self._frames, self._resets = frames, np.zeros(self._num_envs, bool)
        return frames

    def _begun_again(self, error: EnvError) -> Frames:
        """Frames of a new one; the last one may have left processes."""
        while True:
            self._failures += 1
            self._in_a_row += 1
            with contextlib.suppress(Exception):  # what failed may fail at this too
                self._stepped.close()
            if self._failures > MAX_FAILURES or self._in_a_row > MAX_FAILURES_IN_A_ROW:
                raise EnvError(f"{error}, as {self._failures - 1} times before: it is not built again") from error
            try:
                self._stepped = self._build(self._steps)
                seed = np.random.SeedSequence([self._seed, self._failures]).generate_state(1)
                return self._stepped.begin(int(seed[0]))
            except EnvError as again:
                error = again
            except Exception as what:
                raise EnvError(f"{error}; it could not be built again: {fault_of(what)}") from what
