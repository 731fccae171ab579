"""What is known of the environments inside a vector: the models that show them, and names of what they show."""

import contextlib
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from thrust_rl.envs.core import ObservationModel
from thrust_rl.envs.observation.names import coordinate_names
from thrust_rl.envs.observation.stack import models_of
from thrust_rl.envs.partial import inner_models, known_names
from thrust_rl.envs.vector import CompiledVectorEnv

Known = tuple[tuple[ObservationModel, ...], tuple[str, ...] | None]


def models_and_names(vector: VectorEnv[Any, Any, Any]) -> Known:
    """The models that frames pass inside a vector without wrappers, nearest to the physics first; names of coordinates.

    Of a `SyncVectorEnv` or `AsyncVectorEnv` the first environment says both. Names are None where nobody gave them.

    Example:
        >>> models_and_names(gymnasium.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync"))
        ((), ('cos', 'sin', 'velocity'))
    """
    if isinstance(vector, CompiledVectorEnv):
        return models_of(vector.functional.sensor), coordinate_names(vector.functional.name)
    if isinstance(vector, SyncVectorEnv | AsyncVectorEnv):
        with _first_of(vector) as env:
            return inner_models(env), known_names(env)
    if "coordinates" in (vector.metadata or {}):
        return (), tuple(vector.metadata["coordinates"])
    return (), coordinate_names(vector.spec.id) if vector.spec else None


@contextlib.contextmanager
def _first_of(vector: SyncVectorEnv | AsyncVectorEnv) -> Iterator[gymnasium.Env[Any, Any]]:
    """The first environment; one that lives in another process is built once more for it."""
    if isinstance(vector, SyncVectorEnv):
        yield vector.envs[0]
        return
    env = vector.env_fns[0]()
    try:
        yield env
    finally:
        with contextlib.suppress(Exception):  # it has said what it was built for
            env.close()
