"""Flicker: whole frames blanked to zeros, independently or in bursts."""

import dataclasses
from typing import ClassVar

import gymnasium
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from thrust_rl.config import require
from thrust_rl.envs.core import SensorState
from thrust_rl.envs.observation.relay import Relay, array_module, with_zeros
from thrust_rl.envs.observation.settings import number, probability
from thrust_rl.types import Frame, Key


@dataclasses.dataclass(frozen=True)
class Flicker(Relay):
    """Blanks whole frames to zeros with stationary probability `flicker_prob` (Hausknecht & Stone 2015).

    Without `burst_len`, each frame is an independent coin. With it, blanking is a two-state Markov chain
    whose blank runs last `burst_len` frames on average at the same blank fraction. An independent coin is that
    chain with `burst_len` 1/(1-p), so both are one model.

    Raises:
        ConfigError: the probability or the burst length is out of range; the message says why.

    Example:
        >>> Flicker(0.5, burst_len=4.0).mean_visible_run
        4.0
    """

    whole_frames: ClassVar[bool] = True
    flicker_prob: float = 0.5
    burst_len: float | None = None

    def __post_init__(self) -> None:
        """Check that such a chain exists."""
        p = probability("flicker_prob", self.flicker_prob)
        if self.burst_len is None:
            return
        length = number("burst_len", self.burst_len)
        require(
            0.0 < p < 1.0,
            f"flicker_prob is {p} with burst_len {length}: bursts need a probability strictly between 0 and 1,"
            " because at 0 or 1 there are no runs to have a length; drop burst_len",
        )
        require(
            1.0 <= length < float("inf"),
            f"burst_len is {length}: a blank run lasts at least 1 frame and ends at some time; drop burst_len for"
            " independent blanks",
        )
        require(
            self.mean_visible_run >= 1.0 - 1e-9,  # 4(1-0.8)/0.8 rounds to just under 1
            f"burst_len is {length} with flicker_prob {p}: visible runs would last {self.mean_visible_run:.3g} frames"
            f" on average, which is under 1; raise burst_len to at least {p / (1.0 - p):.4g} or lower flicker_prob",
        )

    @property
    def mean_visible_run(self) -> float:
        """L(1-p)/p: frames between two blank runs, on average. Only with `burst_len`."""
        require(self.burst_len is not None, "mean_visible_run needs a burst_len: independent blanks have none")
        return float(self.burst_len or 0.0) * (1.0 - self.flicker_prob) / self.flicker_prob

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """The space, widened to hold a frame of zeros."""
        return with_zeros(space)

    def init(self, key: Key, space: gymnasium.spaces.Box) -> Bool[Array, ""]:
        """Blank or not at step 0, from the stationary distribution."""
        return self._stationary(key)

    def advance(self, key: Key, state: Bool[Array, ""]) -> Bool[Array, ""]:
        """Blank or not at the next step."""
        if self.burst_len is None:
            return self._stationary(key)
        after_blank = 1.0 - 1.0 / self.burst_len
        after_visible = min(1.0, 1.0 / self.mean_visible_run)
        return jax.random.uniform(key) < jnp.where(state, after_blank, after_visible)

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """Zeros while blank."""
        xp = array_module(frame.obs)
        return state, Frame(xp.where(state, xp.zeros_like(frame.obs), frame.obs), state | frame.blank)

    def _stationary(self, key: Key) -> Bool[Array, ""]:
        return jax.random.uniform(key) < self.flicker_prob
