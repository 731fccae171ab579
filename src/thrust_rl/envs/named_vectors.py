"""Vector environments by name: `module:callable`, where the callable takes `num_envs`."""

import contextlib
import dataclasses
import multiprocessing
from collections.abc import Iterator
from typing import Any

from gymnasium.vector import VectorEnv

from thrust_rl.config import ConfigError, require
from thrust_rl.envs.host import OnEnvError
from thrust_rl.envs.targets import imported, split
from thrust_rl.envs.task import VectorTask


@dataclasses.dataclass(frozen=True)
class VectorMaker:
    """Builds a vector environment from plain data, as `callable(num_envs=..., **params)`.

    Args:
        target: "module:callable".
        params: further keyword arguments, as pairs.
    """

    target: str
    params: tuple[tuple[str, Any], ...] = ()

    def __call__(self, num_envs: int) -> VectorEnv[Any, Any, Any]:
        """A new vector environment.

        Raises:
            ConfigError: it cannot be built, or is something else.
        """
        module, name = split(self.target)
        assert module is not None, "only callables of modules build vector environments"
        try:
            build = getattr(imported(module), name)
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
        return vector


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
    """The vector environments of a callable, to train on.

    Raises:
        ConfigError: they cannot be built, or something was asked for that cannot be done to them.
    """
    whole = f"{name} builds a vector environment"
    require("num_envs" not in params, f"{whole}: how many environments it holds is num_envs of the run, no parameter")
    require(
        not observe,
        f"observe is {', '.join(observe)}: {whole}, in which nothing can be hidden from here; let {name} wrap each"
        " environment in thrust_rl.envs.partial.PartialObservation",
    )
    require(env_workers == 0, f"env_workers is {env_workers}: {whole}, which steps its environments itself; drop it")
    require(
        on_env_error == "stop",
        f"on_env_error is {on_env_error}: {whole}, of which no environment can be replaced; drop it",
    )
    task = VectorTask(name, VectorMaker(name, tuple(sorted(params.items()))), check_range)
    _ = task.observation_space  # builds one: what cannot be built fails here
    return task
