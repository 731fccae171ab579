"""What environments there are: names at once, and for some of them their spaces, which takes building one."""

import dataclasses
import importlib.util
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, registry

from thrust_rl.config import ConfigError
from thrust_rl.envs.adapters import adapter_names
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.named import VELOCITY_MASKED, Environment, make, twin_of_task
from thrust_rl.envs.registry import ENVIRONMENTS, env_parameters
from thrust_rl.envs.returns import return_bounds, stated_by

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


def own() -> list[Entry]:
    """The library's own environments, and the velocity-masked classics.

    Example:
        >>> [entry.name for entry in own() if entry.kind == "compiled"]
        ['CartPole-v1', 'FlickeringCartPole-v0', 'MaskedCartPole-v0']
    """
    return [described(name) for name in (*ENVIRONMENTS, *VELOCITY_MASKED)]


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
        return _broken(name, error)
    try:
        bounds = stated_by(env) or return_bounds(name, {})
    except ConfigError as error:
        return _broken(name, error)
    kind = "compiled" if isinstance(env, FunctionalEnv) else "host"
    spaces = brief(env.observation_space), brief(env.action_space)
    return Entry(name, kind, *spaces, _has_twin(env), bounds, _parameters(name))


def _broken(name: str, error: ConfigError) -> Entry:
    problem = str(error).splitlines()[0]
    return Entry(name, "host", "", "", False, return_bounds(name, {}), _parameters(name), problem)


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
    """
    match space:
        case gymnasium.spaces.Box():
            return f"Box {'x'.join(map(str, space.shape)) or 'scalar'} {space.dtype}"
        case gymnasium.spaces.Discrete():
            return f"Discrete {space.n}"
        case gymnasium.spaces.Dict():
            return f"Dict({', '.join(f'{name}: {brief(inner)}' for name, inner in space.spaces.items())})"
        case gymnasium.spaces.Tuple():
            return f"Tuple({', '.join(map(brief, space.spaces))})"
    return str(space)


def host_names() -> list[str]:
    """Gymnasium's registered names whose packages are there, the newest version of each, without ours.

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
    return sorted(spec.id for spec in newest.values() if spec.namespace != "thrust")


def of_package(package: str) -> list[str]:
    """Every environment of Gymnasium's, or of a package that has an adapter; none for any other name.

    Raises:
        ConfigError: the package is not installed.

    Example:
        >>> "Pendulum-v1" in of_package("gymnasium"), of_package("Pendulum-v1")
        (True, [])
    """
    if package == "gymnasium":
        return [f"gymnasium:{name}" if name in ENVIRONMENTS else name for name in host_names()]
    names = adapter_names().get(package, [])
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
