"""Gymnasium environments over functional ones: an object that holds a stream and moves it on."""

import dataclasses
from typing import Any, ClassVar, SupportsIndex

import gymnasium
import jax
import numpy as np

from thrust_rl.envs.batch import CompiledBatch
from thrust_rl.envs.cartpole import Integrator
from thrust_rl.envs.checks import SEED_LIMIT, checked_action, checked_seed, refuse_options
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.registry import cartpole, flickering_cartpole, masked_cartpole
from thrust_rl.envs.render import FRAMES_PER_SECOND, RENDER_MODES, checked_render_mode, picture
from thrust_rl.envs.streams import Stream


@dataclasses.dataclass(frozen=True, eq=False)
class Snapshot:
    """A stateful environment at one moment, random numbers included. Immutable; restore it as often as you like."""

    functional: FunctionalEnv  # whose moment it is
    stream: Stream
    over: bool  # the episode has ended


class StatefulEnv(gymnasium.Env[Any, Any]):
    """Any `FunctionalEnv` as a `gymnasium.Env`; what the sensor did is in `info["blank"]`.

    `reset(seed=s)` begins the stream that environment 0 of the packaged training has under seed s. `reset()` goes on
    with the stream that runs; before there is one it takes the constructor's seed, or fresh entropy. Every episode of
    a stream begins differently, also when `reset()` is called repeatedly.

    Args:
        functional: physics, sensor and time limit.
        seed: of the first `reset()`, unless that gets one.
        render_mode: what `render()` returns: "rgb_array" (400 x 600 pixels) or "ansi" (text).

    Example:
        >>> env = StatefulEnv(flickering_cartpole(flicker_prob=1.0), seed=0)
        >>> obs, info = env.reset()
        >>> before = env.clone_state()
        >>> first = env.step(1)
        >>> env.restore_state(before)
        >>> bool((env.step(1)[0] == first[0]).all()), info
        (True, {'blank': True})
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Gymnasium declares it without ClassVar
        "render_modes": list(RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
    }

    def __init__(
        self, functional: FunctionalEnv, *, seed: SupportsIndex | None = None, render_mode: str | None = None
    ) -> None:
        self.render_mode = checked_render_mode(render_mode)
        self.observation_space = functional.observation_space
        self.action_space = functional.action_space
        self._seed = None if seed is None else checked_seed(seed)
        self._batch = CompiledBatch(functional, 1)
        self._over = False

    @property
    def functional(self) -> FunctionalEnv:
        """The pure environment inside."""
        return self._batch.functional

    def reset(
        self, *, seed: SupportsIndex | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: on a new stream if a seed is given, else on the one that runs.

        Raises:
            ConfigError: the seed lies outside [0, 2³²).
            ValueError: options were given; there are none.
        """
        refuse_options(options)
        number = None if seed is None else checked_seed(seed)
        super().reset(seed=number)
        frames = self._batch.reset(number, first_seed=self._first_seed)
        self._over = False
        return _first(frames.obs), {"blank": bool(frames.info["blank"][0])}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One transition.

        Raises:
            ValueError: there is no running episode, or the action lies outside the space.
            TypeError: the action's dtype is wrong; for a `Discrete` space, it is not one integer.
        """
        if self._batch.streams is None:
            raise ValueError("step() before reset(): call reset() to begin the first episode")
        if self._over:
            raise ValueError("step() after the episode ended: call reset() to begin the next one")
        result = self._batch.step(checked_action(action, self.functional.action_space)[None])
        self._over = bool(result.over[0])
        flags = bool(result.terminated[0]), bool(result.truncated[0])
        return _first(result.obs), float(result.reward[0]), *flags, {"blank": bool(result.info["blank"][0])}

    def clone_state(self) -> Snapshot:
        """Everything that the future depends on, given the actions.

        Raises:
            ValueError: nothing has begun yet.
        """
        return Snapshot(self.functional, self._running("clone_state()"), self._over)

    def restore_state(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, taken from this or from another instance of the same environment.

        Raises:
            TypeError: it is no snapshot.
            ValueError: it belongs to another environment, or to the same one with other parameters.
        """
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"restore_state got a {type(snapshot).__name__}: pass what clone_state() returned")
        if snapshot.functional != self.functional:
            raise ValueError(
                f"the snapshot belongs to {snapshot.functional}, not to {self.functional}:"
                " restore it into an environment built with the same parameters"
            )
        self._batch.streams, self._over = snapshot.stream, snapshot.over

    def render(self) -> Any:
        """The current moment as pixels or text; a blanked frame is visibly blank.

        Raises:
            ValueError: nothing has begun yet, no `render_mode` was chosen, or the physics has no picture.
        """
        stream = jax.tree.map(lambda leaf: np.asarray(leaf)[0], self._running("render()"))
        return picture(stream.env_state.physics, blank=bool(stream.frame.blank), mode=self.render_mode)

    def _running(self, what: str) -> Stream:
        if self._batch.streams is None:
            raise ValueError(f"{what} before reset(): call reset() to begin the first episode")
        return self._batch.streams

    def _first_seed(self) -> int:
        return int(self.np_random.integers(SEED_LIMIT)) if self._seed is None else self._seed


def _first(obs: Any) -> Any:
    """The only environment's observation."""
    return jax.tree.map(lambda leaf: leaf[0], obs)


class CartPole(StatefulEnv):
    """Cart-pole, fully observable, 500 steps; `StatefulEnv` says how it behaves.

    Example:
        >>> CartPole(seed=0).reset()[0].shape
        (4,)
    """

    def __init__(
        self, integrator: Integrator = "euler", *, seed: SupportsIndex | None = None, render_mode: str | None = None
    ) -> None:
        super().__init__(cartpole(integrator=integrator), seed=seed, render_mode=render_mode)


class FlickeringCartPole(StatefulEnv):
    """Cart-pole whose frames are blanked to zeros, independently or in bursts; see `StatefulEnv` and `Flicker`.

    Example:
        >>> FlickeringCartPole(1.0, seed=0).reset()
        (array([0., 0., 0., 0.], dtype=float32), {'blank': True})
    """

    def __init__(
        self,
        flicker_prob: float = 0.5,
        burst_len: float | None = None,
        *,
        integrator: Integrator = "euler",
        seed: SupportsIndex | None = None,
        render_mode: str | None = None,
    ) -> None:
        functional = flickering_cartpole(flicker_prob=flicker_prob, burst_len=burst_len, integrator=integrator)
        super().__init__(functional, seed=seed, render_mode=render_mode)


class MaskedCartPole(StatefulEnv):
    """Cart-pole that shows position and angle but no rates; `StatefulEnv` says how it behaves.

    Example:
        >>> MaskedCartPole(seed=0).reset()[0].shape
        (2,)
    """

    def __init__(
        self, integrator: Integrator = "euler", *, seed: SupportsIndex | None = None, render_mode: str | None = None
    ) -> None:
        super().__init__(masked_cartpole(integrator=integrator), seed=seed, render_mode=render_mode)
