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

    def to_dict(self) -> dict[str, Any]:
        """As JSON types, whole: what is read back goes on as this would."""
        return {
            "steps": list(self.steps),
            "mean_return": list(self.mean_return),
            "episodes": self.episodes,
            "recent": list(self._recent),
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "LearningCurve":
        """Back from JSON types."""
        curve = LearningCurve(list(data["steps"]), list(data["mean_return"]), int(data["episodes"]))
        curve._recent.extend(data["recent"])
        return curve
