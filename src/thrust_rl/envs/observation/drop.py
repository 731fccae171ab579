"""Frame drop: a frame that is lost leaves the one shown before it on display."""

import dataclasses
from typing import ClassVar, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Shaped

from thrust_rl.envs.core import SensorState
from thrust_rl.envs.observation.relay import Draw, Relay, Remembering, array_module, draw_key
from thrust_rl.envs.observation.settings import probability
from thrust_rl.types import Frame, Key


class Shown(NamedTuple):
    """What is on display."""

    obs: Shaped[Array, "..."]
    blank: Bool[Array, ""]
    begun: Bool[Array, ""]  # it is a frame of the running episode


@dataclasses.dataclass(frozen=True)
class FrameDrop(Relay):
    """Loses each frame with probability `drop_prob`, independently; the last one shown is then shown again.

    The first frame of an episode is never lost. A repeated frame is not `blank`, unless it was blank when first shown.

    Raises:
        ConfigError: the probability lies outside [0, 1].
    """

    whole_frames: ClassVar[bool] = True
    drop_prob: float

    def __post_init__(self) -> None:
        """Check the probability."""
        object.__setattr__(self, "drop_prob", probability("drop_prob", self.drop_prob))

    def init(self, key: Key, space: gymnasium.spaces.Box) -> Remembering:
        """Whether step 0's frame would be lost; nothing is on display."""
        nothing = Shown(jnp.zeros(space.shape, space.dtype), jnp.ones((), bool), jnp.zeros((), bool))
        return Remembering(self._drawn(key), nothing)

    def advance(self, key: Key, state: SensorState) -> Remembering:
        """Whether the next step's frame is lost."""
        return state._replace(clock=self._drawn(key))

    def begin_episode(self, state: SensorState) -> Remembering:
        """Clear the display."""
        xp = array_module(state.frames.obs)
        return state._replace(frames=Shown(*(xp.zeros_like(leaf) for leaf in state.frames)))

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """This frame, or the one on display."""
        xp = array_module(frame.obs)
        before = state.frames
        lost = state.clock & before.begun
        shown = Frame(xp.where(lost, before.obs, frame.obs), xp.where(lost, before.blank, frame.blank))
        return state._replace(frames=Shown(*shown, xp.ones_like(before.begun))), shown

    def _drawn(self, key: Key) -> Bool[Array, ""]:
        return jax.random.uniform(draw_key(key, Draw.DROP)) < self.drop_prob
