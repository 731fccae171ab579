"""What a setting may be: the error of one that breaks a rule, and the checks that raise it."""

import dataclasses
import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any


class ConfigError(ValueError):
    """A setting breaks a rule; the message says what came, the rule and the remedy."""

    __module__ = "thrust_rl.config"  # a traceback names where it is imported from


def require(condition: bool, message: str) -> None:
    """Raise `ConfigError(message)` unless `condition` holds."""
    if not condition:
        raise ConfigError(message)


def store_plain(config: Any) -> None:
    """Store numbers and flags as Python's own, whatever sort they came as, such as NumPy's: files hold these alone."""
    for field in dataclasses.fields(config):
        value = plain(getattr(config, field.name))
        is_float = field.type in (float, float | None) and _is_number(value)
        object.__setattr__(config, field.name, float(value) if is_float else value)


def plain(value: Any) -> Any:
    """A scalar of NumPy's as Python's own; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def require_number(name: str, value: object) -> None:
    """Check that `value` is a number, which a flag is not."""
    require(_is_number(value), f"{name} is {value!r}: it must be a number")


def require_range(name: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    """Check that `value` is a finite number from `low`, itself included unless `open_low`, to `high`."""
    require_number(name, value)
    inside = math.isfinite(value) and (low < value if open_low else low <= value) and value <= high
    bracket = "(" if open_low else "["
    require(inside, f"{name} is {value}: it must lie in {bracket}{low}, {high}]")


def require_at_least(name: str, value: float, low: float, *, strict: bool = False) -> None:
    """Check that `value` is a finite number at (or, if strict, above) `low`."""
    require_number(name, value)
    ok = math.isfinite(value) and (value > low if strict else value >= low)
    require(ok, f"{name} is {value}: it must be finite and {'greater than' if strict else 'at least'} {low}")


def require_count(name: str, value: object) -> None:
    """Check that `value` is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}: it must be a whole number")
    require_at_least(name, value, 1)


def require_flag(name: str, value: object) -> None:
    """Check that `value` is a switch."""
    require(isinstance(value, bool), f"{name} is {value!r}: it must be True or False")


def require_divides(name: str, size: int, total_name: str, total: int) -> None:
    """Raise `ConfigError`, naming the nearest divisor, unless `size` divides `total`."""
    if total % size:
        near = min((d for d in range(1, total + 1) if total % d == 0), key=lambda d: (abs(d - size), d))
        raise ConfigError(
            f"{total_name} is {total}, which {name} {size} does not divide:"
            f" set {name} to {near}, or change {total_name}"
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name was probably meant, and what there is."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    hint = f": did you mean {close[0]!r}?" if close else ""
    return f"{hint} (there are {', '.join(known)})"
