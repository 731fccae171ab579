"""One evaluation episode per arm, on the same stream, as the numbers that the page's script plays."""

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from thrust_rl.experiment.report.data import Condition

COORDINATES = 8  # drawn of an observation, at most
CART_POLE = 4  # numbers of a state that is drawn: x, its rate, the angle, its rate


@dataclasses.dataclass(frozen=True)
class Episode:
    """What one arm saw and did, a frame per entry."""

    arm: str
    seed: int | None
    obs: tuple[tuple[float, ...], ...] | None
    """As the agent saw them, flat; None where they were too large to record."""
    blank: tuple[bool, ...]
    actions: tuple[str, ...]
    returns: tuple[float, ...]
    """Sum of the rewards, this frame's action included."""
    state: tuple[tuple[float, float], ...] | None
    """Position and angle where there is a cart-pole to draw."""

    @property
    def frames(self) -> int:
        """How many there are."""
        return len(self.returns)

    def to_dict(self) -> dict[str, Any]:
        """For the script: short numbers."""
        return {
            "arm": self.arm,
            "frames": self.frames,
            "blank": [int(each) for each in self.blank],
            "action": list(self.actions),
            "total": [_json(each) for each in self.returns],
            "state": None if self.state is None else [[round(x, 4), round(angle, 5)] for x, angle in self.state],
        }


def episodes(condition: Condition) -> list[Episode]:
    """Of every arm that was recorded."""
    return [
        _episode(arm.name, arm.recording) for arm in condition.arms if arm.recording and arm.recording.get("rewards")
    ]


def _episode(arm: str, recording: Mapping[str, Any]) -> Episode:
    rewards = recording["rewards"]
    frames = len(rewards)
    obs = tuple(_flattened(each) for each in recording.get("observations") or ())
    blank = [bool(each) for each in recording.get("blanks") or ()]
    actions = [_action_text(each) for each in recording.get("actions") or ()]
    return Episode(
        arm=arm,
        seed=recording.get("seed"),
        obs=obs if len(obs) == frames else None,
        blank=tuple((blank + [False] * frames)[:frames]),
        actions=tuple((actions + [""] * frames)[:frames]),
        returns=tuple(itertools.accumulate(math.nan if each is None else float(each) for each in rewards)),
        state=_cart_poles(recording.get("states"), frames),
    )


def _cart_poles(states: Sequence[Sequence[float]] | None, frames: int) -> tuple[tuple[float, float], ...] | None:
    if not states or len(states) < frames or any(len(s) != CART_POLE or None in s for s in states):
        return None
    return tuple((float(state[0]), float(state[2])) for state in states[:frames])


def _flattened(obs: Any) -> tuple[float, ...]:
    if isinstance(obs, Mapping):
        obs = list(obs.values())
    if not isinstance(obs, Sequence):
        return (math.nan if obs is None else float(obs),)
    return tuple(itertools.chain.from_iterable(_flattened(each) for each in obs))


def _action_text(action: Any) -> str:
    if isinstance(action, Sequence) and not isinstance(action, str):
        return "(" + ", ".join(_action_text(each) for each in action) + ")"
    return f"{action:.3g}" if isinstance(action, float) else str(action)


def _json(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


def embedded(data: Any) -> str:
    """JSON that no text inside can end early, for a script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
