"""Any environment by name: the library's own, any of Gymnasium's, and one's own module's."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import VectorEnv

from thrust_rl.config import ConfigError, nearest, require
from thrust_rl.envs.adapters import COMPILED, HOSTED, adapter_of
from thrust_rl.envs.adapters.minigrid import ReadableGrid, has_mission, readable
from thrust_rl.envs.core import FullyObserved, FunctionalEnv
from thrust_rl.envs.host import OnEnvError
from thrust_rl.envs.named_vectors import VectorMaker, vector_task
from thrust_rl.envs.partial import PartialObservation, observed
from thrust_rl.envs.registry import ENVIRONMENTS
from thrust_rl.envs.registry import make as make_own
from thrust_rl.envs.targets import imported, makes_vectors, split
from thrust_rl.envs.task import CompiledTask, HostTask, VectorTask
from thrust_rl.envs.tasks_only import require_name
from thrust_rl.envs.twins import twin_of
from thrust_rl.envs.workers import STEP_TIMEOUT

Environment = FunctionalEnv | HostTask | VectorTask | CompiledTask

# Tasks that recurrent policies are judged by: what may be seen is position without velocity.
VELOCITY_MASKED = {
    "VelocityMaskedCartPole-v1": ("CartPole-v1", "mask:cart_velocity,pole_velocity"),
    "VelocityMaskedPendulum-v1": ("Pendulum-v1", "mask:velocity"),
    "VelocityMaskedMountainCarContinuous-v0": ("MountainCarContinuous-v0", "mask:velocity"),
    "VelocityMaskedLunarLander-v3": ("LunarLander-v3", "mask:velocity_x,velocity_y,angular_velocity"),
}

# Gymnasium's own that leave their observation spaces, as the lander does above the picture: nobody here can mend them.
LEAVE_THEIR_SPACE = ("LunarLander-v3", "LunarLanderContinuous-v3")


@dataclasses.dataclass(frozen=True)
class GymMaker:
    """Builds a Gymnasium environment from plain data, so that worker processes can be told which.

    Args:
        target: an id such as "CartPole-v1", "module:Env-v0" to import the module first, "module:callable", or what an
            adapter builds, such as "popgym:popgym-HigherLowerEasy-v0".
        params: keyword arguments, as pairs.
        observe: texts of observation models, the first nearest to the environment.
        twin: the fully observable form, which some adapters have; of other environments, what is left without the
            `PartialObservation` wrappers that they come in, and of those made as MiniGrid's are, the whole grid.
    """

    target: str
    params: tuple[tuple[str, Any], ...] = ()
    observe: tuple[str, ...] = ()
    twin: bool = False

    def __hash__(self) -> int:
        return hash(repr(self))  # parameters may be lists

    def __call__(self) -> gymnasium.Env[Any, Any]:
        """A new environment.

        Raises:
            ConfigError: there is no such environment, or it cannot be built.
        """
        adapter = adapter_of(self.target)
        build = functools.partial(_plain, self.target) if adapter is None else _adapted(adapter, twin=self.twin)
        env = _built(self.target, build, dict(self.params))
        if adapter is None:
            env = twin_of(env) if self.twin else env
            env = readable(env, twin=self.twin) if has_mission(env) else env
        return PartialObservation(env, list(self.observe)) if self.observe else env


def make(
    name: str,
    *,
    observe: str | Sequence[str] = (),
    env_workers: int = 0,
    on_env_error: OnEnvError = "stop",
    check_range: bool = True,
    step_timeout: float = STEP_TIMEOUT,
    **params: Any,
) -> FunctionalEnv | HostTask | VectorTask:
    """An environment by name, to train on.

    The library's own (`CartPole-v1`, `FlickeringCartPole-v0`, `MaskedCartPole-v0`) are compiled. Every other name is
    stepped by the host: an id of Gymnasium's (`Pendulum-v1`; `gymnasium:CartPole-v1` for one whose name the library has
    too), `module:Env-v0` for one that a module registers, `module:callable` for a class or function that builds one,
    or one of the velocity-masked classics (`VELOCITY_MASKED`). A callable that takes `num_envs`, or an id registered
    with a `vector_entry_point` alone, builds a vector environment, which takes no `env_workers`.
    Adapters build those of other packages: compiled ones (`gymnax:CartPole-v1`) and ones for the host (`popgym:...`,
    `minigrid:...`).

    Args:
        name: of the environment.
        observe: observation models in front of it, as texts: `"mask:1,3"`, `["mask:1,3", "noise:0.1"]`.
        env_workers: processes that step host environments; 0 steps them in this one.
        on_env_error: see `HostTask`.
        check_range: see `HostTask`.
        step_timeout: see `HostTask`.
        **params: of the environment.

    Raises:
        TypeError: the name is no text.
        ConfigError: unknown name, a parameter it does not take, or a value out of range.

    Example:
        >>> make("MaskedCartPole-v0").observation_space.shape
        (2,)
        >>> make("gymnasium:CartPole-v1", observe="mask:1,3").observation_space.shape
        (2,)
    """
    require_name(name, "make")
    texts = (observe,) if isinstance(observe, str) else tuple(observe)
    adapter = adapter_of(name)
    if is_compiled(name):
        require(env_workers == 0, f"env_workers is {env_workers}: {name} is compiled and needs none; drop it")
        env = make_own(name, **params) if adapter is None else COMPILED[adapter[0]](adapter[1], **params)
        return observed(env, list(texts)) if texts else env
    if adapter is None and makes_vectors(name):
        return vector_task(
            name,
            params,
            observe=texts,
            env_workers=env_workers,
            on_env_error=on_env_error,
            check_range=check_range,
        )
    target, own = VELOCITY_MASKED.get(name, (name, ""))
    maker = GymMaker(target, tuple(sorted(params.items())), (own, *texts) if own else texts)
    if adapter is None:
        _require_known(target)
    label, check_range = "|".join([name, *texts]), check_range and split(target)[1] not in LEAVE_THEIR_SPACE
    task = HostTask(label, maker, env_workers, on_env_error, check_range, step_timeout)
    _ = task.observation_space  # builds one: what cannot be built fails here
    return task


def is_compiled(name: str) -> bool:
    """Whether the environment of that name is stepped by compiled code: the library's own, or an adapter's.

    Example:
        >>> is_compiled("CartPole-v1"), is_compiled("gymnax:CartPole-v1"), is_compiled("gymnasium:CartPole-v1")
        (True, True, False)
    """
    adapter = adapter_of(name)
    return name in ENVIRONMENTS or (adapter is not None and adapter[0] in COMPILED)


def twin_of_task(env: Environment) -> FunctionalEnv | HostTask | VectorTask | None:
    """The fully observable twin; None where none is known. Of a vector, what is left without `observe`.

    Raises:
        ConfigError: there is one, but it cannot be built: see `envs.twins.twin_of`.

    Example:
        >>> twin_of_task(make("gymnasium:CartPole-v1", observe="mask:1,3")).observation_space.shape
        (4,)
    """
    if isinstance(env, FunctionalEnv):
        return None if isinstance(env.sensor, FullyObserved) else env.twin()
    if isinstance(env, VectorTask) and isinstance(env.make_vector, VectorMaker) and env.make_vector.observe:
        bare = dataclasses.replace(env.make_vector, observe=())
        return dataclasses.replace(env, name=f"{env.name}-twin", make_vector=bare)
    if not isinstance(env, HostTask) or not isinstance(env.make_env, GymMaker):
        return None
    maker = env.make_env
    shows_all = adapter_of(maker.target) is not None  # every adapter for the host can build what shows everything
    if maker.twin or not (maker.observe or shows_all or _hides(maker)):
        return None
    plain = dataclasses.replace(maker, observe=(), twin=True)
    return dataclasses.replace(env, name=f"{env.name}-twin", make_env=plain)


def _hides(maker: GymMaker) -> bool:
    """Whether what is built, not by an adapter, has observation models around it, or shows a part of a grid."""
    env = maker()
    try:
        return isinstance(env, ReadableGrid) or twin_of(env) is not env
    finally:
        env.close()


def _require_known(target: str) -> None:
    module, name = split(target)
    if module is not None:
        imported(module)
    if name in registry or (module is not None and hasattr(imported(module), name)):
        return
    known = [*ENVIRONMENTS, *VELOCITY_MASKED, *registry]
    if module is not None:
        raise ConfigError(
            f"no environment is called {target!r}: importing {module} registers no id {name!r}, and it has no such"
            " class or function"
        )
    raise ConfigError(
        f"no environment is called {name!r}{nearest(name, known).partition(' (there are')[0]}"
        f" (thrust envs lists what there is; module:Env-v0 imports a module first)"
    )


def _built(target: str, build: Callable[..., Any], params: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        env = build(**params)
    except ConfigError:
        raise
    except DependencyNotInstalled as error:
        said = "Box2D is not installed: pip install 'thrust-rl[box2d]'" if "Box2D" in str(error) else str(error)
        raise ConfigError(f"{target} cannot be built: {said}") from error
    except Exception as error:  # noqa: BLE001  # building may fail in any way
        raise ConfigError(f"{target} cannot be built: {type(error).__name__}: {error}") from error
    remedy = "; to give a vector environment, let it take num_envs" if isinstance(env, VectorEnv) else ""
    require(isinstance(env, gymnasium.Env), f"{target} built a {type(env).__name__}: expected a gymnasium.Env{remedy}")
    return env


def _plain(target: str, /, **params: Any) -> Any:
    """What Gymnasium, or a callable of a module, makes of it."""
    module, name = split(target)
    build = getattr(imported(module), name, None) if module is not None else None
    if name in registry or build is None:
        return gymnasium.make(name, disable_env_checker=True, **params)  # the batch checks for itself
    return build(**params)


def _adapted(adapter: tuple[str, str], *, twin: bool) -> Callable[..., Any]:
    prefix, name = adapter
    return functools.partial(HOSTED[prefix], name, twin=twin)
