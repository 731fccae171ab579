"""Environments of other packages, each an extra: who builds what stands behind `gymnax:`, `popgym:` and `minigrid:`."""

from collections.abc import Callable
from typing import Any

import gymnasium

from thrust_rl.config import ConfigError
from thrust_rl.envs.adapters.gymnax import gymnax_env, gymnax_ids
from thrust_rl.envs.adapters.minigrid import minigrid_env, minigrid_ids
from thrust_rl.envs.adapters.popgym import popgym_env, popgym_ids
from thrust_rl.envs.core import FunctionalEnv

COMPILED: dict[str, Callable[..., FunctionalEnv]] = {"gymnax": gymnax_env}
"""By prefix: environments that are compiled; called with the name behind the prefix and parameters by keyword."""

HOSTED: dict[str, Callable[..., gymnasium.Env[Any, Any]]] = {"minigrid": minigrid_env, "popgym": popgym_env}
"""By prefix: environments that the host steps; they also take `twin`, for what shows everything."""

_IDS: dict[str, Callable[[], list[str]]] = {"gymnax": gymnax_ids, "minigrid": minigrid_ids, "popgym": popgym_ids}
_OWNERS = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "popgym-": "popgym"}  # of names without a prefix


def adapter_of(name: str) -> tuple[str, str] | None:
    """The prefix and the rest of a name that an adapter builds; None if none does.

    Names that say whose they are need no prefix.

    Example:
        >>> adapter_of("minigrid:MiniGrid-MemoryS7-v0") == adapter_of("MiniGrid-MemoryS7-v0")
        True
        >>> adapter_of("popgym-HigherLowerEasy-v0"), adapter_of("gymnasium:CartPole-v1")
        (('popgym', 'popgym-HigherLowerEasy-v0'), None)
    """
    prefix, colon, rest = name.partition(":")
    if colon:
        return (prefix, rest) if prefix in _IDS else None
    return next(((prefix, name) for start, prefix in _OWNERS.items() if name.startswith(start)), None)


def adapter_names() -> dict[str, list[str] | str]:
    """By prefix: the names to be had, prefix included, or why there are none.

    Example:
        >>> sorted(adapter_names())
        ['gymnax', 'minigrid', 'popgym']
    """
    return {prefix: _names(prefix) for prefix in _IDS}


def _names(prefix: str) -> list[str] | str:
    try:
        return [f"{prefix}:{name}" for name in _IDS[prefix]()]
    except ConfigError as error:
        return str(error)
