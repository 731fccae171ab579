"""Arrays and counts at the edge of the objects: taken in only with the kind, shape and values that were asked for."""

import operator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import require

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
    require_finite(name, array)
    return array


def possible_floats(name: str, value: Any, shape: Shape, axes: str) -> NDArray[np.float32]:
    """`floats` that need not be finite."""
    return _checked(name, value, "f", _FLOATS, shape, axes).astype(np.float32, copy=False)


def integers(name: str, value: Any, shape: Shape, axes: str, *, low: int = 0, below: int = 2**31) -> NDArray[np.int32]:
    """Integers of [low, below) as int32.

    Raises:
        TypeError: the numbers are not integers.
        ValueError: the shape is another, or a number lies outside.
    """
    array = _checked(name, value, "iu", _INTEGERS, shape, axes)
    _require_all(name, array, (array >= low) & (array < below), f"it must lie in [{low}, {below - 1}]")
    return array.astype(np.int32, copy=False)


def flags(name: str, value: Any, shape: Shape, axes: str) -> NDArray[np.bool_]:
    """Booleans.

    Raises:
        TypeError: they are of another kind.
        ValueError: the shape is another.
    """
    return _checked(name, value, "b", _FLAGS, shape, axes)


def shaped(name: str, value: Any, shape: Shape, axes: str) -> NDArray[Any]:
    """An array of that shape, whatever it holds.

    Raises:
        ValueError: the shape is another.
    """
    array = np.asarray(value)
    fits = len(array.shape) == len(shape) and all(
        length == wanted or (wanted is None and length > 0) for length, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(
            f"{name} has shape {array.shape}: expected ({wanted}{',' * (len(shape) == 1)}) for the axes"
            f" [{axes.replace(' ', ', ')}]; stack or index it to that shape, nothing is broadcast"
        )
    return array


def require_finite(name: str, array: NDArray[Any]) -> None:
    """Raise `ValueError`, naming the first place, unless every number is finite; integers and booleans always are."""
    if array.dtype.kind == "f":
        _require_all(name, array, np.isfinite(array), "it must be finite; look for what made it")


def zeros(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """NumPy zeros to stand in a record; records are annotated with JAX's arrays, hence `Any`."""
    return np.zeros(shape, dtype)


def copied(array: Any) -> Any:
    """A NumPy copy that its receiver may change, to stand in a record; see `zeros`."""
    return np.array(array)


def whole(name: str, value: Any) -> int:
    """One integer as an `int`; a boolean is none.

    Raises:
        TypeError: it is not an integer.

    Example:
        >>> whole("seed", np.uint8(7))
        7
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r} ({type(value).__name__}): expected an integer") from None


def positive(name: str, value: Any) -> int:
    """A length, width or number of things as an `int`.

    Raises:
        TypeError: it is not an integer.
        ConfigError: it is less than 1.
    """
    number = whole(name, value)
    require(number >= 1, f"{name} is {number}: it must be at least 1")
    return number


def _checked(name: str, value: Any, kinds: str, remedy: str, shape: Shape, axes: str) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name} has dtype {array.dtype}: {remedy}")
    return shaped(name, array, shape, axes)


def _require_all(name: str, array: NDArray[Any], good: NDArray[np.bool_] | np.bool_, rule: str) -> None:
    """Raise `ValueError` with the first number that breaks the rule, its place, and how many do."""
    if not good.all():
        where = np.argwhere(~good)[0].tolist()
        more = f" (the first of {int((~good).sum())})" if where else ""
        raise ValueError(f"{name}{where or ''} is {array[tuple(where)]}: {rule}{more}")
