"""Quantization: numbers rounded to multiples of a step, as a coarse sensor reads them."""

import dataclasses
import functools
from typing import Any

import gymnasium
import numpy as np

from thrust_rl.envs.core import SensorState
from thrust_rl.envs.observation.integers import Bounds, as_floats, as_integers, bounds_of, has_integers
from thrust_rl.envs.observation.relay import Relay, array_module, box
from thrust_rl.envs.observation.settings import per_coordinate, require_length
from thrust_rl.types import Frame, Key


@dataclasses.dataclass(frozen=True)
class Quantize(Relay):
    """Rounds every number to the nearest multiple of `step`, halves to even; a tuple gives one step per coordinate.

    Zero is a multiple, so blank frames stay zeros. A sensor with n levels over [0, high] has the step high / (n - 1).

    Integers, such as the bytes of images, stay integers: the multiple is rounded to the nearest whole number, halves to
    even, and clipped to the bounds of its space. A step of 100 leaves bytes 0, 100, 200 and 255; one of 1 changes none
    (below 2^24: larger integers are no floats).

    Raises:
        ConfigError: a step is not finite and positive; from `space`, when their number does not fit.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> Quantize(0.5).emit(jax.random.key(0), (), jnp.array([0.2, 0.3, -1.1]))[1].obs.tolist()
        [0.0, 0.5, -1.0]
    """

    step: float | tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the steps."""
        object.__setattr__(self, "step", per_coordinate("step", self.step, least=0.0, open_low=True))

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """Bounds rounded as observations are: rounding keeps order, so frames lie between. Of integers, the same."""
        require_length("step", self.step, space)
        if has_integers(space):
            return space
        with np.errstate(over="ignore"):  # a bound near the largest float becomes infinite
            return box(self._rounded(space.low), self._rounded(space.high), like=space)

    def init(self, key: Key, space: gymnasium.spaces.Box) -> SensorState:
        """For integers the bounds of their space."""
        return bounds_of(space) if has_integers(space) else ()

    def relay(self, state: SensorState, frame: Frame) -> tuple[SensorState, Frame]:
        """The frame, rounded."""
        if isinstance(state, Bounds):
            whole = as_integers(self._rounded(as_floats(frame.obs)), state, like=frame.obs)
            return state, frame._replace(obs=whole)
        return state, frame._replace(obs=self._rounded(frame.obs))

    def _rounded(self, obs: Any) -> Any:
        step, per_unit = _scales(self.step)
        return array_module(obs).round(obs * per_unit) * step


@functools.cache
def _scales(step: Any) -> tuple[Any, Any]:
    """The step and its reciprocal as float32: compilers multiply by the one where a division is written."""
    return np.float32(step), np.float32(1.0) / np.float32(step)
