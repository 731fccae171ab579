"""JSON files that are whole or not there, and what is noted about the machine that wrote them."""

import importlib.metadata
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from thrust_rl.config import ConfigError, require

VERSIONED_PACKAGES = ("thrust-rl", "jax", "jaxlib", "equinox", "optax", "gymnasium", "numpy")


def write_json(path: Path, data: dict[str, Any], *, indent: int | None = 1) -> None:
    """Write a file that is either whole or not there."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=indent, allow_nan=False)
            file.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_json(path: Path, *, schema: str, version: int, remedy: str) -> dict[str, Any]:
    """Read a file of ours.

    Args:
        path: of the file.
        schema: what it has to say it is.
        version: the only one that is understood.
        remedy: what to do about a file that cannot be used.

    Raises:
        ConfigError: it cannot be read, is damaged, is something else, or of another version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refused)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): {remedy}") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is damaged (too many lists or objects inside each other): {remedy}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is damaged ({error}): {remedy}") from error
    said = data.get("schema") if isinstance(data, dict) else None
    require(said == schema, f"{path} is no {schema} (its schema is {said!r}): {remedy}")
    found = data.get("schema_version")
    require(
        found == version and isinstance(found, int) and not isinstance(found, bool),
        f"{path} has schema version {found!r}, and this release reads version {version}: {remedy},"
        " or use the release that wrote it",
    )
    return dict(data)


def _refused(constant: str) -> float:
    """NaN and infinities, which Python reads and JSON does not have."""
    raise ValueError(f"{constant} is no number of JSON")


def versions() -> dict[str, str]:
    """Python and the packages that decide the numbers."""
    found = {"python": platform.python_version()}
    for package in VERSIONED_PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def machine() -> dict[str, Any]:
    """What the runs had to themselves."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return {"cores": cores, "platform": platform.platform(), "processor": platform.machine()}
