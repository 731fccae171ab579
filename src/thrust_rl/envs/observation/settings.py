"""Settings of observation models, checked: numbers, probabilities, whole numbers, one number per coordinate."""

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

import gymnasium
import numpy as np

from thrust_rl.config import ConfigError, require


def number(name: str, value: Any) -> float:
    """A setting as a `float`.

    Raises:
        ConfigError: it is not a number.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ConfigError(f"{name} is {value!r} ({type(value).__name__}): it must be a number, such as 0.5")
    return float(value)


def probability(name: str, value: Any) -> float:
    """A setting as a probability.

    Raises:
        ConfigError: it is not a number, or outside [0, 1].
    """
    share = number(name, value)
    require(0.0 <= share <= 1.0, f"{name} is {value}: a probability must lie in [0, 1]; 0.5 means every other frame")
    return share


def whole(name: str, value: Any, *, least: int) -> int:
    """A setting as an `int`.

    Raises:
        ConfigError: it is not a whole number, or less than `least`.
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        integer = operator.index(value)
    except TypeError:
        raise ConfigError(
            f"{name} is {value!r} ({type(value).__name__}): it must be a whole number, such as 3"
        ) from None
    require(integer >= least, f"{name} is {integer}: it must be at least {least}")
    return integer


def per_coordinate(name: str, value: Any, *, least: float, open_low: bool = False) -> float | tuple[float, ...]:
    """One number for all coordinates, or a tuple with one for each.

    Raises:
        ConfigError: one of them is not a finite number, or too small.
    """
    several = isinstance(value, Iterable) and not isinstance(value, str)
    values = tuple(number(name, item) for item in (value if several else (value,)))
    require(bool(values), f"{name} is empty: give one number for all coordinates, or one for each")
    for item in values:
        inside = math.isfinite(item) and (item > least if open_low else item >= least)
        rule = f"{'greater than' if open_low else 'at least'} {least:g}"
        require(inside, f"{name} is {item}: it must be finite and {rule}")
    return values[0] if len(values) == 1 else values


def indices(name: str, value: Any) -> tuple[int, ...]:
    """Coordinates, each given once.

    Raises:
        ConfigError: there are none, one is negative or no whole number, or one is given twice.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{name} is {value!r}: it must be a tuple of coordinates, such as (1, 3)")
    numbers = tuple(whole(f"a coordinate of {name}", item, least=0) for item in value)
    require(bool(numbers), f"{name} is empty: name at least one coordinate, or leave the mask out")
    twice = sorted({item for item in numbers if numbers.count(item) > 1})
    require(not twice, f"{name} {numbers} names coordinate {', '.join(map(str, twice))} twice: give each one once")
    return numbers


def require_coordinates(what: str, numbers: tuple[int, ...], space: gymnasium.spaces.Box) -> int:
    """How many coordinates a space has; they are the entries of its last axis.

    Raises:
        ConfigError: it has no axis, or lacks one of these coordinates.
    """
    require(
        bool(space.shape), f"{what} needs an observation with coordinates: {space} is a single number; leave it out"
    )
    size = space.shape[-1]
    outside = [item for item in numbers if item >= size]
    require(
        not outside,
        f"{what} {numbers} asks for coordinate {', '.join(map(str, outside))}: observations of shape {space.shape} have"
        f" coordinates 0 to {size - 1}, counted from 0 along the last axis",
    )
    return size


def require_length(what: str, value: float | tuple[float, ...], space: gymnasium.spaces.Box) -> None:
    """Check that one number per coordinate means as many as there are.

    Raises:
        ConfigError: their numbers differ.
    """
    if isinstance(value, tuple):
        size = space.shape[-1] if space.shape else 1
        require(
            len(value) == size,
            f"{what} has {len(value)} numbers: observations of shape {space.shape} have {size} along the last axis;"
            " give one number for all, or one for each (models before it in a stack may have hidden some)",
        )
