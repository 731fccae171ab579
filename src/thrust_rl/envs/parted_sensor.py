"""Observation models over observations of any space: what they draw and do is one thing for all parts."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import ConfigError, require
from thrust_rl.envs.host_sensor import HostSensor
from thrust_rl.envs.observation.layout import Layout
from thrust_rl.envs.observation.mask import Hide, Mask
from thrust_rl.envs.observation.reading import AsItIs, SideBySide
from thrust_rl.envs.observation.relay import Relay
from thrust_rl.envs.observation.stack import stacked
from thrust_rl.envs.spaces import ActionMask, obs_spec

Reading = AsItIs | SideBySide
Ordered = list[tuple[Relay, int]]  # models, each with how many of the same kind come before it


class PartedSensor:
    """A `HostSensor` for every array that the parts of an observation are read as.

    All run on one clock, and all that blanks, delays or drops draws alike whatever the frame: a frame is blank, late or
    lost as a whole. Masks take each array its own coordinates.

    Args:
        layout: of the observations.
        models: nearest to the environment first.
        ordinals: how many models of the same kind come before each one, those of inner wrappers included.

    Raises:
        ConfigError: a model does not fit.
    """

    def __init__(self, layout: Layout, models: Sequence[Relay], ordinals: Sequence[int]) -> None:
        self._layout, self._is_box = layout, isinstance(layout.space, gymnasium.spaces.Box)
        readings = _readings(layout, list(zip(models, ordinals, strict=True)))
        self._readings = [reading for reading, _ in readings]
        seen = [_seen_space(reading, own) for reading, own in readings]  # refuses what does not fit
        self._sensors = [
            HostSensor(tuple(model for model, _ in own), tuple(ordinal for _, ordinal in own), reading.box)
            for reading, own in readings
        ]
        self._untouched = tuple(leaf.index for leaf in layout.leaves if isinstance(leaf.part, ActionMask))
        spaces = {i: layout.leaves[i].space for i in self._untouched}
        for reading, box in zip(self._readings, seen, strict=True):
            spaces |= reading.spaces(box)
        self.space = layout.rebuilt(spaces)
        self._treedef = obs_spec(self.space).treedef

    @property
    def begun(self) -> bool:
        """Whether the clock runs."""
        return self._sensors[0].begun

    def begin(self, key_data: NDArray[np.uint32]) -> None:
        """Start the clock of a stream."""
        for sensor in self._sensors:
            sensor.begin(key_data)

    def tick(self) -> None:
        """The next step of a clock that has begun."""
        for sensor in self._sensors:
            sensor.tick()

    def begin_episode(self) -> None:
        """Forget the frames of the episode before."""
        for sensor in self._sensors:
            sensor.begin_episode()

    def relay(self, obs: Any, blank: bool) -> tuple[Any, bool]:
        """What arrives of an observation at this step, and whether that is blank. `blank`: whether it came so."""
        if self._is_box:  # nearly always: nothing to take apart
            relayed, is_blank = self._sensors[0].relay(self._readings[0].take([obs]), blank)
            return np.array(relayed), is_blank
        values, blanks = self._layout.values(obs), []
        shown = {i: values[i] for i in self._untouched}
        for reading, sensor in zip(self._readings, self._sensors, strict=True):
            relayed, is_blank = sensor.relay(reading.take(values), blank)
            shown |= reading.give(relayed)
            blanks.append(is_blank)
        return self._treedef.unflatten([shown[i] for i in sorted(shown)]), all(blanks)


def _readings(layout: Layout, models: Ordered) -> list[tuple[Reading, Ordered]]:
    """The arrays of which something is left to see, each with the models that it passes."""
    if layout.only is not None:
        return [(AsItIs.of(layout.only), models)]
    size = sum(len(leaf.names) for leaf in layout.rows)
    left, rows = _masked(models, layout.coordinates, size)
    others: Ordered = [(model, ordinal) for model, ordinal in models if not isinstance(model, Hide | Mask)]
    readings: list[tuple[Reading, Ordered]] = []
    numbers = [i for i in left if i < size]
    if numbers:
        keeps_bits = all(model.whole_frames for model, _ in others)
        readings.append((SideBySide(layout.rows, numbers, keeps_bits=keeps_bits), rows))
    return readings + [(AsItIs.of(leaf), others) for i, leaf in enumerate(layout.images, size) if i in left]


def _masked(models: Ordered, coordinates: int, size: int) -> tuple[list[int], Ordered]:
    """Which coordinates are left behind all models; and the models of the vector of the first `size` of them.

    Raises:
        ConfigError: a mask asks for a coordinate that there is not, or leaves none.
    """
    left, rows = list(range(coordinates)), Ordered()
    for model, ordinal in models:
        if not isinstance(model, Hide | Mask):
            rows.append((model, ordinal))
            continue
        model.space(gymnasium.spaces.Box(0, 1, (len(left),)))  # refuses what does not fit
        places = {coordinate: i for i, coordinate in enumerate(i for i in left if i < size)}
        left = [left[i] for i in model.kept(len(left))]
        numbers = tuple(places[i] for i in left if i in places)
        if numbers:
            rows.append((Mask(numbers), 0))
    return left, rows


def _seen_space(reading: Reading, models: Ordered) -> gymnasium.spaces.Box:
    """Of what is shown of an array.

    Raises:
        ConfigError: a model does not fit.
    """
    model = stacked(*(model for model, _ in models))
    try:
        seen = model.space(reading.box)
    except ConfigError as error:
        if isinstance(reading, SideBySide) or not reading.leaf.path:
            raise
        name = reading.leaf.names[0]
        raise ConfigError(f"{name}: {error}, or hide it before, with mask:{name}") from None
    if isinstance(reading, SideBySide):
        require(
            seen.shape == (reading.size,),
            f"{model} makes {seen.shape} of {reading.size} numbers: in an observation of several parts only masks may"
            " change how many there are; wrap the environment in gymnasium.wrappers.FlattenObservation first",
        )
    return seen
