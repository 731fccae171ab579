"""Action spaces: what a policy's numbers mean, and what reaches the environment."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from thrust_rl.config import ConfigError, require
from thrust_rl.envs.spaces import INT32
from thrust_rl.maths.distributions import (
    Action,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Distribution,
    MultiCategorical,
)

UNMASKABLE = "cannot be masked: drop it, or make the actions Discrete or MultiDiscrete (a switch is a choice of 2)"
MAX_ALTERNATIVES = 4096  # of integers: more are numbers, of which one is near the next
Outputs: TypeAlias = Float[Array, "*axes output"]  # of the actor
Spreads: TypeAlias = Float[Array, " spread"] | None  # learned beside them; log of standard deviations


@runtime_checkable
class ActionSpec(Protocol):
    """An action space as a policy sees it: pure, hashable. Actions are flat: `()` or `[number]` per step."""

    @property
    def num_outputs(self) -> int:
        """How many numbers the actor gives."""

    @property
    def num_spreads(self) -> int:
        """How many spreads are learned beside them; 0 for discrete actions."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many alternatives every choice has; () where there are none to mask."""

    @property
    def num_alternatives(self) -> int | None:
        """Length of a mask over the alternatives; None where there are none to mask."""

    @property
    def width(self) -> int:
        """Length of an action as an input."""

    @property
    def none(self) -> Any:
        """An action before there was one: zeros of a flat action's shape and dtype."""

    def distribution(self, outputs: Outputs, log_std: Spreads) -> Distribution:
        """What the actor's numbers say."""

    def encode(self, action: Action) -> Float[Array, "*axes width"]:
        """An action as an input of a network."""

    def to_env(self, action: Any) -> Any:
        """A flat action `[*axes, ...]` as the environment takes it; for NumPy and JAX arrays alike."""


@dataclasses.dataclass(frozen=True)
class DiscreteActions:
    """One of n alternatives, numbered from `start` for the environment and from 0 for the policy.

    Example:
        >>> DiscreteActions(3).encode(jnp.array(1)).tolist()
        [0.0, 1.0, 0.0]
    """

    n: int
    start: int = 0
    num_spreads = 0

    @property
    def num_outputs(self) -> int:
        """One logit each."""
        return self.n

    @property
    def sizes(self) -> tuple[int, ...]:
        """One choice."""
        return (self.n,)

    num_alternatives = num_outputs
    width = num_outputs

    @property
    def none(self) -> Any:
        """One integer."""
        return np.zeros((), np.int32)

    def distribution(self, outputs: Outputs, log_std: Spreads) -> Distribution:
        """A categorical one."""
        return Categorical(outputs)

    def encode(self, action: Action) -> Float[Array, "*axes width"]:
        """One-hot."""
        return jax.nn.one_hot(action, self.n)

    def to_env(self, action: Any) -> Any:
        """Numbered from `start`."""
        return action + self.start if self.start else action


@dataclasses.dataclass(frozen=True)
class MultiDiscreteActions:
    """Several independent choices, also those of a `Box` of integers; an action is flat, `shape` the environment's."""

    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str = "int32"  # of what the environment takes
    num_spreads = 0

    @property
    def num_outputs(self) -> int:
        """One logit for every alternative of every choice."""
        return sum(self.sizes)

    num_alternatives = num_outputs
    width = num_outputs

    @property
    def none(self) -> Any:
        """One integer for every choice."""
        return np.zeros(len(self.sizes), np.int32)

    def distribution(self, outputs: Outputs, log_std: Spreads) -> Distribution:
        """Categorical ones."""
        return MultiCategorical(tuple(map(Categorical, _split(outputs, self.sizes))))

    def encode(self, action: Action) -> Float[Array, "*axes width"]:
        """One-hots, one after the other."""
        return jnp.concatenate([jax.nn.one_hot(action[..., i], n) for i, n in enumerate(self.sizes)], axis=-1)

    def to_env(self, action: Any) -> Any:
        """Numbered from `starts`, in `shape`."""
        numbered = action + np.array(self.starts, np.int32)
        return numbered.astype(self.dtype).reshape(*action.shape[:-1], *self.shape)


@dataclasses.dataclass(frozen=True)
class MultiBinaryActions:
    """Several switches."""

    shape: tuple[int, ...]
    num_spreads = 0
    sizes = ()
    num_alternatives = None

    @property
    def num_outputs(self) -> int:
        """The log-odds of every switch being on."""
        return math.prod(self.shape)

    width = num_outputs

    @property
    def none(self) -> Any:
        """One integer for every switch."""
        return np.zeros(self.num_outputs, np.int32)

    def distribution(self, outputs: Outputs, log_std: Spreads) -> Distribution:
        """Coins."""
        return Bernoulli(outputs)

    def encode(self, action: Action) -> Float[Array, "*axes width"]:
        """0 and 1."""
        return action.astype(jnp.float32)

    def to_env(self, action: Any) -> Any:
        """In `shape`."""
        return action.astype(np.int8).reshape(*action.shape[:-1], *self.shape)


@dataclasses.dataclass(frozen=True)
class ContinuousActions:
    """Bounded numbers. The policy acts in units where the bounds are ±1, and the environment gets them clipped.

    The distribution is a normal one with a spread that is learned but does not depend on the observation. Clipping is
    a part of the environment, so the log-density of what was drawn is exact, the entropy has a closed form, and the
    bounds themselves are within reach. (Squashing by tanh needs a correction, has no closed entropy, and never reaches
    a bound, where bang-bang control lives.) A coordinate without bounds is passed on as it is.

    Example:
        >>> ContinuousActions((-2.0,), (2.0,), (1,)).to_env(np.array([[0.5], [3.0]])).tolist()
        [[1.0], [2.0]]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    sizes = ()
    num_alternatives = None

    @property
    def num_outputs(self) -> int:
        """The means."""
        return len(self.low)

    num_spreads = num_outputs
    width = num_outputs

    @property
    def none(self) -> Any:
        """The middle of every bounded coordinate."""
        return np.zeros(self.num_outputs, np.float32)

    def distribution(self, outputs: Outputs, log_std: Spreads) -> Distribution:
        """A diagonal normal one."""
        assert log_std is not None
        return DiagonalGaussian(outputs, jnp.broadcast_to(log_std, outputs.shape))

    def encode(self, action: Action) -> Float[Array, "*axes width"]:
        """What the environment made of it, in the policy's units."""
        return jnp.clip(action, *self._limits)

    def to_env(self, action: Any) -> Any:
        """Clipped, in the environment's units and `shape`."""
        low, high = np.where(self._bounded, self._bounds, [[-1.0], [1.0]])
        scaled = (low + high) / 2 + (high - low) / 2 * action.clip(*self._limits)
        return scaled.clip(*self._bounds).astype(np.float32).reshape(*action.shape[:-1], *self.shape)

    @property
    def _bounds(self) -> NDArray[np.float32]:
        return np.array([self.low, self.high], np.float32)

    @property
    def _bounded(self) -> NDArray[np.bool_]:
        """Which coordinates have both bounds, and so units of their own."""
        return np.asarray(np.isfinite(self._bounds).all(axis=0))

    @property
    def _limits(self) -> NDArray[np.float32]:
        """The bounds in the policy's units."""
        return np.where(self._bounded, np.array([[-1.0], [1.0]], np.float32), self._bounds).astype(np.float32)


def action_spec(space: gymnasium.spaces.Space[Any]) -> ActionSpec:
    """The spec of a Gymnasium action space.

    Raises:
        ConfigError: actions of that kind cannot be drawn.

    Example:
        >>> action_spec(gymnasium.spaces.Discrete(4))
        DiscreteActions(n=4, start=0)
    """
    match space:
        case gymnasium.spaces.Discrete():
            return DiscreteActions(int(space.n), int(space.start))
        case gymnasium.spaces.MultiDiscrete():
            sizes, starts = (tuple(int(n) for n in np.ravel(part)) for part in (space.nvec, space.start))
            return MultiDiscreteActions(sizes, starts, space.shape)
        case gymnasium.spaces.MultiBinary():
            return MultiBinaryActions(space.shape)
        case gymnasium.spaces.Box() if np.issubdtype(space.dtype, np.floating):
            low, high = (tuple(np.ravel(bound).astype(float).tolist()) for bound in (space.low, space.high))
            return ContinuousActions(low, high, space.shape)
        case gymnasium.spaces.Box():
            return _integers(space)
    raise ConfigError(
        f"action_space is {space}: actions must be Discrete, MultiDiscrete, MultiBinary or a Box;"
        " wrap the environment with gymnasium.wrappers.TransformAction"
    )


def _integers(space: gymnasium.spaces.Box) -> MultiDiscreteActions:
    """A choice for every integer: from its lowest to its highest value."""
    low, high = ([int(bound) for bound in np.ravel(bounds)] for bounds in (space.low, space.high))
    sizes = tuple(top - bottom + 1 for bottom, top in zip(low, high, strict=True))
    require(
        sum(sizes) <= MAX_ALTERNATIVES,
        f"action_space is {space}: its integers are choices, {sum(sizes):,} alternatives, over {MAX_ALTERNATIVES};"
        " give it narrower bounds, or floating-point numbers with gymnasium.wrappers.TransformAction",
    )
    require(
        min(low, default=0) >= INT32.min and max(high, default=0) <= INT32.max,
        f"action_space is {space}: its integers are beyond what an int32 holds; shift them with"
        " gymnasium.wrappers.TransformAction",
    )
    dtype = "int32" if np.can_cast(np.int32, str(space.dtype)) else str(space.dtype)
    return MultiDiscreteActions(sizes, tuple(low), space.shape, dtype)


def _split(outputs: Float[Array, "*axes output"], sizes: Sequence[int]) -> list[Float[Array, "*axes part"]]:
    return jnp.split(outputs, np.cumsum(sizes)[:-1].tolist(), axis=-1)
