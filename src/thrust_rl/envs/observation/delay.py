"""Delays: frames arrive some steps late, all by the same number or each by its own."""

import dataclasses
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Shaped

from thrust_rl.envs.core import SensorState
from thrust_rl.envs.observation.relay import Draw, Relay, Remembering, array_module, draw_key, with_zeros
from thrust_rl.envs.observation.settings import whole
from thrust_rl.types import Frame, Key


class Line(NamedTuple):
    """Frames under way, oldest first; places that no frame has reached yet are blank."""

    obs: Shaped[Array, "place ..."]
    blank: Bool[Array, " place"]


class RandomLine(NamedTuple):
    """The newest frames and after how many steps each of them arrives."""

    line: Line
    delay: Int[Array, " place"]


@dataclasses.dataclass(frozen=True)
class Delay(Relay):
    """Every frame arrives `steps` steps late; until one of the running episode has arrived, frames are blank.

    The frame at step k of an episode shows what there was to see at k - `steps`. As in Gymnasium's
    `DelayObservation`, the first `steps` frames are zeros; here they say so in `blank`.

    Raises:
        ConfigError: `steps` is not a whole number of at least 0.
    """

    whole_frames: ClassVar[bool] = True
    steps: int

    def __post_init__(self) -> None:
        """Check the delay."""
        object.__setattr__(self, "steps", whole("steps", self.steps, least=0))

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """The space, widened to hold a frame of zeros."""
        return with_zeros(space)

    def init(self, key: Key, space: gymnasium.spaces.Box) -> Remembering:
        """Nothing is under way."""
        return Remembering((), _empty(self.steps, space))

    def begin_episode(self, state: SensorState) -> Remembering:
        """What is under way never arrives."""
        return state._replace(frames=_emptied(state.frames))

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """The oldest frame under way."""
        if self.steps == 0:
            return state, frame
        line = state.frames
        return state._replace(frames=_pushed(line, frame)), Frame(line.obs[0], line.blank[0])


@dataclasses.dataclass(frozen=True)
class RandomDelay(Relay):
    """Each frame is late by a number of steps of its own, uniform in {0, ..., `max_steps`}.

    The newest frame that has arrived is shown. So a frame may overtake others, which are then never seen, and
    a shown frame may be shown again. Until one of the running episode has arrived, frames are zeros and `blank`.

    Raises:
        ConfigError: `max_steps` is not a whole number of at least 0.
    """

    whole_frames: ClassVar[bool] = True
    max_steps: int

    def __post_init__(self) -> None:
        """Check the delay."""
        object.__setattr__(self, "max_steps", whole("max_steps", self.max_steps, least=0))

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """The space, widened to hold a frame of zeros."""
        return with_zeros(space)

    def init(self, key: Key, space: gymnasium.spaces.Box) -> Remembering:
        """The delay of step 0's frame; nothing is under way."""
        places = self.max_steps + 1
        line = RandomLine(_empty(places, space), jnp.full(places, places, jnp.int32))
        return Remembering(self._drawn(key), line)

    def advance(self, key: Key, state: SensorState) -> Remembering:
        """The delay of the next step's frame."""
        return state._replace(clock=self._drawn(key))

    def begin_episode(self, state: SensorState) -> Remembering:
        """What is under way never arrives."""
        line, delay = state.frames
        never = array_module(delay).full_like(delay, self.max_steps + 1)
        return state._replace(frames=RandomLine(_emptied(line), never))

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """The newest frame that has arrived."""
        xp = array_module(frame.obs)
        line = _pushed(state.frames.line, frame)
        delay = _appended(xp, state.frames.delay, state.clock)
        # Newest first, so that the first one found is the newest; place i of this order is i steps old.
        arrived = delay[::-1] <= np.arange(self.max_steps + 1)
        newest = self.max_steps - xp.argmax(arrived)
        nothing = ~arrived.any()
        obs = xp.where(nothing, xp.zeros_like(frame.obs), line.obs[newest])
        state = state._replace(frames=RandomLine(line, delay))
        return state, Frame(obs, nothing | line.blank[newest])

    def _drawn(self, key: Key) -> Int[Array, ""]:
        return jax.random.randint(draw_key(key, Draw.DELAY), (), 0, self.max_steps + 1)


def _empty(places: int, space: gymnasium.spaces.Box) -> Line:
    return Line(jnp.zeros((places, *space.shape), space.dtype), jnp.ones(places, bool))


def _emptied(line: Line) -> Line:
    xp = array_module(line.obs)
    return Line(xp.zeros_like(line.obs), xp.ones_like(line.blank))


def _pushed(line: Line, frame: Frame) -> Line:
    """One frame more at the end, one less at the beginning."""
    xp = array_module(line.obs)
    return Line(_appended(xp, line.obs, frame.obs), _appended(xp, line.blank, frame.blank))


def _appended(xp: ModuleType, places: Any, newest: Any) -> Any:
    return xp.concatenate([places[1:], xp.asarray(newest)[None]])
