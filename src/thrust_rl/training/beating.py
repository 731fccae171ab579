"""Signs of life from environments that are slow: a window of them may take longer than anybody waits in silence."""

import time
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from thrust_rl.envs.batch import Frames
from thrust_rl.envs.hosted import Hosted, HostedEnvs

BEAT_SECONDS = 10.0  # between two signs; most windows are over before


class Beating:
    """Hosted environments, unchanged, that tell every so often, between two steps, that they go on.

    Args:
        envs: what is stepped.
        tell: called about every `seconds`, unless `heard` was.
        seconds: how often.
    """

    def __init__(self, envs: HostedEnvs, tell: Callable[[], None], *, seconds: float = BEAT_SECONDS) -> None:
        self._envs, self._tell, self._seconds = envs, tell, seconds
        self._last = time.monotonic()

    def begin(self, seed: int) -> Frames:
        """As they do."""
        return self._envs.begin(seed)

    def step(self, actions: NDArray[Any]) -> Hosted:
        """One step, and a sign if it is time for one."""
        hosted = self._envs.step(actions)
        if time.monotonic() - self._last > self._seconds:
            self._tell()
            self._last = time.monotonic()
        return hosted

    def restarts(self) -> int:
        """As they say."""
        return self._envs.restarts()

    def close(self) -> None:
        """Close them."""
        self._envs.close()

    def heard(self, tell: Callable[[], None]) -> None:
        """There was another sign; the next ones say this."""
        self._tell, self._last = tell, time.monotonic()
