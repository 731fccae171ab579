"""The learning curve: mean raw return of the last ≤100 finished episodes, update by update."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

RECENT_EPISODES = 100


@dataclass
class LearningCurve:
    """Grows by one point per update from the first finished episode on.

    Example:
        >>> import numpy as np
        >>> curve = LearningCurve()
        >>> curve.add(8, np.array([[np.nan, 3.0], [5.0, np.nan]]))
        >>> curve.final, curve.episodes
        (4.0, 2)
    """

    steps: list[int] = field(default_factory=list)
    mean_return: list[float] = field(default_factory=list)
    episodes: int = 0
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))

    def add(self, steps: int, episode_return: NDArray[np.floating]) -> None:
        """Take in one update.

        Args:
            steps: environment steps so far.
            episode_return: `[time, env]`, the raw return where an episode ended, else NaN. Episodes count in
                the order of time, then of environment index.
        """
        ended = episode_return[~np.isnan(episode_return)]
        self._recent.extend(ended.tolist())
        self.episodes += len(ended)
        if self._recent:
            self.steps.append(steps)
            self.mean_return.append(float(np.mean(self._recent)))

    def copy(self) -> "LearningCurve":
        """One that grows apart from this one."""
        return LearningCurve(list(self.steps), list(self.mean_return), self.episodes, self._recent.copy())

    @property
    def final(self) -> float | None:
        """Mean over the last ≤100 episodes at the end; None before any episode ended."""
        return self.mean_return[-1] if self.mean_return else None

    @property
    def best(self) -> float | None:
        """The curve's peak."""
        return max(self.mean_return, default=None)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The whole of it: what is read back goes on as this would."""
        return {
            "steps": np.array(self.steps, np.int64),
            "mean_return": np.array(self.mean_return, np.float64),
            "episodes": np.array(self.episodes, np.int64),
            "recent": np.array(self._recent, np.float64),
        }

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]]) -> "LearningCurve":
        """Back from `to_arrays`."""
        steps, returns, recent = (arrays[name].tolist() for name in ("steps", "mean_return", "recent"))
        return LearningCurve(steps, returns, int(arrays["episodes"]), deque(recent, maxlen=RECENT_EPISODES))
