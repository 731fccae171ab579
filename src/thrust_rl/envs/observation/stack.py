"""Several observation models, one behind the other."""

import dataclasses
from collections.abc import Iterator, Sequence

import gymnasium
import jax
import jax.numpy as jnp

from thrust_rl.envs.core import FullyObserved, ObservationModel, SensorState
from thrust_rl.envs.observation.one_hots import OneHots
from thrust_rl.envs.observation.relay import Draw, Relay, draw_key
from thrust_rl.types import Frame, Key, Obs


@dataclasses.dataclass(frozen=True)
class Stacked:
    """A frame passes through `models` in order: the first is nearest to the physics, the last nearest to the agent.

    A model draws the same numbers alone or in a stack, whatever its neighbours: adding noise changes no blank. A second
    model of the same kind draws numbers of its own. `blank` travels with its frame, so a blanked frame that is delayed
    arrives blank, and one that is shown again is blank again.

    A model of your own shares numbers with no other if it folds a constant of its own into its key.

    Example:
        >>> from thrust_rl.envs.observation import Flicker, Mask
        >>> Stacked((Mask((0, 2)), Flicker(0.5))).space(gymnasium.spaces.Box(1, 2, (4,))).low.tolist()
        [0.0, 0.0]
    """

    models: tuple[ObservationModel, ...]

    def __post_init__(self) -> None:
        """Flatten: a stack inside a stack is one stack."""
        object.__setattr__(self, "models", tuple(inner for model in self.models for inner in models_of(model)))

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """Of what the last model emits."""
        for model in self.models:
            space = model.space(space)
        return space

    def init(self, key: Key, space: gymnasium.spaces.Box) -> SensorState:
        """Every model's state."""
        given = spaces(self.models, space)
        return tuple(model.init(own, seen) for own, model, seen in zip(*self._keyed(key), given, strict=True))

    def advance(self, key: Key, state: SensorState) -> SensorState:
        """Every model's clock ticks."""
        return tuple(model.advance(own, old) for own, model, old in zip(*self._keyed(key), state, strict=True))

    def begin_episode(self, state: SensorState) -> SensorState:
        """Every model forgets."""
        return tuple(model.begin_episode(old) for model, old in zip(self.models, state, strict=True))

    def emit(self, key: Key, state: SensorState, obs: Obs) -> tuple[SensorState, Frame]:
        """What the last model makes of it."""
        frame, states = Frame(obs, jnp.zeros((), bool)), []
        for own, model, old in zip(*self._keyed(key), state, strict=True):
            if isinstance(model, Relay):
                new, frame = model.relay(old, frame)
            else:
                new, seen = model.emit(own, old, frame.obs)
                frame = Frame(seen.obs, seen.blank | frame.blank)
            states.append(new)
        return tuple(states), frame

    def _keyed(self, key: Key) -> tuple[list[Key], tuple[ObservationModel, ...]]:
        return [own_key(key, n) for n in ordinals(self.models)], self.models


def stacked(*models: ObservationModel) -> ObservationModel:
    """As few layers as there are: nothing for none, the model itself for one.

    Example:
        >>> stacked(FullyObserved())
        FullyObserved()
    """
    flat = Stacked(models).models
    return Stacked(flat) if len(flat) > 1 else (flat[0] if flat else FullyObserved())


def models_of(model: ObservationModel) -> tuple[ObservationModel, ...]:
    """The single models that a model consists of, nearest to the physics first; none if it withholds nothing."""
    if isinstance(model, FullyObserved):
        return ()
    if isinstance(model, OneHots):
        return models_of(model.model)
    return model.models if isinstance(model, Stacked) else (model,)


def ordinals(models: Sequence[ObservationModel]) -> tuple[int, ...]:
    """How many models of the same kind come before each one.

    Example:
        >>> from thrust_rl.envs.observation import Delay, Flicker
        >>> ordinals([Flicker(0.5), Delay(1), Flicker(0.1)])
        (0, 0, 1)
    """
    kinds = [type(model) for model in models]
    return tuple(kinds[:i].count(kind) for i, kind in enumerate(kinds))


def own_key(key: Key, ordinal: int) -> Key:
    """The key of one model of a stack: the first of its kind has the stack's own."""
    return key if ordinal == 0 else jax.random.fold_in(draw_key(key, Draw.AGAIN), ordinal)


def spaces(models: Sequence[ObservationModel], space: gymnasium.spaces.Box) -> Iterator[gymnasium.spaces.Box]:
    """The space that each model is given."""
    for model in models:
        yield space
        space = model.space(space)
