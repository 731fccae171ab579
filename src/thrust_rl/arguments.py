"""Reading the command line: whole numbers as people write them, and the parser's complaint as one line."""

import contextlib
import decimal
import io
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from thrust_rl.config import ConfigError, require

MOST_DIGITS = 18  # of a whole number; one with more is a slip of the keyboard


def parsed(commands: Mapping[str, Any], arguments: Sequence[str], *, description: str) -> Any:
    """The command that the arguments ask for, as an object of its class.

    Raises:
        ConfigError: they do not fit; the message is one line.
        SystemExit: help was asked for, and is printed.
    """
    complaint = io.StringIO()
    command = arguments[0] if arguments and arguments[0] in commands else ""
    registry = ConstructorRegistry()
    registry.primitive_rule(_whole_numbers)
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.extras.subcommand_cli_from_dict(
                dict(commands), prog="thrust", description=description, args=arguments, registry=registry
            )
    except SystemExit as stop:
        if stop.code:
            raise ConfigError(one_line(complaint.getvalue(), command)) from None
        raise


def whole(text: str) -> int:
    """A whole number, written out or as a power of ten.

    Raises:
        ValueError: it is none.

    Example:
        >>> whole("500_000"), whole("1e6"), whole("2.5e5")
        (500000, 1000000, 250000)
    """
    try:
        number = decimal.Decimal(text.strip())
    except decimal.InvalidOperation:
        number = decimal.Decimal("nan")
    if not number.is_finite() or number.adjusted() >= MOST_DIGITS or number != number.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number: give one such as 500000, 500_000 or 5e5")
    return int(number)


def one_line(box: str, command: str = "compare") -> str:
    """The argument parser's boxed message as one line: its first section, and the option it suggests."""
    lines = [line.strip("│ ") for line in box.splitlines()[1:] if not line.startswith("╰")]  # the first is the title
    text = itertools.dropwhile(_is_rule, lines)  # where the box is drawn in ASCII, a rule is under the title
    first = " ".join(itertools.takewhile(lambda line: not _is_rule(line), text))
    first = re.sub(r"^Error parsing __tyro-dummy-inner__[\w.]*: ", "", first)
    meant = re.search(r"Perhaps you meant:\s+(--[\w-]+)", " ".join(lines))
    see = " ".join(["thrust", *([command] if command else []), "--help"])
    return f"{first}: did you mean {meant.group(1)}?" if meant else f"{first} (see {see})"


def key_values(texts: Sequence[str]) -> dict[str, Any]:
    """`key=value` texts as parameters; what is no JSON is taken as it stands.

    Raises:
        ConfigError: one is no key=value.

    Example:
        >>> key_values(["size=7", "name=small"])
        {'size': 7, 'name': 'small'}
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        require(bool(key and equals), f"env_param is {text!r}: give key=value, for example size=7")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _whole_numbers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """How the parser reads every option that is an int."""
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda texts: whole(texts[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


def _is_rule(line: str) -> bool:
    return not line.strip("─-")
