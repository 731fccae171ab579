"""Files that are whole or not there, and what is noted about the machine that wrote them."""

import glob
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from thrust_rl.config import ConfigError, require

VERSIONED_PACKAGES = ("thrust-rl", "jax", "jaxlib", "equinox", "optax", "gymnasium", "numpy")


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into that appears under its name when the block ends well, and otherwise never.

    What was there before stays until then, whatever happens to the process or to the machine.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def sweep(path: Path) -> None:
    """Remove what killed processes left of writing this file."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        left.unlink(missing_ok=True)


def writable_folder(path: str | Path, *, name: str = "out") -> Path:
    """The folder, created if needed; `name` is what messages call it.

    Raises:
        ConfigError: it is a file, or cannot be written to.
    """
    folder = Path(path)
    try:
        require(not folder.exists() or folder.is_dir(), f"{name} is {folder}: that is a file; give a folder")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"{name} is {folder}: cannot write there ({said}); give another folder") from error
    return folder


def write_json(path: Path, data: dict[str, Any], *, indent: int | None = 1) -> None:
    """Write a file that is either whole or not there."""
    with whole(path) as file:
        file.write(f"{json.dumps(data, indent=indent, allow_nan=False)}\n".encode())


def slug(name: str) -> str:
    """A name as a part of a file name; different names stay different.

    Example:
        >>> slug("CartPole-v1|mask:1,3")[:20]
        'CartPole-v1_mask_1_3'
    """
    safe = re.sub(r"[^A-Za-z0-9.+-]", "_", name)
    if safe == name and len(name) <= 80:
        return name
    return f"{safe[:80]}_{hashlib.sha256(json.dumps({'name': name}).encode()).hexdigest()[:6]}"


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
    require_schema(data, path, schema=schema, version=version, remedy=remedy)
    return dict(data)


def require_schema(data: Any, path: Path, *, schema: str, version: int, remedy: str) -> None:
    """What a file holds says that it is ours, in the version that is understood; arguments as in `read_json`.

    Raises:
        ConfigError: it does not.
    """
    said = data.get("schema") if isinstance(data, dict) else None
    require(said == schema, f"{path} is no {schema} (its schema is {said!r}): {remedy}")
    found = data.get("schema_version")
    require(
        found == version and isinstance(found, int) and not isinstance(found, bool),
        f"{path} has schema version {found!r}, and this release reads version {version}: {remedy},"
        " or use the release that wrote it",
    )


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
