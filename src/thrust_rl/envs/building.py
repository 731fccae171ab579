"""The first building of what a task was given: what cannot be built says so, and where another task is meant, which."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from thrust_rl.config import ConfigError
from thrust_rl.envs.checks import built
from thrust_rl.envs.targets import takes_num_envs

FOR_VECTORS = "for a gymnasium.vector.VectorEnv give a VectorTask"
FOR_SINGLE = "for one that builds a single gymnasium.Env give a HostTask"


def first_built(name: str, make_env: Any) -> gymnasium.Env[Any, Any]:
    """One environment.

    Raises:
        TypeError: it cannot be called without arguments, or builds something else.
        ConfigError: it cannot be built.
    """
    remedy = "a HostTask calls it without any; fill them in with a lambda"
    if takes_num_envs(make_env):
        remedy = "a HostTask builds one environment at a time; for a function of num_envs give a VectorTask"
    make = functools.partial(_made, name, make_env, (), remedy) if callable(make_env) else make_env
    return built(make, otherwise=FOR_VECTORS)


def first_vector(name: str, make_vector: Any) -> VectorEnv[Any, Any, Any]:
    """A vector of one environment.

    Raises:
        TypeError: it takes no number of environments, or builds something else.
        ConfigError: it cannot be built.
    """
    if not callable(make_vector):
        raise TypeError(
            f"make_vector is a {type(make_vector).__name__}: pass a function of num_envs that builds a"
            f" gymnasium.vector.VectorEnv ({FOR_SINGLE})"
        )
    vector = _made(name, make_vector, (1,), f"a VectorTask calls it with num_envs alone; {FOR_SINGLE}")
    if not isinstance(vector, VectorEnv):
        raise TypeError(
            f"make_vector built a {type(vector).__name__}: expected a gymnasium.vector.VectorEnv ({FOR_SINGLE})"
        )
    return vector


def _made(name: str, make: Callable[..., Any], args: tuple[int, ...], remedy: str) -> Any:
    """What it builds; `remedy`: where it takes other arguments."""
    try:
        return make(*args)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001  # building may fail in any way
        misfit = _misfit(make, args) if isinstance(error, TypeError) else ""
        if misfit:
            given = "make_vector takes other arguments than num_envs" if args else "make_env needs arguments"
            raise TypeError(f"{given} ({misfit}): {remedy}") from error
        raise ConfigError(f"{name} cannot be built: {type(error).__name__}: {error}") from error


def _misfit(make: Callable[..., Any], args: tuple[int, ...]) -> str:
    """Why it cannot be called with them; empty where it can, or that is not known."""
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # some that are written in C have none
        return ""
    try:
        signature.bind(*args)
    except TypeError as error:
        return str(error)
    return ""
