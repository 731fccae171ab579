"""What environments there are: their names at once, and of each what it shows, which takes building one."""

import dataclasses
import importlib.util
import textwrap
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, registry

from thrust_rl.config import ConfigError
from thrust_rl.envs.adapters import adapter_names, adapter_of
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.named import VELOCITY_MASKED, Environment, make, twin_of_task
from thrust_rl.envs.registry import ENVIRONMENTS, env_parameters
from thrust_rl.envs.returns import return_bounds, stated_by

WIDEST = 60  # characters of a space that is not described in words of ours

# What Gymnasium's groups of environments need beside Gymnasium.
NEEDS = {"box2d": "Box2D", "mujoco": "mujoco", "phys2d": "jax", "tabular": "jax"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One environment, as far as it is known without training on it."""

    name: str
    kind: str
    """compiled, or host: stepped by Python."""
    observation: str
    action: str
    has_twin: bool
    """Whether its fully observable twin is known."""
    bounds: tuple[float, float] | None
    """Lowest and highest return of an episode, if known."""
    params: dict[str, Any]
    """Its parameters with their defaults, where they are known."""
    problem: str | None = None
    """Why it could not be built."""


def own_names() -> list[str]:
    """The library's own environments, and the velocity-masked classics.

    Example:
        >>> own_names()[:3]
        ['CartPole-v1', 'FlickeringCartPole-v0', 'MaskedCartPole-v0']
    """
    return [*ENVIRONMENTS, *VELOCITY_MASKED]


def described(name: str) -> Entry:
    """One environment: it is built to ask what it shows. One that cannot be built says why.

    Raises:
        ConfigError: no environment has that name.
    """
    try:
        env = make(name)
    except ConfigError as error:
        if "cannot be built" not in str(error):
            raise
        return unbuilt(name, str(error))
    try:
        bounds = stated_by(env) or return_bounds(name, {})
    except ConfigError as error:
        return unbuilt(name, str(error))
    kind = "compiled" if isinstance(env, FunctionalEnv) else "host"
    spaces = brief(env.observation_space), brief(env.action_space)
    return Entry(name, kind, *spaces, _has_twin(env), bounds, _parameters(name))


def unbuilt(name: str, problem: str) -> Entry:
    """What is known of an environment that was not built, with the first line of why.

    Example:
        >>> unbuilt("CartPole-v1", "it is late").bounds
        (0.0, 500.0)
    """
    return Entry(name, "host", "", "", False, return_bounds(name, {}), _parameters(name), problem.partition("\n")[0])


def _parameters(name: str) -> dict[str, Any]:
    return dict(env_parameters(name)) if name in ENVIRONMENTS else {}


def _has_twin(env: Environment) -> bool:
    try:
        return twin_of_task(env) is not None
    except ConfigError:  # there may be one, and nobody can build it
        return False


def brief(space: gymnasium.Space[Any]) -> str:
    """A space in a few words.

    Example:
        >>> brief(gymnasium.spaces.Dict({"image": gymnasium.spaces.Box(0, 255, (7, 7, 3), "uint8")}))
        'Dict(image: Box 7x7x3 uint8)'
        >>> brief(gymnasium.spaces.MultiDiscrete([6, 2])), brief(gymnasium.spaces.MultiDiscrete([35] * 64))
        ('MultiDiscrete 6 2', 'MultiDiscrete 64 times 35')
    """
    match space:
        case gymnasium.spaces.Box():
            return f"Box {'x'.join(map(str, space.shape)) or 'scalar'} {space.dtype}"
        case gymnasium.spaces.Discrete():
            return f"Discrete {space.n}"
        case gymnasium.spaces.MultiDiscrete():
            return f"MultiDiscrete {_counts(space.nvec.ravel().tolist())}"
        case gymnasium.spaces.Dict():
            return f"Dict({', '.join(f'{name}: {brief(inner)}' for name, inner in space.spaces.items())})"
        case gymnasium.spaces.Tuple():
            return f"Tuple({', '.join(map(brief, space.spaces))})"
    return textwrap.shorten(str(space), WIDEST, placeholder="…")


def _counts(counts: list[int]) -> str:
    """Numbers of alternatives; where all are alike, how many there are."""
    same = len(counts) > 2 and len(set(counts)) == 1
    return f"{len(counts)} times {counts[0]}" if same else " ".join(map(str, counts))


def host_names() -> list[str]:
    """Gymnasium's registered names whose packages are there, the newest version of each; not ours, nor an adapter's.

    Nothing is built, so a name in this list may still fail to build.

    Example:
        >>> {"Pendulum-v1", "MountainCarContinuous-v0"} <= set(host_names())
        True
    """
    newest: dict[str, EnvSpec] = {}
    for spec in registry.values():
        key = spec.name if spec.namespace is None else f"{spec.namespace}/{spec.name}"
        before = newest.get(key)
        if _is_there(spec) and (before is None or (spec.version or 0) > (before.version or 0)):
            newest[key] = spec
    return sorted(spec.id for spec in newest.values() if spec.namespace != "thrust" and adapter_of(spec.id) is None)


def packages() -> dict[str, list[str] | str]:
    """Of Gymnasium and of every package that has an adapter: all names, as `make` takes them, or why there are none.

    Example:
        >>> list(packages()), "gymnasium:CartPole-v1" in packages()["gymnasium"]
        (['gymnasium', 'gymnax', 'minigrid', 'popgym'], True)
    """
    gymnasiums = [f"gymnasium:{name}" if name in ENVIRONMENTS else name for name in host_names()]
    return {"gymnasium": gymnasiums, **adapter_names()}


def of_package(package: str) -> list[str]:
    """Every environment of Gymnasium's, or of a package that has an adapter; none for any other name.

    Raises:
        ConfigError: the package is not installed.

    Example:
        >>> "Pendulum-v1" in of_package("gymnasium"), of_package("Pendulum-v1")
        (True, [])
    """
    names = packages().get(package, [])
    if isinstance(names, str):
        raise ConfigError(names)
    return names


def _is_there(spec: EnvSpec) -> bool:
    """Whether what the environment is made of can be imported, as far as can be told without importing it."""
    entry_point = spec.entry_point or spec.vector_entry_point
    if not isinstance(entry_point, str):  # Gymnasium's own functions only say that the environment has moved
        return not getattr(entry_point, "__module__", "").startswith("gymnasium.")
    parts = entry_point.partition(":")[0].split(".")
    needed = [parts[0]] + ([NEEDS[parts[2]]] if parts[:2] == ["gymnasium", "envs"] and parts[2] in NEEDS else [])
    return all(importlib.util.find_spec(package) is not None for package in needed)
