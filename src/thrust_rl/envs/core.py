"""What an environment is: an MDP (physics) seen through an observation model (sensor)."""

import dataclasses
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import gymnasium
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from thrust_rl.config import require
from thrust_rl.maths.distributions import Action
from thrust_rl.maths.keys import Purpose, purpose_key
from thrust_rl.types import Frame, Key, Obs, Transition

PhysicsState: TypeAlias = PyTree
SensorState: TypeAlias = PyTree
AnySpace = TypeVar("AnySpace", bound=gymnasium.Space[Any])


class Physics(Protocol):
    """A fully observable MDP: pure, hashable, one environment, no time limit and no reset of its own."""

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Where `observe` lies."""

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """What `step` accepts."""

    def init(self, key: Key) -> PhysicsState:
        """Draw the first state of an episode."""

    def step(
        self, key: Key, state: PhysicsState, action: Action
    ) -> tuple[PhysicsState, Float[Array, ""], Bool[Array, ""]]:
        """Give the next state, the reward and whether that state is absorbing."""

    def observe(self, state: PhysicsState) -> Obs:
        """Everything there is to see."""


class ObservationModel(Protocol):
    """A sensor: pure, hashable. Its clock ticks once per step, whatever the episodes do.

    `advance` never sees the observation, so what the sensor draws at step t is a function of seed,
    environment index and t alone: every policy meets the same blanks. What it remembers of frames it forgets in
    `begin_episode`, so that no frame of one episode is shown in the next.
    """

    def space(self, space: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
        """The space of emitted frames, given the space of observations."""

    def init(self, key: Key, space: gymnasium.spaces.Box) -> SensorState:
        """The sensor at step 0 of a stream, given the space of observations."""

    def advance(self, key: Key, state: SensorState) -> SensorState:
        """One tick of the sensor's clock."""

    def begin_episode(self, state: SensorState) -> SensorState:
        """Forget the frames of the episode before, if it remembers any; the clock stands still."""

    def emit(self, key: Key, state: SensorState, obs: Obs) -> tuple[SensorState, Frame]:
        """What the agent receives; the same function after a reset, a step and for a final observation."""


class EnvState(NamedTuple):
    """The hidden state of one environment."""

    physics: PhysicsState
    sensor: SensorState
    elapsed: Int[Array, ""]  # transitions since the episode began


@dataclasses.dataclass(frozen=True)
class FunctionalEnv:
    """Physics + observation model + time limit: one environment, pure, without auto-reset.

    Keys are those of one step of one stream (`maths.keys.step_key`). `step` and the `restart` that may follow it
    take the same key.

    Example:
        >>> import jax
        >>> from thrust_rl.envs.registry import make
        >>> env = make("FlickeringCartPole-v0", flicker_prob=1.0)
        >>> state, frame = env.init(jax.random.key(0))
        >>> frame.obs.tolist(), bool(frame.blank)
        ([0.0, 0.0, 0.0, 0.0], True)
    """

    name: str
    physics: Physics
    sensor: ObservationModel
    max_steps: int  # transitions after which an episode is truncated

    def __post_init__(self) -> None:
        """Let the sensor check that it fits the physics: a ConfigError here, not clamped indices later."""
        space = self.physics.observation_space
        require(
            isinstance(space, gymnasium.spaces.Box) or isinstance(self.sensor, ReadsAnySpace),
            f"{self.name} has observations in {space}: compiled, observation models need a Box, or choices behind"
            " envs.partial.observed; put PartialObservation around a StatefulEnv of it instead",
        )
        self.sensor.space(self._physics_space)

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Space of the frames."""
        return self.sensor.space(self._physics_space)

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Space of the actions."""
        return self.physics.action_space

    def twin(self) -> "FunctionalEnv":
        """The fully observable twin: the same physics, limit and random numbers, nothing withheld."""
        return dataclasses.replace(self, name=f"{self.name}-twin", sensor=FullyObserved())

    def init(self, key: Key) -> tuple[EnvState, Frame]:
        """Begin a stream and its first episode."""
        sensor = self.sensor.init(purpose_key(key, Purpose.SENSOR), self._physics_space)
        return self._begin(key, sensor)

    def restart(self, key: Key, state: EnvState) -> tuple[EnvState, Frame]:
        """Begin a new episode on the same stream: new physics, the sensor's clock goes on."""
        return self._begin(key, state.sensor)

    def step(self, key: Key, state: EnvState, action: Action) -> tuple[EnvState, Transition]:
        """One transition. When physics ends on the very step of the limit, it terminated."""
        physics, reward, terminated = self.physics.step(purpose_key(key, Purpose.PHYSICS), state.physics, action)
        sensor = self.sensor.advance(purpose_key(key, Purpose.SENSOR), state.sensor)
        sensor, frame = self._emit(key, sensor, physics)
        elapsed = state.elapsed + 1
        truncated = (elapsed >= self.max_steps) & ~terminated
        return EnvState(physics, sensor, elapsed), Transition(frame.obs, frame.blank, reward, terminated, truncated)

    @property
    def _physics_space(self) -> Any:
        """What the sensor is told: a `Box`, or anything where the sensor is a `ReadsAnySpace`."""
        return self.physics.observation_space

    def _begin(self, key: Key, sensor: SensorState) -> tuple[EnvState, Frame]:
        physics = self.physics.init(purpose_key(key, Purpose.RESET))
        sensor, frame = self._emit(key, self.sensor.begin_episode(sensor), physics)
        return EnvState(physics, sensor, jnp.zeros((), jnp.int32)), frame

    def _emit(self, key: Key, sensor: SensorState, physics: PhysicsState) -> tuple[SensorState, Frame]:
        return self.sensor.emit(purpose_key(key, Purpose.FRAME), sensor, self.physics.observe(physics))


def step_and_restart(
    env: FunctionalEnv, key: Key, state: EnvState, action: Action
) -> tuple[EnvState, Transition, Frame]:
    """Step, and begin a new episode where this one is over.

    Returns:
        The state to go on from, the transition with its true successor, and the frame to act on next.
    """
    stepped, result = env.step(key, state, action)
    fresh = env.restart(key, stepped)
    over = result.terminated | result.truncated
    going_on = (stepped, Frame(result.obs, result.blank))
    state, frame = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, going_on)
    return state, result, frame


class ReadsAnySpace:
    """A sensor whose `space` and `init` take more than a `Box`."""


@dataclasses.dataclass(frozen=True)
class FullyObserved(ReadsAnySpace):
    """The sensor that withholds nothing."""

    def space(self, space: AnySpace) -> AnySpace:
        """Unchanged, whatever it is."""
        return space

    def init(self, key: Key, space: gymnasium.Space[Any]) -> SensorState:
        """Nothing to remember."""
        return ()

    def advance(self, key: Key, state: SensorState) -> SensorState:
        """Nothing to do."""
        return state

    def begin_episode(self, state: SensorState) -> SensorState:
        """Nothing to forget."""
        return state

    def emit(self, key: Key, state: SensorState, obs: Obs) -> tuple[SensorState, Frame]:
        """The observation itself."""
        return state, Frame(obs, jnp.zeros((), bool))
