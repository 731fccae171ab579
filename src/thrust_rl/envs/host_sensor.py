"""Observation models on the host: random numbers drawn in compiled blocks of steps, frames made by NumPy."""

import dataclasses
import functools
import math
from typing import Any, TypeAlias

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, PyTree, UInt32
from numpy.typing import NDArray

from thrust_rl.envs.core import SensorState
from thrust_rl.envs.observation.relay import Relay, Remembering
from thrust_rl.envs.observation.stack import own_key, spaces
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.types import Frame, Key

BLOCK = 256  # steps drawn in one compiled call, which costs as much as some dozens of steps in NumPy
MOST_NUMBERS = 2**20  # in a block, where frames are large

ANY = gymnasium.spaces.Box(0, 1, ())

Clock: TypeAlias = PyTree  # what one model draws for one step


@dataclasses.dataclass(frozen=True)
class Space:
    """A `Box` that can be part of a cache's key."""

    box: gymnasium.spaces.Box

    def __hash__(self) -> int:
        return hash((self.box.shape, str(self.box.dtype)))


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A model that draws, as far as its draws depend on it. Hashable."""

    model: Relay
    ordinal: int  # how many models of the same kind come before it
    remembers: bool  # its state is a `Remembering`
    space: Space  # that it is given; of models of whole frames any, so that what is compiled serves all

    def init(self, key: Key) -> Clock:
        """What it draws for step 0."""
        return _clock(self.model.init(own_key(key, self.ordinal), self.space.box))

    def advance(self, key: Key, clock: Clock) -> Clock:
        """What it draws for the next step."""
        state = Remembering(clock, ()) if self.remembers else clock
        return _clock(self.model.advance(own_key(key, self.ordinal), state))


class HostSensor:
    """Models one behind the other for one environment; they draw the numbers that the compiled environment draws.

    `begin` starts the clock, `tick` moves it on by a step, and `begin_episode` leaves it alone. Where no model draws,
    nothing compiled is called.

    Args:
        models: nearest to the physics first.
        ordinals: how many models of the same kind come before each one, those of inner wrappers included.
        space: of the observations that come in.
    """

    def __init__(self, models: tuple[Relay, ...], ordinals: tuple[int, ...], space: gymnasium.spaces.Box) -> None:
        self._models = models
        given, key = list(spaces(models, space)), jax.random.key(0)  # the clock is overwritten when it begins
        self._states = [jax.device_get(model.init(key, seen)) for model, seen in zip(models, given, strict=True)]
        self._drawn = {
            i: DrawnAhead(
                Drawing(model, ordinals[i], isinstance(self._states[i], Remembering), _drawn_for(model, given[i]))
            )
            for i, model in enumerate(models)
            if type(model).advance is not Relay.advance
        }
        self._step: int | None = None

    @property
    def begun(self) -> bool:
        """Whether the clock runs."""
        return self._step is not None

    def begin(self, key_data: NDArray[np.uint32]) -> None:
        """Start the clock of a stream."""
        self._step = 0
        for drawn in self._drawn.values():
            drawn.begin(key_data)
        self._set_clocks(0)

    def tick(self) -> None:
        """The next step of a clock that has begun."""
        self._step = (self._step or 0) + 1
        self._set_clocks(self._step)

    def begin_episode(self) -> None:
        """Forget the frames of the episode before."""
        self._states = [model.begin_episode(state) for model, state in zip(self._models, self._states, strict=True)]

    def relay(self, obs: Any, blank: Any) -> tuple[Any, bool]:
        """What arrives of an observation at this step, and whether that is blank. `blank`: whether it came so."""
        frame = Frame(obs, blank)
        for i, model in enumerate(self._models):
            self._states[i], frame = model.relay(self._states[i], frame)
        return frame.obs, bool(frame.blank)

    def _set_clocks(self, step: int) -> None:
        for i, drawn in self._drawn.items():
            clock, state = drawn.at(step), self._states[i]
            self._states[i] = state._replace(clock=clock) if isinstance(state, Remembering) else clock


class DrawnAhead:
    """What one model draws, step by step; a block of steps is drawn when its first one is asked for."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._length = block_length(drawing.space.box)
        self._key_data: Any = None
        self._last: Clock = None  # what was drawn for the last step of the block
        self._rows: list[Clock] = []  # for each of its steps

    def begin(self, key_data: NDArray[np.uint32]) -> None:
        """Start again, on a stream."""
        self._key_data, self._last = key_data, _no_clock(self._drawing)

    def at(self, step: int) -> Clock:
        """What it draws for a step; steps come one after the other, from 0."""
        place = step % self._length
        if place == 0:
            block = draw_block(self._drawing, self._key_data, self._last, np.int32(step))
            drawn, self._last = jax.device_get(block)
            self._rows = _rows(drawn)
        return self._rows[place]


@functools.partial(jax.jit, static_argnums=0)
def draw_block(
    drawing: Drawing, key_data: UInt32[Array, " word"], last: Clock, first: Int[Array, ""]
) -> tuple[Clock, Clock]:
    """What a model draws for a block of steps, leaves `[step, ...]`, and for the last of them.

    Args:
        drawing: the model.
        key_data: of the stream.
        last: what it drew for the step before; step 0 has none and reads nothing of it.
        first: the block's first step.
    """
    stream = jax.random.wrap_key_data(key_data)
    begun = drawing.init(_sensor_key(stream, 0))

    def tick(clock: Clock, step: Int[Array, ""]) -> tuple[Clock, Clock]:
        later = drawing.advance(_sensor_key(stream, step), clock)
        now = jax.tree.map(lambda new, old: jnp.where(step == 0, old, new), later, begun)
        return now, now

    last, drawn = lax.scan(tick, last, first + jnp.arange(block_length(drawing.space.box)))
    return drawn, last


def block_length(space: gymnasium.spaces.Box) -> int:
    """How many steps are drawn at a time."""
    return min(BLOCK, max(8, MOST_NUMBERS // max(math.prod(space.shape), 1)))


def stream_key_data(seed: int) -> NDArray[np.uint32]:
    """The stream that environment 0 has under a seed, in compiled training and in `StatefulEnv` alike."""
    return np.asarray(_stream_key_data(np.uint32(seed % 2**32)))


@jax.jit
def _stream_key_data(seed: UInt32[Array, ""]) -> UInt32[Array, " word"]:
    return jax.random.key_data(environment_keys(jax.random.key(seed), 1)[0])


def _sensor_key(stream: Key, step: Int[Array, ""] | int) -> Key:
    return purpose_key(step_key(stream, step), Purpose.SENSOR)


@functools.cache
def _no_clock(drawing: Drawing) -> Clock:
    """Zeros in the shape of what the model draws for one step."""
    shapes = jax.eval_shape(drawing.init, jax.random.key(0))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def _drawn_for(model: Relay, space: gymnasium.spaces.Box) -> Space:
    return Space(ANY if model.whole_frames else space)


def _clock(state: SensorState) -> Clock:
    return state.clock if isinstance(state, Remembering) else state


def _rows(drawn: Any) -> list[Clock]:
    """One entry per step; the leaves are views."""
    if isinstance(drawn, np.ndarray):
        return list(drawn)
    length = len(jax.tree.leaves(drawn)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], drawn) for i in range(length)]
