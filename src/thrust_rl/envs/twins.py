"""The twin of a wrapped environment: the same one without the observation models around it."""

import copy
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs

from thrust_rl.config import ConfigError
from thrust_rl.envs.partial import PartialObservation


def twin_of(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment without its `PartialObservation` wrappers; other wrappers stay.

    It steps the same environment as `env` does, so use one of the two at a time.

    Raises:
        ConfigError: another wrapper is around one of these and does not tell how it was built.

    Example:
        >>> env = PartialObservation(gymnasium.make("CartPole-v1"), "mask:1,3")
        >>> twin_of(env) is env.env
        True
    """
    if isinstance(env, PartialObservation):
        return twin_of(env.env)
    if not isinstance(env, gymnasium.Wrapper):
        return env
    inner = twin_of(env.env)
    if inner is env.env:
        return env
    if not isinstance(env, RecordConstructorArgs):
        raise ConfigError(
            f"{type(env).__name__} is around a PartialObservation and is no RecordConstructorArgs, so it can not be"
            " built again without: wrap in PartialObservation last"
        )
    return type(env)(env=inner, **{name: value for name, value in env._saved_kwargs.items() if name != "env"})


def twin_spec(spec: EnvSpec) -> EnvSpec:
    """The spec without its `PartialObservation` wrappers; other wrappers stay.

    Example:
        >>> env = PartialObservation(gymnasium.make("CartPole-v1"), "mask:1,3")
        >>> gymnasium.make(twin_spec(env.spec)).observation_space.shape
        (4,)
    """
    own = PartialObservation.wrapper_spec().entry_point
    twin = copy.deepcopy(spec)
    twin.additional_wrappers = tuple(wrapper for wrapper in twin.additional_wrappers if wrapper.entry_point != own)
    return twin
