"""Vector environments by name: a callable that takes `num_envs`, or an id that is registered for them alone."""

import contextlib
import dataclasses
import functools
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry
from gymnasium.vector import VectorEnv

from thrust_rl.config import ConfigError, require
from thrust_rl.envs.host import OnEnvError
from thrust_rl.envs.partial_vector import PartialVectorObservation
from thrust_rl.envs.targets import imported, split
from thrust_rl.envs.task import VectorTask


@dataclasses.dataclass(frozen=True)
class VectorMaker:
    """Builds a vector environment from plain data, as `callable(num_envs=..., **params)`.

    Args:
        target: "module:callable", or an id that is registered with a `vector_entry_point` alone, such as "Many-v0", or
            "module:Many-v0" to import the module first.
        params: further keyword arguments, as pairs.
        observe: texts of observation models in front of every environment, the first nearest to it.
    """

    target: str
    params: tuple[tuple[str, Any], ...] = ()
    observe: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash(repr(self))  # parameters may be lists

    def __call__(self, num_envs: int) -> VectorEnv[Any, Any, Any]:
        """A new vector environment.

        Raises:
            ConfigError: it cannot be built, is something else, or a model does not fit its observations.
        """
        try:
            build = _builder(self.target)
            with _no_forks():
                vector = build(num_envs=num_envs, **dict(self.params))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001  # building may fail in any way
            raise ConfigError(f"{self.target} cannot be built: {type(error).__name__}: {error}") from error
        require(
            isinstance(vector, VectorEnv),
            f"{self.target} takes num_envs and built a {type(vector).__name__}: expected a gymnasium.vector.VectorEnv;"
            " one that builds a single environment must not take num_envs",
        )
        assert isinstance(vector, VectorEnv)
        return self._observed(vector) if self.observe else vector

    def _observed(self, vector: VectorEnv[Any, Any, Any]) -> VectorEnv[Any, Any, Any]:
        try:
            return PartialVectorObservation(vector, list(self.observe))
        except Exception:
            with contextlib.suppress(Exception):  # if it has processes, they must not stay
                vector.close()
            raise


def _builder(target: str) -> Callable[..., Any]:
    """What takes `num_envs`: Gymnasium for an id of its own, or the callable itself."""
    module, name = split(target)
    owner = imported(module) if module is not None else None  # importing may register the name
    if name in registry:
        return functools.partial(gymnasium.make_vec, name, vectorization_mode="vector_entry_point")
    build: Callable[..., Any] = getattr(owner, name)
    return build


@contextlib.contextmanager
def _no_forks() -> Iterator[None]:
    """Processes that name no start method are not forked: from a process in which JAX has threads they would hang."""
    before = multiprocessing.get_start_method(allow_none=True)
    if before in (None, "fork"):
        there = multiprocessing.get_all_start_methods()
        multiprocessing.set_start_method("forkserver" if "forkserver" in there else "spawn", force=True)
    try:
        yield
    finally:
        multiprocessing.set_start_method(before, force=True)


def vector_task(
    name: str,
    params: dict[str, Any],
    *,
    observe: tuple[str, ...],
    env_workers: int,
    on_env_error: OnEnvError,
    check_range: bool,
) -> VectorTask:
    """The vector environments of a callable, or of an id, to train on.

    Raises:
        ConfigError: they cannot be built, or something was asked for that cannot be done to them.
    """
    whole = f"{name} builds a vector environment"
    require("num_envs" not in params, f"{whole}: how many environments it holds is num_envs of the run, no parameter")
    require(env_workers == 0, f"env_workers is {env_workers}: {whole}, which steps its environments itself; drop it")
    maker = VectorMaker(name, tuple(sorted(params.items())), observe)
    task = VectorTask("|".join([name, *observe]), maker, check_range, on_env_error)
    _ = task.observation_space  # builds one: what cannot be built fails here
    return task
