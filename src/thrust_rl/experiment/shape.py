"""The shape of `result.json`: what kind of value every field holds (docs/result-schema.md), as one table."""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from thrust_rl.config import ConfigError, require

DEPTH = 32  # of nested lists and objects whose content is not known beforehand
MOST = sys.float_info.max  # JSON has whole numbers beyond it
SHOWN = 60  # characters of a wrong value


@dataclasses.dataclass(frozen=True)
class Kind:
    """A sort of value: how it is called in a message, and whether a value is one."""

    name: str
    holds: Callable[[Any], bool]
    later: bool = False
    """Files of earlier releases may lack it."""


@dataclasses.dataclass(frozen=True)
class Each:
    """A list or an object all of whose values have one shape."""

    container: type
    shape: "Shape"
    later: bool = False


@dataclasses.dataclass(frozen=True)
class OrNull:
    """A shape, or null."""

    shape: "Shape"
    later: bool = False


Shape = Kind | Each | OrNull | dict[str, Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= sys.maxsize


def _is_nested(value: Any, depth: int = DEPTH) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_nested(each, depth - 1) for each in inner)
    return True


def _are_numbers(value: Any, depth: int = DEPTH) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_are_numbers(each, depth - 1) for each in value)
    return value is None or isinstance(value, bool) or _is_number(value)


def _one_of(*choices: str) -> Kind:
    return Kind(" or ".join(map(repr, choices)), lambda value: value in choices)


def _later(shape: Kind | Each | OrNull) -> Any:
    return dataclasses.replace(shape, later=True)


TEXT = Kind("a text", lambda value: isinstance(value, str))
NAME = Kind("a text of one line that is not blank", lambda value: _is_name(value))
BOOL = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a number", _is_number)
AMOUNT = Kind("a number of at least 0", lambda value: _is_number(value) and value >= 0)
POSITIVE = Kind("a number above 0", lambda value: _is_number(value) and value > 0)
SHARE = Kind("a share of the return scale, in (0, 1]", lambda value: _is_number(value) and 0 < value <= 1)
COUNT = Kind("a whole number of at least 0", _is_count)
SOME = Kind("a whole number of at least 1", lambda value: _is_count(value) and value > 0)
NESTED = Kind(f"at most {DEPTH} lists or objects inside each other", _is_nested)
NUMBERS = Kind(f"a list of numbers, or of lists of them, at most {DEPTH} deep", lambda value: _is_rows(value))

EPISODES = {"mean_return": NUMBER, "returns": Each(list, NUMBER), "lengths": Each(list, COUNT), "cut": COUNT}
SEED = {
    "seed": COUNT,
    "params": COUNT,
    **dict.fromkeys(("final", "best", "auc"), OrNull(NUMBER)),
    "curve_steps": Each(list, COUNT),
    "curve_mean_return": Each(list, NUMBER),
    "episodes": COUNT,
    "steps": COUNT,
    **dict.fromkeys(("steps_per_second", "seconds_compile", "seconds_run"), AMOUNT),
    "evaluation": {"sampled": EPISODES, "greedy": EPISODES},
    "env_restarts": _later(COUNT),
    "resumed_at": _later(Each(list, COUNT)),
}
RECORDING = {
    "seed": COUNT,
    "observations": OrNull(NUMBERS),
    "blanks": Each(list, BOOL),
    "actions": NUMBERS,
    "rewards": Each(list, OrNull(NUMBER)),
    "states": OrNull(Each(list, Each(list, OrNull(NUMBER)))),
}
ARM = {
    "arm": Each(dict, NESTED),
    "learning_rate": POSITIVE,
    "params": OrNull(COUNT),
    "seeds": Each(list, SEED),
    "recording": OrNull(RECORDING),
}
ENVIRONMENT = {
    "name": NAME,
    "params": _later(Each(dict, NESTED)),
    "observe": _later(Each(list, TEXT)),
    "workers": _later(COUNT),
    "on_env_error": _later(_one_of("stop", "restart")),
    "check_range": _later(BOOL),
    "step_timeout": _later(POSITIVE),
    "twin": _later(BOOL),
    "return_range": _later(OrNull(Each(list, NUMBER))),
}
CONDITION = {"name": _one_of("task", "twin"), "environment": ENVIRONMENT, "arms": Each(dict, ARM)}
PPO = dict.fromkeys(("normalize_advantage", "normalize_obs", "anneal_lr"), _later(BOOL))
RESULT = {
    "status": _one_of("complete", "interrupted"),
    "command": OrNull(TEXT),
    "config": {"ppo": PPO},
    "evaluation": {"episodes": SOME, "seed": COUNT, "max_steps": _later(SOME)},
    "min_effect": SHARE,
    "seeds": Each(list, COUNT),
    "tasks": Each(list, {"label": NAME, "conditions": Each(list, CONDITION)}),
    "versions": Each(dict, TEXT),
    "machine": Each(dict, Kind("a text or a number", lambda value: isinstance(value, str) or _is_number(value))),
    "seconds": AMOUNT,
    "merged_from": _later(Each(list, TEXT)),
    "notes": _later(Each(list, TEXT)),
    "pair": _later(OrNull(Each(list, TEXT))),
}


def require_shape(value: Any, shape: Shape = RESULT, path: str = "") -> None:
    """Check every field that is read back; fields beyond the table are those of a later release.

    Raises:
        ConfigError: a field is missing, or its value is of another kind; its path is named.

    Example:
        >>> require_shape({"cut": 0.5}, {"cut": COUNT})
        Traceback (most recent call last):
        thrust_rl.config.ConfigError: cut is 0.5: it must be a whole number of at least 0
    """
    match shape:
        case Kind():
            _require(shape.holds(value), path, value, shape.name)
        case OrNull():
            if value is not None:
                require_shape(value, shape.shape, path)
        case Each():
            _require(isinstance(value, shape.container), path, value, _name_of(shape.container))
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                require_shape(inner, shape.shape, _below(path, key))
        case dict():
            _require(isinstance(value, dict), path, value, _name_of(dict))
            for key, inner in shape.items():
                if key in value:
                    require_shape(value[key], inner, _below(path, key))
                elif not getattr(inner, "later", False):
                    raise ConfigError(f"{_below(path, key)} is missing")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and _are_numbers(value)


def _name_of(container: type) -> str:
    return "a list" if container is list else "an object"


def _require(holds: bool, path: str, value: Any, name: str) -> None:
    if not holds:
        said = repr(value) if _is_nested(value) else "nested"
        said = said if len(said) <= SHOWN else f"{said[:SHOWN]}…"
        require(False, f"{path or 'the file'} is {said}: it must be {name}")


def _below(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    shown = key if key.isprintable() else repr(key)
    return f"{path}.{shown}" if path else shown
