"""Rollout buffers: what a loop written by hand fills, and what a trainer learns from."""

from typing import Any, SupportsIndex

import numpy as np

from thrust_rl import arrays
from thrust_rl.envs.checks import checked_index
from thrust_rl.memory.lstm import LSTMMemory
from thrust_rl.rollout.filling import StepBuffer


class RolloutBuffer(StepBuffer):
    """One window of a policy without memory.

    Example:
        >>> import numpy as np
        >>> buffer = RolloutBuffer(num_steps=1, num_envs=2, obs_dim=3)
        >>> no, half = np.zeros(2, bool), np.full(2, 0.5)
        >>> buffer.add(0, np.ones((2, 3)), np.array([0, 1]), half, half, half, terminated=~no, truncated=no)
        >>> buffer.compute_advantages(np.zeros(2), gamma=0.99, gae_lambda=0.95)
        >>> buffer.returns.tolist()
        [[0.5], [0.5]]
    """

    def _first_memory(self) -> tuple[()]:
        return ()


class RecurrentRolloutBuffer(StepBuffer):
    """One window of a policy with an LSTM: whole trajectories, and the memory each of them begins with.

    A window's m_0 is the state recorded at step 0; where none is recorded, what `seed_warm_start` left; else
    empty. Learning replays a window from its m_0, so m_0 must be what acting began with, or the importance ratios
    are wrong.

    Args:
        num_steps: length of the window.
        num_envs: environments side by side.
        obs_dim: length of an observation.
        hidden_dim: width of the memory.

    Example:
        >>> import numpy as np
        >>> buffer = RecurrentRolloutBuffer(num_steps=1, num_envs=2, obs_dim=3, hidden_dim=4)
        >>> no, half = np.zeros(2, bool), np.full(2, 0.5)
        >>> buffer.add_recurrent_state(0, slice(None), np.ones((2, 4)), np.ones((2, 4)))
        >>> buffer.add(0, np.ones((2, 3)), np.array([0, 1]), half, half, half, terminated=~no, truncated=no)
        >>> buffer.rollout.memory.hidden.shape
        (2, 4)
    """

    def __init__(self, num_steps: int, num_envs: int, obs_dim: int, hidden_dim: int) -> None:
        super().__init__(num_steps, num_envs, obs_dim)
        self.hidden_dim = arrays.positive("hidden_dim", hidden_dim)
        shape = (self.num_envs, self.num_steps, self.hidden_dim)
        self._states = LSTMMemory(arrays.zeros(shape), arrays.zeros(shape))
        self._recorded = np.zeros((self.num_envs, self.num_steps), bool)
        self._warm_start = self._empty()
        self._next_warm_start: LSTMMemory | None = None

    def add_recurrent_state(self, step: int, env: SupportsIndex | slice, h: Any, c: Any) -> None:
        """Record m_t, the state that *entered* a step, right before or right after `add` of that step.

        Only step 0 is needed for learning; the others can be read back from `states`.

        Args:
            step: t within the window.
            env: one environment, or `slice(None)` for all.
            h: hidden half, `[hidden]` for one environment, `[env, hidden]` for a slice.
            c: cell half, likewise.
        """
        step = arrays.whole("step", step)
        if step not in (self._position, self._position - 1) or not 0 <= step < self.num_steps:
            raise ValueError(
                f"step {step} is out of order: the buffer stands at step {self._position} of {self.num_steps};"
                " record the state that enters a step right before or right after add()"
            )
        rows = env if isinstance(env, slice) else checked_index(env, self.num_envs)
        shape, axes = self._states.hidden[rows, 0].shape, "env hidden" if isinstance(env, slice) else "hidden"
        h, c = arrays.floats("h", h, shape, axes), arrays.floats("c", c, shape, axes)
        self._states.hidden[rows, step] = h
        self._states.cell[rows, step] = c
        self._recorded[rows, step] = True

    def seed_warm_start(self, step: int, h: Any, c: Any) -> None:
        """Say what the next window begins with: its m_0 where no state is recorded at its step 0.

        The hook for carrying memory over windows. A loop that begins every window with an empty memory records
        that (zeros) at step 0, or does not call this.

        Args:
            step: the step that the state leaves: the window's last.
            h: hidden half after that step, `[env, hidden]`.
            c: cell half, likewise.
        """
        self._require_full("seed_warm_start()")
        if arrays.whole("step", step) != self.num_steps - 1:
            raise ValueError(f"step is {step}: a window is followed by the state that leaves step {self.num_steps - 1}")
        shape = (self.num_envs, self.hidden_dim)
        h, c = arrays.floats("h", h, shape, "env hidden"), arrays.floats("c", c, shape, "env hidden")
        self._next_warm_start = LSTMMemory(arrays.copied(h), arrays.copied(c))

    @property
    def states(self) -> LSTMMemory:
        """A copy of the recorded states, leaves `[env, time, hidden]`; zeros where none was."""
        return LSTMMemory(*map(arrays.copied, self._states))

    def reset(self) -> None:
        """Begin the next window, with the memory that `seed_warm_start` gave since the last reset, else empty."""
        super().reset()
        self._states.hidden[:] = 0.0
        self._states.cell[:] = 0.0
        self._recorded[:] = False
        self._warm_start, self._next_warm_start = self._next_warm_start or self._empty(), None

    def _empty(self) -> LSTMMemory:
        shape = (self.num_envs, self.hidden_dim)
        return LSTMMemory(arrays.zeros(shape), arrays.zeros(shape))

    def _first_memory(self) -> LSTMMemory:
        recorded = self._recorded[:, 0]
        if recorded.any() and not recorded.all():
            some = np.flatnonzero(recorded).tolist()
            raise ValueError(f"states entering step 0 are recorded for environments {some} only: record all, or none")
        return LSTMMemory(self._states.hidden[:, 0], self._states.cell[:, 0]) if recorded.all() else self._warm_start
