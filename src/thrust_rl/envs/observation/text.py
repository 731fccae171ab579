"""Observation models as text, `mask:1,3` or `mask:1,3|noise:0.1`: what the command line and wrapper specs carry."""

from collections.abc import Sequence
from typing import TypeAlias

from thrust_rl.config import ConfigError, nearest, require
from thrust_rl.envs.core import ObservationModel
from thrust_rl.envs.observation.kinds import OBSERVATION_MODELS, Kind, Value
from thrust_rl.envs.observation.names import COORDINATES, names_after
from thrust_rl.envs.observation.stack import models_of, stacked

Observe: TypeAlias = ObservationModel | str | Sequence[ObservationModel | str]


def observation_model(observe: Observe, names: Sequence[str] | None = None) -> ObservationModel:
    """The model that is meant: a model, a text, or several of either in order, the first nearest to the physics.

    Args:
        observe: what is meant.
        names: of the observation's coordinates, for masks by name. Coordinates may share one, and `a` also means those
            called `a.b`.

    Raises:
        ConfigError: a text says nothing that is known, or breaks a rule.

    Example:
        >>> observation_model(["mask:velocity", "noise:0.1"], names=["position", "velocity"])
        Stacked(models=(Hide(hidden=(1,)), GaussianNoise(std=0.1)))
    """
    models: list[ObservationModel] = []
    for item in [observe] if isinstance(observe, str) or not isinstance(observe, Sequence) else observe:
        left = None if names is None else names_after(models, names)
        models += models_of(parse_observe(item, left) if isinstance(item, str) else item)
    return stacked(*models)


def parse_observe(text: str, names: Sequence[str] | None = None) -> ObservationModel:
    """Read `kind:value,value`, or several of them with `|` between.

    Raises:
        ConfigError: there is no such kind, a value is no number, or the model refuses it; the message says the syntax.

    Example:
        >>> parse_observe("flicker:0.5,4")
        Flicker(flicker_prob=0.5, burst_len=4.0)
    """
    models: list[ObservationModel] = []
    for part in text.split("|"):
        left = None if names is None else names_after(models, names)
        models += models_of(_parsed(part.strip(), left))
    return stacked(*models)


def format_observe(model: ObservationModel) -> str:
    """The text that `parse_observe` reads as this model; empty if it withholds nothing.

    Raises:
        ConfigError: the model is of a kind that no text names.

    Example:
        >>> from thrust_rl.envs.observation import Delay, Hide
        >>> format_observe(stacked(Hide((1, 3)), Delay(2)))
        'mask:1,3|delay:2'
    """
    return "|".join(_formatted(single) for single in models_of(model))


def _parsed(text: str, names: Sequence[str] | None) -> ObservationModel:
    name, _, rest = text.partition(":")
    if name not in OBSERVATION_MODELS:
        example = "write kind:value,value, for example mask:1,3 or noise:0.1"
        raise ConfigError(f"{text!r} names no observation model{nearest(name, OBSERVATION_MODELS)}; {example}")
    kind = OBSERVATION_MODELS[name]
    try:
        words = [word.strip() for word in rest.split(",")] if rest.strip() else []
        require(bool(words), "a value is missing")
        most = kind.most or len(words)
        require(len(words) <= most, f"{len(words)} values are too many: it takes at most {most}")
        return kind.build(*(value for word in words for value in _values(word, kind, names)))
    except ConfigError as error:
        raise ConfigError(f"{text!r}: {error}. Syntax: {kind.syntax}; for example {kind.example}") from None


def _values(word: str, kind: Kind, names: Sequence[str] | None) -> tuple[Value, ...]:
    """One value; several where a name means several coordinates."""
    try:
        return (kind.read(word),)
    except ValueError:
        if kind.coordinates and word:
            return _coordinates(word, names)
        what = "whole number" if kind.read is int else "number"
        raise ConfigError(f"{word!r} is not a {what}") from None


def _coordinates(word: str, names: Sequence[str] | None) -> tuple[int, ...]:
    if names is None:
        raise ConfigError(
            f"the coordinate {word!r} is not an index, and this environment's coordinates have no known names (they"
            f" are known for {', '.join(COORDINATES)}): give its index, counted from 0, or list all names in"
            ' metadata["coordinates"] of the environment'
        )
    found = tuple(i for i, name in enumerate(names) if name == word or name.startswith(f"{word}."))
    if not found:
        raise ConfigError(f"no coordinate is called {word!r}{nearest(word, dict.fromkeys(names))}")
    return found


def _formatted(model: ObservationModel) -> str:
    for name, kind in OBSERVATION_MODELS.items():
        if type(model) is kind.model:
            return f"{name}:{','.join(_number(value) for value in kind.values(model) if value is not None)}"
    raise ConfigError(
        f"{model} has no text: those that have are {', '.join(OBSERVATION_MODELS)}; pass the object itself"
    )


def _number(value: Value) -> str:
    return repr(value if isinstance(value, int) else float(value)).removesuffix(".0")
