"""gymnax environments as functional ones: compiled, with their own time limit and true final observations."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from thrust_rl.config import ConfigError, require
from thrust_rl.envs.adapters.packages import imported, require_id
from thrust_rl.envs.core import FullyObserved, FunctionalEnv
from thrust_rl.envs.spaces import obs_spec
from thrust_rl.maths.distributions import Action
from thrust_rl.types import Key, Obs

NO_LIMIT = 2**31 - 1
Pairs = tuple[tuple[str, Any], ...]


class GymnaxState(NamedTuple):
    """Where a gymnax environment stands. Its observation may be drawn, so it belongs to the state."""

    inner: PyTree  # gymnax's own state
    obs: Obs


@dataclasses.dataclass(frozen=True)
class GymnaxPhysics:
    """A gymnax environment without its auto-reset and without its time limit. Pure, hashable, picklable.

    Of gymnax 1.0 `step_env` says what terminated. Of the older releases it says what is over, the time limit
    included; there, at the limit, the environment is asked again without one.

    Args:
        env_id: as registered with gymnax.
        params: pairs of names and values, for its parameters or for its constructor.
    """

    env_id: str
    params: Pairs = ()

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """gymnax's, as one of Gymnasium's; every `Box` holds float32."""
        return _made(self.env_id, self.params).observations

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """gymnax's, as one of Gymnasium's."""
        return _made(self.env_id, self.params).actions

    @property
    def max_steps(self) -> int:
        """Gymnax's time limit."""
        limit = getattr(_made(self.env_id, self.params).params, "max_steps_in_episode", math.nan)
        require(
            float(limit).is_integer() and limit >= 1,
            f"max_steps_in_episode of gymnax:{self.env_id} is {limit}: give a whole number of at least 1",
        )
        return int(limit)

    def init(self, key: Key) -> GymnaxState:
        """Gymnax's `reset_env`."""
        made = _made(self.env_id, self.params)
        obs, state = made.env.reset_env(key, made.params)
        return GymnaxState(jax.tree.map(jnp.asarray, state), _as_stored(obs, made.observations))

    def step(
        self, key: Key, state: GymnaxState, action: Action
    ) -> tuple[GymnaxState, Float[Array, ""], Bool[Array, ""]]:
        """Gymnax's `step_env`; the state keeps its dtypes."""
        env, params, observations, _ = _made(self.env_id, self.params)
        obs, after, reward, over, _ = env.step_env(key, state.inner, action, params)
        terminated = over if _tells_apart(env) else _without_limit(env, params, after, over)
        inner = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, state.inner)
        reward, terminated = (jnp.asarray(value, dtype) for value, dtype in ((reward, jnp.float32), (terminated, bool)))
        return GymnaxState(inner, _as_stored(obs, observations)), reward.reshape(()), terminated.reshape(())

    def observe(self, state: GymnaxState) -> Obs:
        """What gymnax showed."""
        return state.obs


def gymnax_env(env_id: str, /, **params: Any) -> FunctionalEnv:
    """A gymnax environment, compiled like the library's own.

    Args:
        env_id: as registered with gymnax.
        **params: fields of its parameters (`max_steps_in_episode=200`) or arguments of its constructor.

    Raises:
        ConfigError: gymnax is not installed, has no such environment, or that has no such parameter.
    """
    registration = imported("gymnax.registration", extra="gymnax")
    require_id("gymnax", env_id, registration.registered_envs)
    physics = GymnaxPhysics(env_id, tuple((name, _hashable(value)) for name, value in sorted(params.items())))
    return FunctionalEnv(f"gymnax:{env_id}", physics, FullyObserved(), physics.max_steps)


def gymnax_ids() -> list[str]:
    """What is registered with gymnax.

    Raises:
        ConfigError: gymnax is not installed.
    """
    return list(imported("gymnax.registration", extra="gymnax").registered_envs)


def gymnasium_space(space: Any) -> gymnasium.Space[Any]:
    """One of gymnax's spaces as one of Gymnasium's; numbers become float32, as everywhere in the library.

    Raises:
        ConfigError: it is of an unknown kind.
    """
    kinds = imported("gymnax.environments.spaces", extra="gymnax")
    if isinstance(space, kinds.Discrete):
        return gymnasium.spaces.Discrete(int(space.n))
    if isinstance(space, kinds.Box):
        low, high = (np.broadcast_to(np.asarray(bound, np.float32), space.shape) for bound in (space.low, space.high))
        return gymnasium.spaces.Box(low, high, dtype=np.float32)
    if isinstance(space, kinds.Dict):
        return gymnasium.spaces.Dict({name: gymnasium_space(inner) for name, inner in space.spaces.items()})
    if isinstance(space, kinds.Tuple):
        return gymnasium.spaces.Tuple([gymnasium_space(inner) for inner in space.spaces])
    raise ConfigError(
        f"{space} is a {type(space).__name__}: of gymnax's spaces, Discrete, Box, Dict and Tuple are known"
    )


class _Made(NamedTuple):
    """A gymnax environment, its parameters, and its spaces as Gymnasium's."""

    env: Any
    params: Any
    observations: gymnasium.Space[Any]
    actions: gymnasium.Space[Any]


@functools.lru_cache(maxsize=256)
def _made(env_id: str, params: Pairs) -> _Made:
    """Built once. Its numbers are made here and now, also while something is being traced.

    Raises:
        ConfigError: it cannot be built.
    """
    make, known = imported("gymnax.registration", extra="gymnax").make, ""
    try:
        with jax.ensure_compile_time_eval():
            fields = {field.name for field in dataclasses.fields(make(env_id)[1])}
            known = f"; its parameters are {', '.join(sorted(fields))}"
            env, defaults = make(env_id, **{name: value for name, value in params if name not in fields})
            given = {name: _like(value, getattr(defaults, name)) for name, value in params if name in fields}
            chosen = dataclasses.replace(defaults, **given)
            spaces = gymnasium_space(env.observation_space(chosen)), gymnasium_space(env.action_space(chosen))
            return _Made(env, chosen, *spaces)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001  # building may fail in any way
        raise ConfigError(f"gymnax:{env_id} cannot be built: {type(error).__name__}: {error}{known}") from error


def _like(value: Any, default: Any) -> Any:
    """An array where the default is one."""
    return jnp.asarray(value, default.dtype) if isinstance(default, jax.Array | np.ndarray) else value


def _hashable(value: Any) -> Any:
    """Lists and arrays as tuples."""
    if isinstance(value, jax.Array | np.ndarray):
        value = np.asarray(value).tolist()
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _tells_apart(env: Any) -> bool:
    """Whether `step_env` says what terminated, as from gymnax 1.0 on."""
    return hasattr(env, "is_truncated")


def _without_limit(env: Any, params: Any, after: Any, over: Array) -> Array:
    """What terminated, where `over` counts the time limit as an end."""
    terminal = env.is_terminal(after, dataclasses.replace(params, max_steps_in_episode=NO_LIMIT))
    return jnp.where(after.time >= params.max_steps_in_episode, terminal, over)


def _as_stored(obs: Any, space: gymnasium.Space[Any]) -> Obs:
    """An observation in the dtypes that its space stands for."""
    spec = obs_spec(space)
    leaves = zip(spec.leaves(obs), spec.parts, strict=True)
    return spec.treedef.unflatten([jnp.asarray(leaf, part.dtype).reshape(part.shape) for leaf, part in leaves])
