"""Observation spaces: the arrays an observation is made of, and what each of them is."""

import dataclasses
from typing import Any, Protocol, runtime_checkable

import gymnasium
import jax
import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import ConfigError, require

MASK_KEY = "action_mask"
MAX_ONE_HOT = 4096  # alternatives in a part; more are looked up in a table of features instead
MAX_CHOICES = 1 << 20
INT32 = np.iinfo(np.int32)


@runtime_checkable
class Part(Protocol):
    """One array of an observation: pure, hashable."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one frame, or of a stack of frames."""

    @property
    def dtype(self) -> Any:
        """As stored."""

    def stacked(self, frames: int) -> "Part":
        """That many frames, the newest last, as one array."""

    def take(self, value: Any) -> NDArray[Any]:
        """What an environment gave, as stored; the shape is checked by the caller."""


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Numbers on any scale: standardized by running moments, then flattened."""

    shape: tuple[int, ...]
    dtype = np.float32

    def stacked(self, frames: int) -> "Numbers":
        """Frames first."""
        return Numbers((frames, *self.shape))

    def take(self, value: Any) -> NDArray[np.float32]:
        """As float32."""
        return np.asarray(value, np.float32)


@dataclasses.dataclass(frozen=True)
class Image:
    """Bytes `[height, width, channel]`, kept as bytes and scaled to [0, 1] where they are read."""

    shape: tuple[int, ...]
    high: float
    channels_first: bool = False  # as the environment gives it
    flat: bool = False  # the environment gives no channel axis
    dtype = np.uint8

    def stacked(self, frames: int) -> "Image":
        """Frames first."""
        return dataclasses.replace(self, shape=(frames, *self.shape))

    def take(self, value: Any) -> NDArray[np.uint8]:
        """With channels last."""
        pixels = np.asarray(value, np.uint8)
        return np.moveaxis(pixels, 0, -1) if self.channels_first else pixels.reshape(self.shape)


@dataclasses.dataclass(frozen=True)
class Choices:
    """Discrete values, each read as a one-hot of its own length, or where those are long, looked up in a table."""

    sizes: tuple[int, ...]  # of every value of a frame, flattened
    starts: tuple[int, ...]
    shape: tuple[int, ...]
    frames: int = 1  # that are stacked
    dtype = np.int32

    @property
    def is_looked_up(self) -> bool:
        """Whether one-hots would be too long."""
        return sum(self.sizes) > MAX_ONE_HOT

    def stacked(self, frames: int) -> "Choices":
        """Frames first."""
        return dataclasses.replace(self, shape=(frames, *self.shape), frames=frames)

    def take(self, value: Any) -> NDArray[np.int32]:
        """Counted from 0."""
        counted = np.asarray(value, np.int32)
        if not any(self.starts):  # nearly always, and at every step
            return counted
        return np.asarray(counted - np.array(self.starts, np.int32).reshape(self.shape))


@dataclasses.dataclass(frozen=True)
class Switches:
    """Numbers between −1 and 1 that are read as they are: bits, encoded actions, scaled rewards."""

    shape: tuple[int, ...]
    dtype = np.float32

    def stacked(self, frames: int) -> "Switches":
        """Frames first."""
        return Switches((frames, *self.shape))

    def take(self, value: Any) -> NDArray[np.float32]:
        """As float32."""
        return np.asarray(value, np.float32)


@dataclasses.dataclass(frozen=True)
class ActionMask:
    """Which actions are allowed now; read by the actor, not by the network."""

    shape: tuple[int, ...]
    sizes: tuple[int, ...] = ()  # how many alternatives every choice has; () where that is not known
    dtype = np.bool_

    def stacked(self, frames: int) -> "ActionMask":
        """Frames first; the last counts."""
        return ActionMask((frames, *self.shape), self.sizes)

    def take(self, value: Any) -> NDArray[np.bool_]:
        """As booleans."""
        return np.asarray(value).astype(bool)


@dataclasses.dataclass(frozen=True)
class ObsSpec:
    """An observation space as arrays: a tree of parts. Pure, hashable.

    Example:
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> [type(part).__name__ for part in obs_spec(Dict(where=Discrete(5), speed=Box(-1.0, 1.0))).parts]
        ['Numbers', 'Choices']
    """

    parts: tuple[Part, ...]
    treedef: jax.tree_util.PyTreeDef

    @staticmethod
    def of(tree: Any) -> "ObsSpec":
        """From a tree whose leaves are parts."""
        parts, treedef = jax.tree.flatten(tree)
        return ObsSpec(tuple(parts), treedef)

    @property
    def tree(self) -> Any:
        """The parts in the shape of an observation."""
        return self.treedef.unflatten(self.parts)

    @property
    def is_array(self) -> bool:
        """Whether an observation is one array and not a tree of them."""
        return jax.tree_util.treedef_is_leaf(self.treedef)

    @property
    def mask(self) -> int | None:
        """Index of the part that is an action mask."""
        return next((i for i, part in enumerate(self.parts) if isinstance(part, ActionMask)), None)

    def masking(self, sizes: tuple[int, ...]) -> "ObsSpec":
        """With the choices that its action mask is about: how many alternatives each of them has."""
        parts = [
            dataclasses.replace(part, sizes=sizes)
            if isinstance(part, ActionMask) and part.shape == (sum(sizes),)  # another length is refused with the policy
            else part
            for part in self.parts
        ]
        return ObsSpec(tuple(parts), self.treedef)

    def zeros(self, *axes: int) -> Any:
        """An observation of zeros with leading axes."""
        return self.treedef.unflatten([np.zeros((*axes, *part.shape), part.dtype) for part in self.parts])

    def leaves(self, obs: Any) -> list[Any]:
        """The arrays of an observation, in the order of the parts."""
        return self.treedef.flatten_up_to(obs)


def vector_spec(length: int) -> ObsSpec:
    """Plain vectors of numbers."""
    return ObsSpec.of(Numbers((length,)))


def obs_spec(space: gymnasium.spaces.Space[Any]) -> ObsSpec:
    """The spec of a Gymnasium observation space.

    A byte Box with two or three axes is an image; any other Box is numbers. In a Dict, the key `action_mask` is what
    it says.

    Raises:
        ConfigError: some part of the space cannot be read, or there is none.
    """
    spec = ObsSpec.of(_parts(space, "observation_space"))
    require(
        len(spec.parts) > 0, f"observation_space is {space}, which holds nothing: give the environment an observation"
    )
    return spec


def require_read_as_it_is(env: str, spec: ObsSpec) -> None:
    """Check that a compiled environment's observations are what is stored: nobody converts them on their way.

    Raises:
        ConfigError: choices that do not count from 0, or images without a last axis of channels.
    """
    for part in spec.parts:
        counts_from_0 = not (isinstance(part, Choices) and any(part.starts))
        has_channels_last = not (isinstance(part, Image) and (part.channels_first or part.flat))
        require(
            counts_from_0 and has_channels_last,
            f"{env} is compiled, and shows {part}: in compiled environments choices must count from 0, and images have"
            " their channels on the last of three axes",
        )


def _parts(space: gymnasium.spaces.Space[Any], where: str) -> Any:
    match space:
        case gymnasium.spaces.Dict():
            return {name: _named(name, inner, f"{where}[{name!r}]") for name, inner in space.spaces.items()}
        case gymnasium.spaces.Tuple():
            return tuple(_parts(inner, f"{where}[{i}]") for i, inner in enumerate(space.spaces))
        case gymnasium.spaces.Discrete():
            return _choices((int(space.n),), (int(space.start),), (), where)
        case gymnasium.spaces.MultiDiscrete():
            sizes, starts = (tuple(int(n) for n in np.ravel(part)) for part in (space.nvec, space.start))
            return _choices(sizes, starts, space.shape, where)
        case gymnasium.spaces.MultiBinary():
            return Switches(space.shape)
        case gymnasium.spaces.Box():
            return _box(space)
    raise ConfigError(
        f"{where} is {space}: observations must be made of Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple;"
        " wrap the environment with gymnasium.wrappers.TransformObservation"
    )


def _named(name: str, space: gymnasium.spaces.Space[Any], where: str) -> Any:
    if name != MASK_KEY:
        return _parts(space, where)
    require(
        isinstance(space, gymnasium.spaces.MultiBinary | gymnasium.spaces.Box) and len(space.shape or ()) == 1,
        f"{where} is {space}: an action mask is a MultiBinary or a Box with one number for every action",
    )
    return ActionMask(space.shape or ())


def _choices(sizes: tuple[int, ...], starts: tuple[int, ...], shape: tuple[int, ...], where: str) -> Choices:
    require(
        sum(sizes) <= MAX_CHOICES,
        f"{where} has {sum(sizes)} alternatives, over {MAX_CHOICES}: give the environment a representation in numbers",
    )
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    require(
        min(starts, default=0) >= INT32.min and max(ends, default=0) <= INT32.max,
        f"{where} begins at {min(starts, default=0)} and ends below {max(ends, default=0)}, beyond what an int32 holds:"
        " number its alternatives from 0",
    )
    return Choices(sizes, starts, shape)


def _box(space: gymnasium.spaces.Box) -> Numbers | Image:
    if space.dtype != np.uint8 or len(space.shape) not in (2, 3):
        return Numbers(space.shape)
    high = float(space.high.max()) or 1.0
    if len(space.shape) == 2:
        return Image((*space.shape, 1), high, flat=True)
    channels_first = space.shape[0] < min(space.shape[1:])
    shape = (*space.shape[1:], space.shape[0]) if channels_first else space.shape
    return Image(shape, high, channels_first)
