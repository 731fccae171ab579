"""A pool of environments stepped together, which never resets by itself."""

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker
from numpy.typing import NDArray

from thrust_rl.arrays import flags, positive
from thrust_rl.config import require
from thrust_rl.envs.batch import Batch, CompiledBatch, StepResult
from thrust_rl.envs.checks import built, checked_actions, checked_index, checked_seed
from thrust_rl.envs.host import HostBatch
from thrust_rl.envs.stateful import StatefulEnv


class EnvPool:
    """`num_envs` environments side by side: arrays over environments in, arrays over environments out.

    Every environment has random numbers of its own, derived from the base seed and its index; seeds that `make_env`
    gives are not used. When all environments are the library's own, with the same parameters, all of them are stepped
    in one compiled call and draw the numbers that the packaged training draws. Other `gymnasium.Env`s are stepped one
    after the other.

    `reset()` begins all streams the first time and a new episode everywhere after that.

    Args:
        make_env: builds one environment; called `num_envs` times.
        num_envs: how many.
        seed: the base seed.

    Raises:
        ConfigError: a setting is out of range, or the environments do not fit together.
        TypeError: `make_env` does not build environments.

    Example:
        >>> from thrust_rl.envs.stateful import FlickeringCartPole
        >>> pool = EnvPool(lambda: FlickeringCartPole(flicker_prob=0.5), 4, seed=0)
        >>> obs = pool.reset()
        >>> result = pool.step([0, 1, 0, 1])
        >>> obs = pool.reset_where(result.over)
        >>> obs.shape, result.reward.tolist(), result.info["blank"].shape
        ((4, 4), [1.0, 1.0, 1.0, 1.0], (4,))
    """

    def __init__(
        self, make_env: Callable[[], gymnasium.Env[Any, Any]], num_envs: int, *, seed: SupportsIndex = 0
    ) -> None:
        self.num_envs = positive("num_envs", num_envs)
        self._seed = checked_seed(seed)
        otherwise = "a FunctionalEnv becomes one as StatefulEnv(functional)"
        envs = [built(make_env, otherwise=otherwise) for _ in range(self.num_envs)]
        _require_fit(envs)
        self.observation_space: gymnasium.spaces.Space[Any] = envs[0].observation_space
        self.action_space: gymnasium.spaces.Space[Any] = envs[0].action_space
        self._batch = _batch_of(envs)
        self._begun = False
        self._ended = np.zeros(self.num_envs, bool)

    def reset(self) -> NDArray[np.float32]:
        """Begin an episode everywhere.

        Returns:
            The first observations `[env, ...]`.
        """
        frames = self._batch.restart(np.ones(self.num_envs, bool)) if self._begun else self._batch.begin(self._seed)
        self._begun = True
        self._ended = np.zeros(self.num_envs, bool)
        return frames.obs

    def step(self, actions: Any) -> StepResult:
        """One transition of every environment.

        Args:
            actions: one per environment, `[env, *action]`.

        Returns:
            The successors, which are never those of a new episode, with rewards, flags and `info["blank"]`.

        Raises:
            ValueError: an environment has ended and was not reset, or the actions do not fit.
            TypeError: the actions' dtype is wrong.
        """
        self._require_begun("step()")
        if self._ended.any():
            ended = np.flatnonzero(self._ended).tolist()
            raise ValueError(
                f"environments {ended} have ended: call reset_where(result.over) or reset_env(i), or reset() for all,"
                " then step()"
            )
        result = self._batch.step(checked_actions(actions, self.action_space, self.num_envs))
        self._ended = result.over
        return result

    def reset_env(self, i: SupportsIndex) -> NDArray[np.float32]:
        """Begin an episode of one environment, whether or not the last one ended.

        Returns:
            Its first observation.

        Raises:
            IndexError: there is no such environment.
            ValueError: the pool has not been reset yet.
        """
        index = checked_index(i, self.num_envs)
        self._require_begun("reset_env()")
        return self.reset_where(np.arange(self.num_envs) == index)[index].copy()

    def reset_where(self, over: Any) -> NDArray[np.float32]:
        """Begin an episode of some environments, usually of those where the last step ended one: `result.over`.

        Args:
            over: which ones, `[env]`, booleans; whether or not their last episode ended.

        Returns:
            The frames to act on next, `[env, ...]`: the first of the new episode where `over`, else the current one.

        Raises:
            TypeError: `over` does not hold booleans.
            ValueError: it has another shape, or the pool has not been reset yet.
        """
        wanted = flags("over", over, (self.num_envs,), "env")
        self._require_begun("reset_where()")
        obs = self._batch.restart(wanted).obs
        self._ended &= ~wanted
        return obs

    def close(self) -> None:
        """Close the environments; the library's own hold nothing that needs it."""
        if isinstance(self._batch, HostBatch):
            self._batch.close()

    def _require_begun(self, what: str) -> None:
        if not self._begun:
            raise ValueError(f"{what} before reset(): call reset() to begin every environment")


def _require_fit(envs: Sequence[gymnasium.Env[Any, Any]]) -> None:
    require(
        len({id(env) for env in envs}) == len(envs),
        "make_env gave the same environment twice: it must build a new one at every call",
    )
    first = envs[0]
    for name, spaces in (
        ("observation_space", [env.observation_space for env in envs]),
        ("action_space", [env.action_space for env in envs]),
    ):
        other = next((space for space in spaces if space != spaces[0]), None)
        require(other is None, f"make_env built environments whose {name} differ: {spaces[0]} and {other}")
        require(
            spaces[0].shape is not None,
            f"{name} is {spaces[0]}: a pool needs one that is a single array; flatten it with a wrapper of {first}",
        )


def _batch_of(envs: Sequence[gymnasium.Env[Any, Any]]) -> Batch:
    """Compiled where all environments are the library's own and alike."""
    shells = [_shell(env) for env in envs]
    first = shells[0]
    if first is not None and all(shell is not None and shell.functional == first.functional for shell in shells):
        return CompiledBatch(first.functional, len(envs))
    return HostBatch(envs)


def _shell(env: gymnasium.Env[Any, Any]) -> StatefulEnv | None:
    """The library's own environment inside what `gymnasium.make` returns; None if anything changes its behaviour."""
    while type(env) in (OrderEnforcing, PassiveEnvChecker):
        env = env.env  # type: ignore[attr-defined]  # both are wrappers
    own = isinstance(env, StatefulEnv) and (type(env).reset, type(env).step) == (StatefulEnv.reset, StatefulEnv.step)
    return env if own and isinstance(env, StatefulEnv) else None
