"""Gymnasium environments as something to train on: how to build them, and who steps them."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium
from gymnasium.vector import VectorEnv

from thrust_rl.config import ConfigError, require
from thrust_rl.envs.actions import UNMASKABLE, action_spec
from thrust_rl.envs.autoreset import SteppedVector, autoreset_mode
from thrust_rl.envs.batch import CompiledBatch
from thrust_rl.envs.building import FOR_VECTORS, first_built, first_vector
from thrust_rl.envs.checks import built
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.faults import Bounds, bounds_of
from thrust_rl.envs.host import HostBatch, OnEnvError
from thrust_rl.envs.hosted import HostedEnvs, SteppedInProcess
from thrust_rl.envs.masking import MaskInObservation
from thrust_rl.envs.rebuilt import RebuiltVector
from thrust_rl.envs.spaces import MASK_KEY, ObsSpec, obs_spec
from thrust_rl.envs.workers import STEP_TIMEOUT, SteppedByWorkers, require_environments_for


@dataclasses.dataclass(frozen=True)
class HostTask:
    """Separate Gymnasium environments, stepped by the host one after the other or in worker processes.

    Args:
        name: for reports.
        make_env: builds one environment; for worker processes it must be picklable, as functions of a module are.
        workers: processes that step them; 0 steps them in this one.
        on_env_error: what happens when an environment raises, or gives something outside its spaces, or when a worker
            process dies or hangs: "stop" ends the run, "restart" puts new environments in their places and counts the
            episodes as truncated.
        check_range: an observation outside the observation space is an error.
        step_timeout: seconds that a step of all environments of a worker process may take; one that takes longer counts
            as hung. What hangs in this very process cannot be stopped from here.

    Raises:
        ConfigError: a setting breaks a rule.

    Example:
        >>> task = HostTask("CartPole-v1", lambda: gymnasium.make("CartPole-v1"))
        >>> task.action_space
        Discrete(2)
    """

    name: str
    make_env: Callable[[], gymnasium.Env[Any, Any]]
    workers: int = 0
    on_env_error: OnEnvError = "stop"
    check_range: bool = True
    step_timeout: float = STEP_TIMEOUT

    def __post_init__(self) -> None:
        """Check the settings."""
        require(self.workers >= 0, f"env_workers is {self.workers}: it must be at least 0")
        require(
            0 < self.step_timeout < math.inf,
            f"step_timeout is {self.step_timeout}: it must be a positive number of seconds",
        )

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Of one environment, with its action mask if its `info` reports one."""
        return _spaces(self)[0]

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Of one environment."""
        return _spaces(self)[1]

    def build(self) -> gymnasium.Env[Any, Any]:
        """One environment, ready to be trained on."""
        env = built(self.make_env, otherwise=FOR_VECTORS)
        alternatives = _spaces(self)[2]
        return env if alternatives is None else MaskInObservation(env, alternatives)

    def start(self, num_envs: int) -> HostedEnvs:
        """Build the environments.

        Raises:
            ConfigError: there are more workers than environments.
        """
        batch = functools.partial(_batch, self)
        if not self.workers:
            return SteppedInProcess(batch(0, num_envs))
        require_environments_for(self.workers, num_envs)
        spec = _spec(self)
        return SteppedByWorkers(
            batch,
            spec,
            self.action_space,
            num_envs=num_envs,
            workers=self.workers,
            step_timeout=self.step_timeout,
            restart=self.on_env_error == "restart",
        )


@dataclasses.dataclass(frozen=True)
class VectorTask:
    """A Gymnasium vector environment, of any autoreset mode.

    It is one object, of which no part can be replaced: where one environment fails, that ends the run, or all are built
    anew. Most vectors do not tell which of their environments raised; a `SyncVectorEnv` and an `AsyncVectorEnv` do.

    Args:
        name: for reports.
        make_vector: builds it with a number of environments.
        check_range: an observation outside the observation space is an error.
        on_env_error: "stop" ends the run when an environment fails, "restart" builds the vector anew and counts all of
            its environments as replaced.
    """

    name: str
    make_vector: Callable[[int], VectorEnv[Any, Any, Any]]
    check_range: bool = True
    on_env_error: OnEnvError = "stop"

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Of one environment."""
        return _vector_spaces(self)[0]

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Of one environment."""
        return _vector_spaces(self)[1]

    def start(self, num_envs: int) -> HostedEnvs:
        """Build it.

        Raises:
            ConfigError: it has another number of environments.
        """
        build = functools.partial(self._stepped, num_envs)
        return build(0) if self.on_env_error == "stop" else RebuiltVector(build, num_envs)

    def _stepped(self, num_envs: int, steps: int) -> SteppedVector:
        """With so many steps behind it."""
        vector = self.make_vector(num_envs)
        require(
            vector.num_envs == num_envs,
            f"the vector environment has {vector.num_envs} environments and num_envs is {num_envs}: make them equal",
        )
        bounds = _bounds(self.observation_space, check_range=self.check_range)
        return SteppedVector(vector, _spec(self), bounds, mask_in_info=_vector_spaces(self)[2] is not None, steps=steps)


@dataclasses.dataclass(frozen=True)
class CompiledTask:
    """One of the library's own environments, stepped by the host: the same numbers as in compiled training."""

    env: FunctionalEnv

    @property
    def name(self) -> str:
        """For reports."""
        return self.env.name

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Of one environment."""
        return self.env.observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Of one environment."""
        return self.env.action_space

    def start(self, num_envs: int) -> HostedEnvs:
        """Ready to begin."""
        return SteppedInProcess(CompiledBatch(self.env, num_envs))


AnyTask: TypeAlias = HostTask | VectorTask | CompiledTask

Found = tuple[gymnasium.Space[Any], gymnasium.Space[Any], int | None]  # observations, actions, mask in the info


@functools.lru_cache(maxsize=64)
def _spaces(task: HostTask) -> Found:
    """The spaces, found by building one environment and beginning one episode."""
    env = first_built(task.name, task.make_env)
    try:
        info = _first_info(env, task.name)  # before the spaces are read: a reset may change them
        return _found(env.observation_space, env.action_space, info)
    finally:
        with contextlib.suppress(Exception):  # it has said what it was built for
            env.close()


@functools.lru_cache(maxsize=64)
def _vector_spaces(task: VectorTask) -> Found:
    vector = first_vector(task.name, task.make_vector)
    try:
        autoreset_mode(vector)
        info = _first_info(vector, task.name)
        return _found(vector.single_observation_space, vector.single_action_space, info)
    finally:
        with contextlib.suppress(Exception):
            vector.close()


def _first_info(env: Any, name: str) -> dict[str, Any]:
    """What a first reset reports.

    Raises:
        ConfigError: it fails, or gives no observation and info.
    """
    try:
        _, info = env.reset(seed=0)
        return dict(info)
    except Exception as error:  # noqa: BLE001  # an environment may raise anything
        raise ConfigError(
            f"{name} cannot be built: its first reset(seed=0) failed ({type(error).__name__}: {error});"
            " it must take seed and options by keyword, and return an observation and an info dict"
        ) from error


def _found(observations: gymnasium.Space[Any], actions: gymnasium.Space[Any], info: dict[str, Any]) -> Found:
    in_dict = isinstance(observations, gymnasium.spaces.Dict) and MASK_KEY in observations.spaces
    if MASK_KEY not in info or in_dict:
        return observations, actions, None
    alternatives = action_spec(actions).num_alternatives
    if alternatives is None:
        raise ConfigError(f"info has an action_mask, but actions of {actions} {UNMASKABLE}")
    mask = gymnasium.spaces.MultiBinary(alternatives)
    return gymnasium.spaces.Dict({"obs": observations, MASK_KEY: mask}), actions, alternatives


def _batch(task: HostTask, first: int, count: int) -> HostBatch:
    """Environments from an index on."""
    spec = _spec(task)
    return HostBatch(
        [task.build() for _ in range(count)],
        spec=spec,
        bounds=_bounds(task.observation_space, check_range=task.check_range),
        first_index=first,
        remake=task.build if task.on_env_error == "restart" else None,
        refuse_masks=spec.mask is None,
    )


def _spec(task: HostTask | VectorTask) -> ObsSpec:
    """Of an observation, with the choices that its mask is about."""
    spec = obs_spec(task.observation_space)
    return spec if spec.mask is None else spec.masking(action_spec(task.action_space).sizes)


def _bounds(space: gymnasium.Space[Any], *, check_range: bool) -> list[Bounds | None]:
    return bounds_of(space) if check_range else [None] * len(obs_spec(space).parts)
