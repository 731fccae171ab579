"""Choices as models see them in compiled environments: as one-hots, just as `PartialObservation` shows them."""

import dataclasses
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from thrust_rl.envs.core import ObservationModel, ReadsAnySpace, SensorState
from thrust_rl.types import Frame, Key, Obs


@dataclasses.dataclass(frozen=True)
class OneHots(ReadsAnySpace):
    """A model behind a `Discrete` or `MultiDiscrete`: it sees the choices as one-hots in a row.

    Example:
        >>> import jax
        >>> from thrust_rl.envs.observation import Hide
        >>> hot = OneHots(Hide((0,)), sizes=(3,), starts=(1,), keeps_bits=True)
        >>> hot.space(gymnasium.spaces.Discrete(3, start=1))
        MultiBinary(2)
        >>> hot.emit(jax.random.key(0), (), jnp.array(3))[1].obs.tolist()
        [0.0, 1.0]
    """

    model: ObservationModel
    sizes: tuple[int, ...]  # how many alternatives every choice has
    starts: tuple[int, ...]  # the first of them
    keeps_bits: bool  # the model makes zeros and ones of zeros and ones: a `MultiBinary`

    def space(self, space: gymnasium.Space[Any]) -> Any:
        """Of what the model shows of one-hots."""
        seen = self.model.space(self._box)
        return gymnasium.spaces.MultiBinary(seen.shape[0]) if self.keeps_bits else seen

    def init(self, key: Key, space: gymnasium.Space[Any]) -> SensorState:
        """The model's."""
        return self.model.init(key, self._box)

    def advance(self, key: Key, state: SensorState) -> SensorState:
        """The model's."""
        return self.model.advance(key, state)

    def begin_episode(self, state: SensorState) -> SensorState:
        """The model's."""
        return self.model.begin_episode(state)

    def emit(self, key: Key, state: SensorState, obs: Obs) -> tuple[SensorState, Frame]:
        """What the model makes of the one-hots."""
        return self.model.emit(key, state, self._hot(obs))

    @property
    def _box(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(0, 1, (sum(self.sizes),), np.float32)

    def _hot(self, choices: Obs) -> Float[Array, " alternative"]:
        first = np.cumsum(self.sizes) - self.sizes - self.starts  # place of alternative 0 of every choice
        return jnp.zeros(sum(self.sizes), jnp.float32).at[jnp.ravel(choices) + first].set(1)
