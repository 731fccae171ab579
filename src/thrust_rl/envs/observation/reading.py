"""The arrays that observation models read: a `Box` as it is, or the numbers of several parts as one vector."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl.envs.faults import require_kept
from thrust_rl.envs.observation.layout import Leaf


@dataclasses.dataclass(frozen=True)
class AsItIs:
    """A `Box` as it is, floats as float32."""

    leaf: Leaf
    box: gymnasium.spaces.Box

    @staticmethod
    def of(leaf: Leaf) -> "AsItIs":
        """Of a leaf whose space is a `Box`."""
        assert isinstance(leaf.space, gymnasium.spaces.Box)
        return AsItIs(leaf, _box32(leaf.space))

    def take(self, values: list[Any]) -> NDArray[Any]:
        """The leaf's value."""
        given, dtype = np.asarray(values[self.leaf.index]), self.box.dtype
        if given.dtype != dtype and np.issubdtype(dtype, np.integer):
            require_kept(given, dtype)  # or 300 would be the byte 44 before anybody could look at it
        return np.asarray(given, dtype)

    def give(self, shown: NDArray[Any]) -> dict[int, NDArray[Any]]:
        """The leaf's new value."""
        return {self.leaf.index: np.array(shown)}

    def spaces(self, seen: gymnasium.spaces.Box) -> dict[int, gymnasium.Space[Any]]:
        """The leaf's new space."""
        return {self.leaf.index: seen}


class SideBySide:
    """The numbers of several leaves as one vector of floats, and those that are left to see back in their places.

    Args:
        leaves: whose numbers they are.
        left: which coordinates of the vector are shown, in their order.
        keeps_bits: what is shown of zeros and ones is zeros and ones.
    """

    def __init__(self, leaves: tuple[Leaf, ...], left: Sequence[int], *, keeps_bits: bool) -> None:
        self.size = len(left)  # of what is shown
        self._leaves = leaves
        low, high = (np.concatenate(side) for side in zip(*map(_bounds, leaves), strict=True))
        self.box = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self._shown = [
            _Shown(leaf, keeps_bits and leaf.has_bits, places, shape) for leaf, places, shape in _places(leaves, left)
        ]

    def take(self, values: list[Any]) -> NDArray[np.float32]:
        """The vector."""
        return np.concatenate([leaf.numbers(values[leaf.index]) for leaf in self._leaves])

    def give(self, shown: NDArray[Any]) -> dict[int, NDArray[Any]]:
        """Every leaf's own, in its shape where nothing is missing."""
        return {
            own.leaf.index: shown[own.places].reshape(own.shape).astype(np.int8 if own.is_bits else np.float32)
            for own in self._shown
        }

    def spaces(self, seen: gymnasium.spaces.Box) -> dict[int, gymnasium.Space[Any]]:
        """`MultiBinary` for zeros and ones, which no moments standardize, else a `Box`."""
        return {own.leaf.index: own.space(seen) for own in self._shown}


@dataclasses.dataclass(frozen=True)
class _Shown:
    """What is left to see of a leaf."""

    leaf: Leaf
    is_bits: bool
    places: NDArray[np.intp]  # in the vector that is shown
    shape: tuple[int, ...]

    def space(self, seen: gymnasium.spaces.Box) -> gymnasium.Space[Any]:
        if self.is_bits:
            return gymnasium.spaces.MultiBinary(self.shape[0] if len(self.shape) == 1 else self.shape)
        low, high = (side[self.places].reshape(self.shape) for side in (seen.low, seen.high))
        return gymnasium.spaces.Box(low, high, self.shape, dtype=np.float32)


def _places(leaves: tuple[Leaf, ...], left: Sequence[int]) -> Iterator[tuple[Leaf, NDArray[np.intp], tuple[int, ...]]]:
    """For each leaf of which something is left: where it stands among what is left, and its shape."""
    first, order = 0, np.asarray(left)
    for leaf in leaves:
        size = len(leaf.names)
        places = np.flatnonzero((order >= first) & (order < first + size))
        if np.array_equal(order[places], np.arange(first, first + size)):
            yield leaf, places, leaf.shape
        elif len(places):
            yield leaf, places, (len(places),)
        first += size


def _bounds(leaf: Leaf) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    if isinstance(leaf.space, gymnasium.spaces.Box):
        box = _box32(leaf.space)
        return np.ravel(box.low).astype(np.float32), np.ravel(box.high).astype(np.float32)
    return np.zeros(len(leaf.names), np.float32), np.ones(len(leaf.names), np.float32)


def _box32(space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
    """The space of what comes in, floats as float32."""
    if not np.issubdtype(space.dtype, np.floating):
        return space
    with np.errstate(over="ignore"):  # a bound beyond the largest float32 becomes infinite
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    return gymnasium.spaces.Box(low, high, dtype=np.float32)
