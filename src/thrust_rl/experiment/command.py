"""The shell command that repeats a comparison: what was typed, without where it went."""

import shlex
from collections.abc import Sequence

TAKE_A_FOLDER = ("--out",)
FLAGS = ("--fresh", "--no-fresh", "--quiet", "--no-quiet")
NOTHING = "--no-quiet"  # changes nothing, and ends the values of the option before it


def repeating(arguments: Sequence[str]) -> str:
    """The command without the folder it wrote to, and without what would delete or silence something.

    Repeated, it runs everything again, in a new folder; with `--out` added it goes wherever one likes.

    Example:
        >>> repeating(["compare", "CartPole-v1", "--out", "runs/a", "--fresh", "--env-param", "name=a b"])
        "thrust compare CartPole-v1 --env-param 'name=a b'"
    """
    kept: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word not in FLAGS and word.partition("=")[0] not in TAKE_A_FOLDER:
            kept.append(word)
            continue
        if word in TAKE_A_FOLDER and rest:
            rest.pop(0)
        if rest and not rest[0].startswith("-") and len(kept) > 1:
            kept.append(NOTHING)  # or what follows would become a value of the option before
    return shlex.join(["thrust", *kept])


def into(command: str, folder: str) -> str:
    """The command, or the last of several, with the folder that it writes to.

    Example:
        >>> into("thrust compare CartPole-v1", "my runs")
        "thrust compare CartPole-v1 --out 'my runs'"
    """
    return f"{command} --out {shlex.quote(folder)}"


def merging(commands: Sequence[str | None], folders: Sequence[str]) -> str | None:
    """Repeat every part in its folder, then merge them; None where a part has no command, as from Python.

    Example:
        >>> print(merging(["thrust compare A --seeds 3", "thrust compare A --seed 3"], ["a", "b"]))
        thrust compare A --seeds 3 --out a &&
        thrust compare A --seed 3 --out b &&
        thrust report a b
    """
    parts = [into(command, folder) for command, folder in zip(commands, folders, strict=True) if command is not None]
    if len(parts) < len(commands):
        return None
    return " &&\n".join([*parts, shlex.join(["thrust", "report", *folders])])
