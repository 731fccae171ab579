"""A run as a file, from which it goes on: safetensors, with what is no array as JSON in their header."""

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy
from jaxtyping import PyTree
from numpy.typing import NDArray

from thrust_rl.config import ArmConfig, ConfigError, TrainConfig, arm_from, from_dict, require
from thrust_rl.differences import changes
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.task import AnyTask, CompiledTask, HostTask, VectorTask
from thrust_rl.envs.tasks_only import require_task
from thrust_rl.files import require_schema, versions, whole
from thrust_rl.policies.actor_critic import count_parameters
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.normalize import initial_frame_moments
from thrust_rl.training.curve import LearningCurve
from thrust_rl.training.loop import TrainState, initial_learner, initial_state
from thrust_rl.training.result import TrainResult

SCHEMA, VERSION = "thrust-rl/checkpoint", 1
SUFFIX = ".safetensors"
CURVE = "curve/"  # before the names of its arrays
HEADER = "thrust-rl"  # the entry of the file's metadata that holds everything but the arrays
REMEDY = "give another file, or delete it and train anew"

Tensors = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A run at the end of one of its updates."""

    arm: ArmConfig
    config: TrainConfig
    result: TrainResult
    """So far; `result.state` is what training goes on from, and what `evaluate` plays with."""
    versions: dict[str, str]
    """Of Python and the packages that decide the numbers."""


def save_checkpoint(
    path: str | Path, env: FunctionalEnv | AnyTask, arm: str | ArmConfig, config: TrainConfig, result: TrainResult
) -> Path:
    """Write a run; the file is whole or not there, whatever happens meanwhile.

    The state of environments that the host steps is not in it: nobody but they can keep it.

    Args:
        path: of the file; its folder is made if needed.
        env: what was trained in.
        arm: what was trained.
        config: as in training.
        result: of training, so far or final.

    Raises:
        TypeError: `env` is no environment of the library and no task.

    Example:
        >>> import tempfile
        >>> from thrust_rl import TrainConfig, arm_from, load_checkpoint, make, train
        >>> env, arm, config = make("CartPole-v1"), arm_from("mlp"), TrainConfig(total_timesteps=2048)
        >>> [result] = train(env, arm, config)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save_checkpoint(f"{folder}/cartpole.safetensors", env, arm, config, result)
        ...     load_checkpoint(path, env).result.steps
        2048
    """
    require_task(env)
    tensors = _tensors(_kept(env, result.state))
    tensors |= {f"{CURVE}{name}": array for name, array in result.curve.to_arrays().items()}
    data = {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "environment": _named(env),
        "arm": dataclasses.asdict(arm_from(arm)),
        "config": dataclasses.asdict(config),
        "seed": result.seed,
        "seconds_run": result.seconds_run,
        "env_restarts": result.env_restarts,
        "resumed_at": list(result.resumed_at),
        "versions": versions(),
    }
    data["check"] = _digest(data, tensors)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write(safetensors.numpy.save(tensors, {HEADER: json.dumps(data, allow_nan=False)}))
    return path


def load_checkpoint(path: str | Path, env: FunctionalEnv | AnyTask) -> Checkpoint:
    """Read what `save_checkpoint` or training with `checkpoints` wrote.

    Args:
        path: of the file.
        env: what was trained in: it says what the policy's inputs and outputs are.

    Raises:
        TypeError: `env` is no environment of the library and no task.
        ConfigError: the file cannot be read, is damaged, or is of another environment.
    """
    require_task(env)
    path = Path(path)
    data, tensors = read_checkpoint(path)
    arm, config = from_dict(ArmConfig, data["arm"]), from_dict(TrainConfig, data["config"])
    changed = changes({"environment": data["environment"]}, {"environment": _named(env)})
    require(not changed, f"{path} is of another environment ({changed}): {REMEDY}")
    curve = {name.removeprefix(CURVE): tensors.pop(name) for name in list(tensors) if name.startswith(CURVE)}
    state = _state(path, env, arm, config, tensors)
    result = TrainResult(
        seed=data["seed"],
        curve=LearningCurve.from_arrays(curve),
        params=count_parameters(state.learner.policy),
        steps=int(state.update) * config.steps_per_update,
        seconds_compile=0.0,
        seconds_run=data["seconds_run"],
        state=state,
        env_restarts=data["env_restarts"],
        resumed_at=tuple(data["resumed_at"]),
    )
    return Checkpoint(arm, config, result, data["versions"])


def read_checkpoint(path: Path) -> tuple[dict[str, Any], Tensors]:
    """What a file holds, all of it exactly as it was written.

    Raises:
        ConfigError: it cannot be read, is damaged, or no checkpoint.
    """
    require(path.exists(), f"{path} does not exist: give another file")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            data = json.loads((file.metadata() or {}).get(HEADER, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror or error}): {REMEDY}") from error
    except (
        safetensors.SafetensorError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ConfigError(f"{path} is damaged, or no checkpoint ({error}): {REMEDY}") from error
    require_schema(data, path, schema=SCHEMA, version=VERSION, remedy=REMEDY)
    written = data.pop("check", None)
    require(written == _digest(data, tensors), f"{path} is damaged (it is not what was written): {REMEDY}")
    return data, tensors


def _kept(env: FunctionalEnv | AnyTask, state: TrainState) -> TrainState:
    """Without where acting stands in environments whose own state is not known."""
    return state if isinstance(env, FunctionalEnv) else state._replace(actor=())  # type: ignore[arg-type]


def _state(
    path: Path, env: FunctionalEnv | AnyTask, arm: ArmConfig, config: TrainConfig, tensors: Tensors
) -> TrainState:
    """The arrays in the shape of the run's state."""
    shapes = jax.eval_shape(lambda: _first(env, arm, config))
    expected = {name: (leaf.shape, str(leaf.dtype)) for name, leaf in _named_leaves(jax.eval_shape(_raw, shapes))}
    found = {name: (array.shape, str(array.dtype)) for name, array in tensors.items()}
    changed = changes(found, expected)
    require(not changed, f"{path} does not fit the environment ({changed}): {REMEDY}")
    leaves = [jnp.asarray(tensors[name]) for name in expected]
    typed = [
        jax.random.wrap_key_data(leaf) if jnp.issubdtype(shape.dtype, jax.dtypes.prng_key) else leaf
        for shape, leaf in zip(jax.tree.leaves(shapes), leaves, strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(shapes), typed)


def _first(env: FunctionalEnv | AnyTask, arm: ArmConfig, config: TrainConfig) -> TrainState:
    """A state of the same shape, as it is kept."""
    seed = jnp.zeros((), jnp.uint32)
    if isinstance(env, FunctionalEnv):
        return initial_state(env, arm, config, seed)
    task, key = Task.of(env, arm), jax.random.key(seed)
    learner, moments = initial_learner(task, config, key), initial_frame_moments(task.frame)
    return TrainState(learner, (), moments, key, jnp.zeros((), jnp.int32))  # type: ignore[arg-type]


def _tensors(state: TrainState) -> Tensors:
    return {name: np.asarray(leaf) for name, leaf in _named_leaves(_raw(state))}


def _raw(state: PyTree) -> PyTree:
    """Random keys as the numbers they are."""
    return jax.tree.map(
        lambda leaf: jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf, state
    )


def _named_leaves(tree: PyTree) -> list[tuple[str, Any]]:
    found, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in found]


def _digest(data: dict[str, Any], tensors: Tensors) -> str:
    """A short text that is equal for equal content."""
    total = hashlib.sha256(json.dumps(data, sort_keys=True).encode())
    for name in sorted(tensors):
        total.update(f"{name} {tensors[name].dtype} {tensors[name].shape} ".encode())
        total.update(np.ascontiguousarray(tensors[name]).tobytes())
    return total.hexdigest()


def _named(env: FunctionalEnv | AnyTask) -> str:
    """What was trained in, with its parameters as far as they are data."""
    name, built_by = ("", env) if isinstance(env, FunctionalEnv) else (env.name, _maker(env))
    parameters = repr(built_by) if dataclasses.is_dataclass(built_by) else ""
    return " ".join(filter(None, (name, re.sub(r" at 0x[0-9a-f]+", "", parameters))))


def _maker(task: AnyTask) -> object:
    match task:
        case HostTask():
            return task.make_env
        case VectorTask():
            return task.make_vector
        case CompiledTask():
            return task.env
