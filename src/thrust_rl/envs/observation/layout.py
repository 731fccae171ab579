"""What the parts of an observation are called, and which coordinates are theirs."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import require
from thrust_rl.envs.faults import OUTSIDE, Fault, require_kept, taken_part
from thrust_rl.envs.spaces import MAX_ONE_HOT, ActionMask, Choices, Image, Part, Switches, obs_spec

WHOLE = "obs"  # what an observation without keys is called


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One part of an observation."""

    index: int  # in the order of `obs_spec(space).parts`
    path: str  # keys and positions, with dots between
    space: gymnasium.Space[Any]
    part: Part

    @property
    def names(self) -> tuple[str, ...]:
        """Of its coordinates: all of a part are called alike, except that every one of several choices has a name."""
        path = self.path if self.path and not self.path.isdigit() else f"{WHOLE}.{self.path}".rstrip(".")
        if isinstance(self.part, Image):
            return (path,)
        if isinstance(self.part, Choices):
            choices = [path] if self.part.shape == () else [f"{path}.{i}" for i in range(len(self.part.sizes))]
            return tuple(name for name, size in zip(choices, self.part.sizes, strict=True) for _ in range(size))
        return (path,) * math.prod(self.part.shape)

    @property
    def has_bits(self) -> bool:
        """Its numbers are zeros and ones."""
        return isinstance(self.part, Choices | Switches)

    @property
    def shape(self) -> tuple[int, ...]:
        """In which its numbers are shown: one-hots in a row."""
        return (len(self.names),) if isinstance(self.part, Choices) else self.part.shape

    def numbers(self, value: Any) -> NDArray[np.float32]:
        """In a row; a choice as a one-hot.

        Raises:
            Fault: the value does not lie in the space.
        """
        taken = taken_part(self.part, value)
        if isinstance(self.part, Choices):
            return one_hots(taken, self.part.sizes)
        if isinstance(self.part, Switches):
            require_kept(np.asarray(value), np.int8)
        return np.ravel(taken)


def _require_one_hot(leaf: Leaf) -> None:
    if isinstance(leaf.part, Choices):
        require(
            not leaf.part.is_looked_up,
            f"{leaf.path or WHOLE} has {sum(leaf.part.sizes)} alternatives, over {MAX_ONE_HOT}: to a model choices are"
            " one-hots; give the environment a representation in numbers, or hide this part inside of it",
        )


def one_hots(choices: NDArray[Any], sizes: Sequence[int]) -> NDArray[np.float32]:
    """Choices, counted from 0, as one-hots in a row.

    Raises:
        Fault: there is no such alternative.

    Example:
        >>> one_hots(np.array([1, 0]), (3, 2)).tolist()
        [0.0, 1.0, 0.0, 1.0, 0.0]
    """
    row, ends = np.ravel(choices), np.cumsum(sizes)
    if ((row < 0) | (row >= sizes)).any():
        raise Fault(f"{OUTSIDE.format(choices.tolist())} (counted from 0)")
    hot = np.zeros(ends[-1], np.float32)
    hot[ends - sizes + row] = 1
    return hot


class Layout:
    """How the parts of an observation become the arrays that models read. Action masks are none of them.

    A `Box` that is the only part is one array, of which the last axis holds the coordinates. Otherwise the numbers of
    all parts are one vector, choices as one-hots, and every image stays one; coordinates are those of the vector, and
    after them one for each image as a whole.

    Args:
        space: of the observations.

    Raises:
        ConfigError: policies could not read such observations, one-hots would be too long, or there is nothing to see.

    Example:
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> Layout(Dict(direction=Discrete(4), camera=Box(0, 255, (9, 9, 3), np.uint8))).names
        ('direction', 'direction', 'direction', 'direction', 'camera')
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.space = space
        found = enumerate(zip(_leaves(space, ()), obs_spec(space).parts, strict=True))
        self.leaves = tuple(Leaf(i, ".".join(path), inner, part) for i, ((path, inner), part) in found)
        seen = [leaf for leaf in self.leaves if not isinstance(leaf.part, ActionMask)]
        require(bool(seen), f"observations lie in {space}: there is nothing that a model could hide")
        for leaf in seen:
            _require_one_hot(leaf)
        is_box = len(seen) == 1 and isinstance(seen[0].space, gymnasium.spaces.Box)
        self.only = seen[0] if is_box else None
        self.rows = tuple(leaf for leaf in seen if not isinstance(leaf.part, Image))
        self.images = tuple(leaf for leaf in seen if isinstance(leaf.part, Image))

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the coordinates; None where parts have no names."""
        names = tuple(name for leaf in (*self.rows, *self.images) for name in leaf.names)
        return None if self.only or len(set(names)) == 1 else names

    @property
    def coordinates(self) -> int:
        """How many there are."""
        if self.only is not None:
            return (self.only.space.shape or (0,))[-1]
        return sum(len(leaf.names) for leaf in (*self.rows, *self.images))

    def values(self, obs: Any) -> list[Any]:
        """Of every leaf."""
        return list(_values(self.space, obs))

    def rebuilt(self, spaces: dict[int, gymnasium.Space[Any]]) -> gymnasium.Space[Any]:
        """The space with these leaves, by index, in their places; those that are missing are left out."""
        space = _rebuilt(self.space, iter(spaces.get(leaf.index) for leaf in self.leaves))
        assert space is not None  # something is left to see
        return space


def _leaves(
    space: gymnasium.Space[Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], gymnasium.Space[Any]]]:
    """In the order in which policies read them: keys are sorted."""
    match space:
        case gymnasium.spaces.Dict():
            for name in sorted(space.spaces):
                yield from _leaves(space.spaces[name], (*path, name))
        case gymnasium.spaces.Tuple():
            for i, inner in enumerate(space.spaces):
                yield from _leaves(inner, (*path, str(i)))
        case _:
            yield path, space


def _values(space: gymnasium.Space[Any], obs: Any) -> Iterator[Any]:
    match space:
        case gymnasium.spaces.Dict():
            for name in sorted(space.spaces):
                yield from _values(space.spaces[name], obs[name])
        case gymnasium.spaces.Tuple():
            for inner, value in zip(space.spaces, obs, strict=True):
                yield from _values(inner, value)
        case _:
            yield obs


def _rebuilt(space: gymnasium.Space[Any], leaves: Iterator[gymnasium.Space[Any] | None]) -> gymnasium.Space[Any] | None:
    match space:
        case gymnasium.spaces.Dict():
            named = {name: _rebuilt(space.spaces[name], leaves) for name in sorted(space.spaces)}
            left = {name: inner for name, inner in named.items() if inner is not None}
            return gymnasium.spaces.Dict(left) if left else None
        case gymnasium.spaces.Tuple():
            inners = [inner for inner in (_rebuilt(each, leaves) for each in space.spaces) if inner is not None]
            return gymnasium.spaces.Tuple(inners) if inners else None
    return next(leaves)
