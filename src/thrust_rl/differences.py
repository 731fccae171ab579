"""Where two settings differ, for messages that name it."""

from collections.abc import Iterator
from typing import Any

ABSENT, PRESENT = "absent", "present"


def differing(before: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two settings differ: the path to it, and both values.

    Example:
        >>> list(differing({"ppo": {"gamma": 0.9}}, {"ppo": {"gamma": 0.99}}))
        [('ppo.gamma', 0.9, 0.99)]
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            inner = f"{path}.{key}" if path else key
            yield from differing(before.get(key, ABSENT), now.get(key, ABSENT), inner)
    elif before != now:
        yield path, before, now


def shown(value: Any) -> str:
    """A setting for a message; a whole section by its name alone."""
    return PRESENT if isinstance(value, dict) else value if value == ABSENT else repr(value)


def changes(before: Any, now: Any) -> str:
    """What differs between what a file holds and what is asked for now; empty where nothing does.

    Example:
        >>> changes({"seed": 1, "gamma": 0.9}, {"seed": 2, "gamma": 0.9})
        'seed is 1 there and 2 here'
    """
    return "; ".join(f"{path} is {shown(old)} there and {shown(new)} here" for path, old, new in differing(before, now))
