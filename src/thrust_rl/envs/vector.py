"""A Gymnasium vector environment whose every step is one compiled call; this is what `gymnasium.make_vec` gives."""

import functools
from typing import Any, ClassVar, SupportsIndex

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from thrust_rl.arrays import positive
from thrust_rl.envs.batch import CompiledBatch, Frames, StepResult
from thrust_rl.envs.checks import SEED_LIMIT, checked_actions, checked_seed, refuse_options
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.registry import make
from thrust_rl.envs.render import FRAMES_PER_SECOND, RENDER_MODES, checked_render_mode, picture


class CompiledVectorEnv(VectorEnv[NDArray[np.float32], Any, NDArray[Any]]):
    """A batch of one `FunctionalEnv` with Gymnasium's same-step autoreset.

    Where an episode ends, the observation returned is the first of the next one; the true successor is in
    `info["final_obs"]`, and what was known about it in `info["final_info"]`. Environment i runs on stream i of the
    seed, as in the packaged training. Seeds work as in `StatefulEnv`: one base seed, not a list.

    Example:
        >>> vector = CompiledVectorEnv(make("CartPole-v1"), 3, seed=0)
        >>> obs, info = vector.reset()
        >>> vector.step([0, 1, 0])[1].tolist()
        [1.0, 1.0, 1.0]
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Gymnasium declares it without ClassVar
        "render_modes": list(RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        functional: FunctionalEnv,
        num_envs: int,
        *,
        seed: SupportsIndex | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs = positive("num_envs", num_envs)
        self.render_mode = checked_render_mode(render_mode)
        self.single_observation_space: gymnasium.Space[Any] = functional.observation_space
        self.single_action_space: gymnasium.Space[Any] = functional.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.functional = functional
        self._seed = None if seed is None else checked_seed(seed)
        self._batch = CompiledBatch(functional, self.num_envs)

    @property
    def key_data(self) -> NDArray[np.uint32]:
        """Of every environment's stream, `[env, word]`.

        Raises:
            ValueError: nothing has begun yet.
        """
        if self._batch.streams is None:
            raise ValueError("no stream before reset(): call reset() to begin every environment")
        return np.asarray(self._batch.streams.key_data)

    def reset(
        self, *, seed: SupportsIndex | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode everywhere: on new streams if a seed is given, else on those that run.

        Raises:
            ConfigError: the seed lies outside [0, 2³²).
            ValueError: options were given; there are none.
        """
        refuse_options(options)
        number = None if seed is None else checked_seed(seed)
        super().reset(seed=number)
        return self._received(self._batch.reset(number, first_seed=self._first_seed))

    def step(
        self, actions: Any
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """One transition of every environment, and a new episode where one ended.

        Raises:
            ValueError: nothing has begun yet, or the actions do not fit.
            TypeError: the actions' dtype is wrong.
        """
        if self._batch.streams is None:
            raise ValueError("step() before reset(): call reset() to begin every environment")
        result, frames = self._batch.step_on(checked_actions(actions, self.single_action_space, self.num_envs))
        obs, info = self._received(frames)
        if result.over.any():
            info |= _final(result)
        return obs, result.reward, result.terminated, result.truncated, info

    def render(self) -> tuple[Any, ...]:
        """One picture per environment.

        Raises:
            ValueError: nothing has begun yet, no `render_mode` was chosen, or the physics has no picture.
        """
        if self._batch.streams is None:
            raise ValueError("render() before reset(): call reset() to begin every environment")
        streams = jax.tree.map(np.asarray, self._batch.streams)
        each = [jax.tree.map(lambda leaf, i=i: leaf[i], streams) for i in range(self.num_envs)]
        return tuple(
            picture(stream.env_state.physics, blank=bool(stream.frame.blank), mode=self.render_mode) for stream in each
        )

    def _first_seed(self) -> int:
        return int(self.np_random.integers(SEED_LIMIT)) if self._seed is None else self._seed

    def _received(self, frames: Frames) -> tuple[NDArray[np.float32], dict[str, Any]]:
        return frames.obs, frames.info | {"_blank": np.ones(self.num_envs, bool)}


def _final(result: StepResult) -> dict[str, Any]:
    """What Gymnasium's same-step autoreset reports about the episodes that ended."""
    over = result.over
    final_obs = np.full(len(over), None, dtype=object)
    for i in np.flatnonzero(over):
        final_obs[i] = result.obs[i].copy()
    final_info = {"blank": result.info["blank"] & over, "_blank": over.copy()}
    return {"final_obs": final_obs, "_final_obs": over.copy(), "final_info": final_info, "_final_info": over.copy()}


def _vector(
    name: str, num_envs: int, *, seed: SupportsIndex | None = None, render_mode: str | None = None, **params: Any
) -> CompiledVectorEnv:
    """The entry point of one registered environment."""
    return CompiledVectorEnv(make(name, **params), num_envs, seed=seed, render_mode=render_mode)


cartpole = functools.partial(_vector, "CartPole-v1")
flickering_cartpole = functools.partial(_vector, "FlickeringCartPole-v0")
masked_cartpole = functools.partial(_vector, "MaskedCartPole-v0")
