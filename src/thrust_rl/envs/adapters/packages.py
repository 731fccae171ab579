"""Packages that are extras: imported when they are asked for, with a remedy where they are missing."""

import functools
import importlib
from collections.abc import Iterable
from typing import Any

from thrust_rl.config import ConfigError, nearest


@functools.cache
def imported(package: str, *, extra: str) -> Any:
    """A package, or a module of one, that comes with an extra.

    Raises:
        ConfigError: it is not installed, or cannot be imported.

    Example:
        >>> imported("collections.abc", extra="none").__name__
        'collections.abc'
    """
    try:
        return importlib.import_module(package)
    except Exception as error:  # noqa: BLE001  # importing may fail in any way
        raise ConfigError(
            f"{package} cannot be imported ({type(error).__name__}: {error}): install it with"
            f" pip install 'thrust-rl[{extra}]'"
        ) from error


def require_id(prefix: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that a package does not have.

    Raises:
        ConfigError: there is none; the nearest one is suggested.

    Example:
        >>> require_id("popgym", "popgym-HigherLowerEasy-v0", ["popgym-HigherLowerEasy-v0"])
    """
    names = list(known)
    if name not in names:
        hint = nearest(name, names).partition(" (there are")[0]
        raise ConfigError(f"{prefix} has no environment {name!r}{hint} (thrust envs lists what there is)")
