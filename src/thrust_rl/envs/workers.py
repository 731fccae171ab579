"""Environments in worker processes: Gymnasium's `AsyncVectorEnv` over a few bundles of environments each."""

import contextlib
import multiprocessing
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from thrust_rl.envs.batch import Frames, StepResult
from thrust_rl.envs.faults import EnvError, env_error
from thrust_rl.envs.host import HostBatch
from thrust_rl.envs.hosted import Hosted, SteppedInProcess
from thrust_rl.envs.spaces import ObsSpec

FAULT_BYTES = 2000  # of a message
CLOSE_TIMEOUT = 5.0  # seconds
STEP_TIMEOUT = 300.0  # seconds: a step that takes longer counts as hung


class Bundle(gymnasium.Env[Any, Any]):
    """Several environments as one, for a worker process: what it observes is both successors and frames to act on.

    It never ends, so nothing resets it; rewards and flags, one for each environment, are a part of its observation,
    which Gymnasium passes through shared memory.
    """

    def __init__(self, envs: SteppedInProcess, spec: ObsSpec, action_space: gymnasium.Space[Any], count: int) -> None:
        self._envs, self._count = envs, count
        each = jax.tree.map(lambda part: _stored_space(part.shape, part.dtype, count), spec.tree)
        flags = _stored_space((), np.bool_, count)
        self.observation_space = _as_space(
            {
                "next": each,
                "successor": each,
                "reward": _stored_space((), np.float32, count),
                **dict.fromkeys(("terminated", "truncated", "blank", "successor_blank"), flags),
                "restarts": _stored_space((), np.int32, 1),
                "fault": _stored_space((), np.uint8, FAULT_BYTES),
            }
        )
        self._last = jax.tree.map(lambda space: np.zeros(space.shape, space.dtype), _as_tree(self.observation_space))
        self.action_space = batch_space(action_space, count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin every environment."""
        nothing = np.zeros(self._count, bool)

        def begin() -> Hosted:
            frames = self._envs.begin((options or {})["base_seed"])
            result = StepResult(frames.obs, np.zeros(self._count, np.float32), nothing, nothing, frames.info)
            return Hosted(result, frames, nothing, ())

        return self._seen(begin), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One transition of every environment."""
        return self._seen(lambda: self._envs.step(action)), 0.0, False, False, {}

    def close(self) -> None:
        """Close every environment."""
        self._envs.close()

    def _seen(self, call: Callable[[], Hosted]) -> dict[str, Any]:
        """What came of a call, or the fault that ended it."""
        try:
            result, frames, _, _ = call()
        except EnvError as error:
            message = str(error).encode()[:FAULT_BYTES]
            self._last["fault"][: len(message)] = np.frombuffer(message, np.uint8)
            return self._last
        self._last = {
            "next": frames.obs,
            "successor": result.obs,
            "reward": result.reward,
            "terminated": result.terminated,
            "truncated": result.truncated,
            "blank": frames.info["blank"],
            "successor_blank": result.info["blank"],
            "restarts": np.array([self._envs.restarts()], np.int32),
            "fault": np.zeros(FAULT_BYTES, np.uint8),
        }
        return self._last


class SteppedByWorkers:
    """`num_envs` environments in `workers` processes; the same numbers as in one process.

    Args:
        make_batch: builds the environments from an index on: `make_batch(first_index, count)`.
        spec: what an observation is made of.
        action_space: of one environment.
        num_envs: how many.
        workers: processes; each gets a run of neighbouring environments.
    """

    def __init__(
        self,
        make_batch: Callable[[int, int], HostBatch],
        spec: ObsSpec,
        action_space: gymnasium.Space[Any],
        *,
        num_envs: int,
        workers: int,
    ) -> None:
        self._bundle = num_envs // workers
        self._vector = AsyncVectorEnv(
            [_BundleMaker(make_batch, spec, action_space, i * self._bundle, self._bundle) for i in range(workers)],
            shared_memory=True,
            context="forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn",
            autoreset_mode=AutoresetMode.DISABLED,
            observation_mode="same",
        )
        self._spec, self._replaced, self._steps = spec, 0, 0

    def begin(self, seed: int) -> Frames:
        """Begin every environment."""
        obs = self._talk(lambda: self._vector.reset(options={"base_seed": seed})[0])
        return self._frames("next", "blank", obs)

    def step(self, actions: NDArray[Any]) -> Hosted:
        """One step of every environment."""
        bundled = actions.reshape(self._vector.num_envs, self._bundle, *actions.shape[1:])
        obs = self._talk(lambda: self._stepped(bundled))
        successors = self._frames("successor", "successor_blank", obs)
        terminated, truncated = (obs[name].reshape(-1).astype(bool) for name in ("terminated", "truncated"))
        result = StepResult(successors.obs, obs["reward"].reshape(-1), terminated, truncated, successors.info)
        return Hosted(result, self._frames("next", "blank", obs), result.over, ())

    def restarts(self) -> int:
        """How many environments failed and were replaced."""
        return self._replaced

    def close(self) -> None:
        """Let the environments close, then end every process."""
        if self._vector.closed:
            return
        with contextlib.suppress(EOFError, OSError, multiprocessing.TimeoutError):
            self._vector.close(timeout=CLOSE_TIMEOUT)
        self._end()

    def _end(self) -> None:
        """End every process, also one that is in the middle of a step."""
        self._vector.closed = True
        for process in self._vector.processes:
            process.kill()
        for process in self._vector.processes:
            process.join()

    def _stepped(self, bundled: NDArray[Any]) -> Any:
        self._vector.step_async(bundled)
        return self._vector.step_wait(timeout=STEP_TIMEOUT)[0]

    def _talk(self, call: Callable[[], Any]) -> Any:
        """Talk to the workers; when one fails, end them all.

        Raises:
            EnvError: an environment failed, or its process died.
        """
        try:
            obs = call()
        except (EOFError, OSError, multiprocessing.TimeoutError) as error:
            processes = self._vector.processes
            connection.wait([process.sentinel for process in processes], timeout=1.0)  # its pipe may close first
            dead = [i for i, process in enumerate(processes) if not process.is_alive()]
            self._end()
            first = (dead[0] if dead else 0) * self._bundle
            what = "its worker process died" if dead else f"its worker does not answer ({error!r})"
            raise env_error(
                first, self._steps, f"{what}; it held environments {first} to {first + self._bundle - 1}"
            ) from error
        self._steps += 1
        faults = [bytes(row).rstrip(b"\0").decode(errors="replace") for row in obs["fault"] if row.any()]
        if faults:
            self._end()
            raise EnvError(faults[0])
        self._replaced = int(np.sum(obs["restarts"]))
        return obs

    def _frames(self, name: str, blank: str, obs: Any) -> Frames:
        """Leaves `[worker, env of the worker, ...]` as `[env, ...]`, in the types of the spec."""
        values = [
            np.asarray(leaf).reshape(-1, *part.shape).astype(part.dtype)
            for part, leaf in zip(self._spec.parts, self._spec.leaves(obs[name]), strict=True)
        ]
        return Frames(self._spec.treedef.unflatten(values), {"blank": obs[blank].reshape(-1).astype(bool)})


class _BundleMaker:
    """Builds a bundle in its worker; picklable if what makes the environments is."""

    def __init__(self, make_batch: Any, spec: ObsSpec, action_space: Any, first: int, count: int) -> None:
        self.make_batch, self.action_space, self.first, self.count = make_batch, action_space, first, count
        self.tree = spec.tree  # a tree definition itself cannot be pickled

    def __call__(self) -> gymnasium.Env[Any, Any]:
        batch = self.make_batch(self.first, self.count)
        return Bundle(SteppedInProcess(batch), ObsSpec.of(self.tree), self.action_space, self.count)


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
