"""What a name such as `module:something` points to."""

import functools
import importlib
import inspect
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry

from thrust_rl.config import ConfigError


def split(target: str) -> tuple[str | None, str]:
    """The module, if one is named, and the name in it.

    Example:
        >>> split("my_module:MyEnv-v0"), split("Pendulum-v1")
        (('my_module', 'MyEnv-v0'), (None, 'Pendulum-v1'))
    """
    module, colon, name = target.partition(":")
    return (module, name) if colon else (None, target)


@functools.cache
def imported(module: str) -> Any:
    """The module.

    Raises:
        ConfigError: it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # importing may fail in any way
        raise ConfigError(f"the module {module!r} cannot be imported: {type(error).__name__}: {error}") from error


def makes_vectors(target: str) -> bool:
    """Whether it builds many environments as one.

    That is a callable of a module that takes `num_envs`, or an id that is registered with a `vector_entry_point` alone.

    Raises:
        ConfigError: the module cannot be imported.

    Example:
        >>> makes_vectors("gymnasium:make_vec"), makes_vectors("gymnasium:make"), makes_vectors("CartPole-v1")
        (True, False, False)
    """
    module, name = split(target)
    found = getattr(imported(module), name, None) if module is not None else None  # importing may register the name
    if name in registry:
        return registry[name].entry_point is None
    return takes_num_envs(found)


def takes_num_envs(build: Any) -> bool:
    """Whether it builds as many environments as it is told to: it can be called with `num_envs`, and is no environment.

    Example:
        >>> takes_num_envs(gymnasium.make_vec), takes_num_envs(gymnasium.make), takes_num_envs(gymnasium.Env)
        (True, False, False)
    """
    if not callable(build) or (isinstance(build, type) and issubclass(build, gymnasium.Env)):
        return False
    try:
        return "num_envs" in inspect.signature(build).parameters
    except (TypeError, ValueError):  # some that are written in C have none
        return False
