"""Arrays at the edge of the objects: taken in only with the kind, shape and values that were asked for."""

import operator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Shape: TypeAlias = tuple[int | None, ...]  # None: any length but 0

_INTEGERS = "integers are expected; pass the sampled actions themselves, for example as actions.astype(np.int32)"
_FLAGS = "booleans are expected; compare instead of casting, for example flags == 1"
_FLOATS = "floating-point numbers are expected; cast them with .astype(np.float32)"


def floats(name: str, value: Any, shape: Shape, axes: str) -> NDArray[np.float32]:
    """Finite numbers as float32.

    Args:
        name: what to call the array in an error.
        value: an array of floating-point numbers.
        shape: its length along every axis; nothing is broadcast.
        axes: what the axes are called, for example "env obs".

    Raises:
        TypeError: the numbers are of another kind.
        ValueError: the shape is another, or a number is not finite.

    Example:
        >>> floats("obs", [[0.5, 1.0]], (1, 2), "env obs").dtype
        dtype('float32')
    """
    array = possible_floats(name, value, shape, axes)
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(
            f"{name}{where} is {array[tuple(where)]}: every number must be finite;"
            f" look for what made it (the first of {int((~np.isfinite(array)).sum())})"
        )
    return array


def possible_floats(name: str, value: Any, shape: Shape, axes: str) -> NDArray[np.float32]:
    """`floats` that need not be finite."""
    return _checked(name, value, "f", _FLOATS, shape, axes).astype(np.float32, copy=False)


def integers(name: str, value: Any, shape: Shape, axes: str, *, below: int | None = None) -> NDArray[np.int32]:
    """Integers from 0 up as int32, all less than `below`.

    Raises:
        TypeError: the numbers are not integers.
        ValueError: the shape is another, or a number lies outside.
    """
    array = _checked(name, value, "iu", _INTEGERS, shape, axes)
    limit = 2**31 if below is None else below
    outside = (array < 0) | (array >= limit)
    if outside.any():
        where = np.argwhere(outside)[0].tolist()
        raise ValueError(f"{name}{where} is {array[tuple(where)]}: every one must lie in [0, {limit - 1}]")
    return array.astype(np.int32, copy=False)


def flags(name: str, value: Any, shape: Shape, axes: str) -> NDArray[np.bool_]:
    """Booleans.

    Raises:
        TypeError: they are of another kind.
        ValueError: the shape is another.
    """
    return _checked(name, value, "b", _FLAGS, shape, axes)


def zeros(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """NumPy zeros to stand in a record; records are annotated with JAX's arrays, hence `Any`."""
    return np.zeros(shape, dtype)


def copied(array: Any) -> Any:
    """A NumPy copy that its receiver may change, to stand in a record; see `zeros`."""
    return np.array(array)


def positive(name: str, value: Any) -> int:
    """A length, width or number of things as an `int`.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is less than 1.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r} ({type(value).__name__}): expected an integer") from None
    if number < 1:
        raise ValueError(f"{name} is {number}: it must be at least 1")
    return number


def _checked(name: str, value: Any, kinds: str, remedy: str, shape: Shape, axes: str) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name} has dtype {array.dtype}: {remedy}")
    fits = len(array.shape) == len(shape) and all(
        length == wanted or (wanted is None and length > 0) for length, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(
            f"{name} has shape {array.shape}: expected ({wanted}) for the axes [{axes.replace(' ', ', ')}];"
            " stack or index it to that shape, nothing is broadcast"
        )
    return array
