"""What `thrust envs` prints: the environments there are, each as soon as it is known, as building all takes a while."""

import contextlib
import os
import shutil
import textwrap
from collections.abc import Iterator, Sequence

from thrust_rl.config import require
from thrust_rl.envs.adapters import COMPILED, HOSTED
from thrust_rl.envs.catalogue import Entry, described, of_package, own_names, packages, unbuilt

COLUMNS = "name, observation, action, and twin if known"
DOWNLOADED = ("gymnax:MNISTBandit-bsuite",)  # needs a download of its own, which nobody asks for with a list
OWN = "thrust-rl"


def show(names: Sequence[str], *, names_only: bool) -> bool:
    """Print what there is to know of these environments or packages; without any, a list of all.

    Args:
        names: of environments, or of packages for all of theirs.
        names_only: print names alone, at once: nothing is built.

    Returns:
        Whether every environment that was named could be built.

    Raises:
        ConfigError: no environment has that name, or its package is not installed.
    """
    if names_only or not names:
        for line in names_alone(names) if names_only else everything():
            print(line, flush=True)  # whoever reads a pipe need not wait for the rest
        return True
    built = True
    for name in (name for given in names for name in of_package(given) or [given]):
        entry = described(name)
        built &= entry.problem is None or name not in names
        print(environment_text(entry), flush=True)
    return built


def everything() -> Iterator[str]:
    """The library's own environments in full, then for each package a heading and one line for each environment."""
    for name in own_names():
        yield environment_text(_looked_at(name))
    with _silence():
        found = packages()
    for package, names in found.items():
        if isinstance(names, str):
            yield f"\n{package}: {names}"
            continue
        yield f"\n{package}, {'compiled' if package in COMPILED else 'stepped by Python'}: {COLUMNS}"
        width = max(map(len, names), default=0)
        for name in names:
            yield environment_line(_looked_at(name), width)


def names_alone(wanted: Sequence[str] = ()) -> Iterator[str]:
    """For each package, or each of those wanted, a heading and the names under it.

    Raises:
        ConfigError: something else than a package is wanted.
    """
    with _silence():
        groups = {OWN: own_names(), **packages()}
    for package in wanted:
        require(package in groups, f"--names lists packages, and {package!r} is none of them: give {', '.join(groups)}")
    for package in wanted or groups:
        names, prefix = groups[package], f"{package}:" if package in COMPILED | HOSTED else ""
        yield f"{package}, as {prefix}NAME:" if prefix else f"{package}:"
        yield textwrap.fill(
            names if isinstance(names, str) else ", ".join(name.removeprefix(prefix) for name in names),
            shutil.get_terminal_size().columns,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )


def environment_line(entry: Entry, width: int) -> str:
    """An environment on one line, its name in a column of that width; one that could not be built says why.

    Example:
        >>> environment_line(described("MaskedCartPole-v0"), 20)
        '  MaskedCartPole-v0     Box 2 float32             Discrete 2         twin'
    """
    name = f"  {entry.name:<{width}}  "
    if entry.problem is not None:
        return name + entry.problem.removeprefix(f"{entry.name} ")
    return f"{name}{entry.observation:<24}  {entry.action:<17}  {'twin' if entry.has_twin else ''}".rstrip()


def environment_text(entry: Entry) -> str:
    """What is known about an environment; one that could not be built says why."""
    if entry.problem is not None:
        return f"{entry.name}\n    {entry.problem}"
    lines = [
        entry.name,
        f"    {entry.kind}; observations {entry.observation}; actions {entry.action};"
        f" twin {'known' if entry.has_twin else 'not known'};"
        f" returns {'not known' if entry.bounds is None else f'{entry.bounds[0]:g} to {entry.bounds[1]:g}'}",
    ]
    if entry.params:
        lines.append(f"    parameters {', '.join(f'{key}={value}' for key, value in entry.params.items())}")
    return "\n".join(lines)


def _looked_at(name: str) -> Entry:
    """What is known of an environment in a list, which goes on whatever building it does."""
    if name in DOWNLOADED:
        return unbuilt(name, f"not built, since it downloads what it shows: thrust envs {name} does")
    try:
        with _silence():
            return described(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # building may fail in any way
        return unbuilt(name, f"cannot be built: {type(error).__name__}: {error}")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop what is printed meanwhile, by Python or by native code: environments talk while they are built."""
    kept = {}
    for stream in (1, 2):
        with contextlib.suppress(OSError):  # one that is closed stays so
            kept[stream] = os.dup(stream)
    try:
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            for stream in kept:
                os.dup2(nowhere.fileno(), stream)
            yield
    finally:
        for stream, copy in kept.items():
            os.dup2(copy, stream)
            os.close(copy)
