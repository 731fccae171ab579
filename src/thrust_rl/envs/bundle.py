"""What lives in a worker process: several environments as one, which says everything through its observation."""

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from thrust_rl.envs.batch import StepResult
from thrust_rl.envs.faults import EnvError, env_error, fault_of
from thrust_rl.envs.host import HostBatch
from thrust_rl.envs.hosted import Hosted, SteppedInProcess
from thrust_rl.envs.spaces import ObsSpec

FAULT_BYTES = 2000  # of a message


class Bundle(gymnasium.Env[Any, Any]):
    """Several environments as one, for a worker process: what it observes is both successors and frames to act on.

    It never ends, so nothing resets it; rewards and flags, one for each environment, are a part of its observation,
    which Gymnasium passes through shared memory. The environments are built at a reset, so that a bundle which only
    says its spaces costs nothing, and always begin new.

    Args:
        plan: what it holds.
    """

    def __init__(self, plan: "BundleMaker") -> None:
        spec, action_space, count = ObsSpec.of(plan.tree), plan.action_space, plan.count
        self._make_batch, self._first, self._count = plan.make_batch, plan.first, count
        self._batch: HostBatch | None = None
        each = jax.tree.map(lambda part: _stored_space(part.shape, part.dtype, count), spec.tree)
        flags = _stored_space((), np.bool_, count)
        self.observation_space = _as_space(
            {
                "next": each,
                "successor": each,
                "reward": _stored_space((), np.float32, count),
                **dict.fromkeys(("terminated", "truncated", "blank", "successor_blank"), flags),
                "replaced": _stored_space((), np.int32, count),
                "fault": _stored_space((), np.uint8, FAULT_BYTES),
            }
        )
        self._last = jax.tree.map(lambda space: np.zeros(space.shape, space.dtype), _as_tree(self.observation_space))
        self.action_space = batch_space(action_space, count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Build and begin every environment.

        Args:
            seed: not used.
            options: `base_seed`; `steps` that were made before and `replaced`, how often each environment was
                replaced, for the process whose place this one takes; `place`, a file of `mapped_place`.
        """
        given, nothing = dict(options or {}), np.zeros(self._count, bool)

        def begin() -> Hosted:
            self.shut()
            self._batch = self._make_batch(self._first, self._count)
            self._batch.take_over(given["steps"], given["replaced"], place=mapped_place(given["place"]))
            frames = SteppedInProcess(self._batch).begin(given["base_seed"])
            result = StepResult(frames.obs, np.zeros(self._count, np.float32), nothing, nothing, frames.info)
            return Hosted(result, frames, nothing, ())

        return self._seen(begin, given["steps"]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One transition of every environment."""
        batch = self._batch
        assert batch is not None, "a reset comes first"
        return self._seen(lambda: SteppedInProcess(batch).step(action), batch.steps + 1), 0.0, False, False, {}

    def close(self) -> None:
        """Close every environment."""
        self.shut()

    def shut(self) -> None:
        """Close every environment: as something that Gymnasium lets the parent call and wait for."""
        if self._batch is not None:
            self._batch.close()

    def _seen(self, call: Callable[[], Hosted], step: int) -> dict[str, Any]:
        """What came of a call, or the fault that ended it."""
        try:
            result, frames, _, _ = call()
        except BaseException as error:  # noqa: BLE001  # whatever it is, the parent has to hear of it
            known = error if isinstance(error, EnvError) else env_error(self._first, step, fault_of(error))
            message = str(known).encode(errors="replace")[:FAULT_BYTES]
            self._last["fault"][: len(message)] = np.frombuffer(message, np.uint8)
            return self._last
        assert self._batch is not None
        self._last = {
            "next": frames.obs,
            "successor": result.obs,
            "reward": result.reward,
            "terminated": result.terminated,
            "truncated": result.truncated,
            "blank": frames.info["blank"],
            "successor_blank": result.info["blank"],
            "replaced": self._batch.replaced.astype(np.int32),
            "fault": np.zeros(FAULT_BYTES, np.uint8),
        }
        return self._last


@dataclasses.dataclass(frozen=True)
class BundleMaker:
    """Builds a bundle in its worker; picklable if what makes the environments is.

    Args:
        make_batch: builds the environments.
        tree: what an observation is made of, as `ObsSpec.tree`; a tree definition itself cannot be pickled.
        action_space: of one environment.
        first: index of the first environment.
        count: how many.
    """

    make_batch: Callable[[int, int], HostBatch]
    tree: Any
    action_space: gymnasium.Space[Any]
    first: int
    count: int

    def __call__(self) -> gymnasium.Env[Any, Any]:
        """A bundle that has built nothing yet."""
        return Bundle(self)


def mapped_place(path: str) -> NDArray[np.int32]:
    """Which environment is being stepped, as memory that two processes share: it outlives the one that dies."""
    return np.memmap(path, np.int32, "r+", shape=(1,))


def _stored_space(shape: tuple[int, ...], dtype: Any, count: int) -> gymnasium.spaces.Box:
    dtype = np.uint8 if dtype == np.bool_ else dtype
    info = np.finfo(dtype) if np.issubdtype(dtype, np.floating) else np.iinfo(dtype)
    return gymnasium.spaces.Box(info.min, info.max, (count, *shape), dtype)


def _as_tree(space: gymnasium.Space[Any]) -> Any:
    if isinstance(space, gymnasium.spaces.Dict):
        return {name: _as_tree(inner) for name, inner in space.spaces.items()}
    if isinstance(space, gymnasium.spaces.Tuple):
        return tuple(map(_as_tree, space.spaces))
    return space


def _as_space(tree: Any) -> gymnasium.Space[Any]:
    if isinstance(tree, dict):
        return gymnasium.spaces.Dict({name: _as_space(inner) for name, inner in tree.items()})
    if isinstance(tree, tuple):
        return gymnasium.spaces.Tuple(tuple(map(_as_space, tree)))
    assert isinstance(tree, gymnasium.Space)
    return tree
