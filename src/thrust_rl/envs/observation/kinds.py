"""The observation models by the names that `--observe` knows."""

import dataclasses
from collections.abc import Callable
from typing import Any

from thrust_rl.envs.core import ObservationModel
from thrust_rl.envs.observation.delay import Delay, RandomDelay
from thrust_rl.envs.observation.drop import FrameDrop
from thrust_rl.envs.observation.flicker import Flicker
from thrust_rl.envs.observation.mask import Hide, Mask
from thrust_rl.envs.observation.noise import GaussianNoise
from thrust_rl.envs.observation.quantize import Quantize

Value = float | int


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of observation model as text: `name:value,value`."""

    model: type[Any]
    meaning: str
    """What it does, in a few words."""
    syntax: str
    example: str
    build: Callable[..., ObservationModel]
    """From the values."""
    values: Callable[[Any], tuple[Value | None, ...]]
    """Of a model: what `build` takes; None at the end means left out."""
    read: type[float] | type[int] = float
    """What a value is."""
    most: int | None = 1
    """How many values there may be; None for any number."""
    coordinates: bool = False
    """Values are coordinates, by index or by name."""


def _one_or_each(model: type[Any]) -> Callable[..., ObservationModel]:
    return lambda *values: model(values[0] if len(values) == 1 else values)


def _as_tuple(value: float | tuple[float, ...]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


OBSERVATION_MODELS: dict[str, Kind] = {
    "flicker": Kind(
        Flicker,
        "blanks frames to zeros, independently or in bursts of that mean length",
        "flicker:PROBABILITY or flicker:PROBABILITY,BURST",
        "flicker:0.5,4",
        Flicker,
        lambda model: (model.flicker_prob, model.burst_len),
        most=2,
    ),
    "mask": Kind(
        Hide,
        "hides these coordinates",
        "mask:COORDINATE,COORDINATE,... by index from 0 or by name",
        "mask:1,3",
        lambda *hidden: Hide(hidden),
        lambda model: model.hidden,
        read=int,
        most=None,
        coordinates=True,
    ),
    "show": Kind(
        Mask,
        "shows only these coordinates, in this order",
        "show:COORDINATE,COORDINATE,... by index from 0 or by name",
        "show:0,2",
        lambda *visible: Mask(visible),
        lambda model: model.visible,
        read=int,
        most=None,
        coordinates=True,
    ),
    "noise": Kind(
        GaussianNoise,
        "adds Gaussian noise of this standard deviation, one for all or one per coordinate",
        "noise:STD or noise:STD,STD,...",
        "noise:0.1",
        _one_or_each(GaussianNoise),
        lambda model: _as_tuple(model.std),
        most=None,
    ),
    "delay": Kind(
        Delay,
        "shows every frame this many steps late",
        "delay:STEPS",
        "delay:2",
        Delay,
        lambda model: (model.steps,),
        read=int,
    ),
    "random-delay": Kind(
        RandomDelay,
        "makes each frame late by a number of steps of its own, up to this; the newest arrived is shown",
        "random-delay:MOST",
        "random-delay:3",
        RandomDelay,
        lambda model: (model.max_steps,),
        read=int,
    ),
    "drop": Kind(
        FrameDrop,
        "loses frames with this probability; the last one is shown again",
        "drop:PROBABILITY",
        "drop:0.2",
        FrameDrop,
        lambda model: (model.drop_prob,),
    ),
    "quantize": Kind(
        Quantize,
        "rounds to multiples of this step, one for all or one per coordinate",
        "quantize:STEP or quantize:STEP,STEP,...",
        "quantize:0.1",
        _one_or_each(Quantize),
        lambda model: _as_tuple(model.step),
        most=None,
    ),
}
