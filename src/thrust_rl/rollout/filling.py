"""A window of experience being filled, step by step, from a loop written by hand."""

import abc
import functools
from typing import Any, SupportsIndex

import jax
import numpy as np
from jaxtyping import Float

from thrust_rl import arrays
from thrust_rl.envs.checks import checked_index
from thrust_rl.maths.returns import Advantages
from thrust_rl.rollout.advantages import rollout_advantages
from thrust_rl.rollout.host import bootstrap_values, empty_steps
from thrust_rl.types import Memory, Rollout

Steps = Float[np.ndarray, "env time"]


class StepBuffer(abc.ABC):
    """What the buffers of every kind of policy share: steps come in order, all environments at once or one by one.

    Arrays are trajectory-major, `[env, time, ...]`. Nothing that comes in is broadcast, and numbers must be finite.

    Args:
        num_steps: length of the window.
        num_envs: environments side by side.
        obs_dim: length of an observation.
    """

    def __init__(self, num_steps: int, num_envs: int, obs_dim: int) -> None:
        self.num_steps = arrays.positive("num_steps", num_steps)
        self.num_envs = arrays.positive("num_envs", num_envs)
        self.obs_dim = arrays.positive("obs_dim", obs_dim)
        self._steps = empty_steps(self.num_envs, self.num_steps, self.obs_dim)
        self._opens = np.ones(self.num_envs, bool)  # the next o_t of each environment opens an episode
        self._position = 0  # steps complete in every environment
        self._given = np.zeros(self.num_envs, bool)  # which have given the step at the position
        self._advantages: Advantages | None = None

    def add(
        self,
        step: int,
        obs: Any,
        actions: Any,
        rewards: Any,
        values: Any,
        log_probs: Any,
        terminated: Any,
        truncated: Any,
        final_values: Any = None,
    ) -> None:
        """Take in one step of all environments; arrays over environments.

        Which observations open an episode follows from the flags of the step before, over windows too.

        Args:
            step: t within the window; steps come in order.
            obs: o_t as the policy consumed it, `[env, obs]`.
            actions: a_t.
            rewards: r_{t+1}, scaled.
            values: V(o_≤t) of the acting policy.
            log_probs: log π(a_t | o_≤t) of the acting policy.
            terminated: the transition ended in an absorbing state: the successor is worth 0.
            truncated: the transition was cut by a limit: the successor is worth its value.
            final_values: V of the true final observations, before any reset, under the memory that saw their
                episodes. Read where truncated (and not terminated); anything may stand elsewhere.

        Raises:
            TypeError: an array is of another kind.
            ValueError: the step is out of order, a shape is another, a number is not finite, or an episode was
                truncated and its final value is missing.
        """
        if self._given.any():
            begun = np.flatnonzero(self._given).tolist()
            raise ValueError(f"step {step} was begun with add_one() for environments {begun}: add the others so too")
        given = (obs, actions, rewards, values, log_probs, terminated, truncated)
        self._store(step, slice(None), given, final_values)

    def add_one(
        self,
        step: int,
        env: SupportsIndex,
        obs: Any,
        action: Any,
        reward: Any,
        value: Any,
        log_prob: Any,
        terminated: Any,
        truncated: Any,
        final_value: Any = None,
    ) -> None:
        """`add` for one environment: scalars instead of arrays over environments. Slower; any order."""
        index = checked_index(env, self.num_envs)
        if self._given[index]:
            raise ValueError(f"environment {index} was already given at step {step}: give every environment once")
        one = (obs, action, reward, value, log_prob, terminated, truncated)
        final_values = None if final_value is None else np.asarray(final_value)[None]
        self._store(step, slice(index, index + 1), tuple(np.asarray(each)[None] for each in one), final_values)

    def compute_advantages(self, last_values: Any, gamma: float, gae_lambda: float) -> None:
        """Fill in `advantages` and `returns` of the full window.

        Args:
            last_values: V of the observations after the last step, `[env]`; read where the last step ended nothing.
            gamma: discount factor.
            gae_lambda: λ.

        Raises:
            ValueError: the window is not full, or the values do not fit.
        """
        self._require_full("compute_advantages()")
        for name, number in (("gamma", gamma), ("gae_lambda", gae_lambda)):
            if not 0.0 <= number <= 1.0:
                raise ValueError(f"{name} is {number}: it must lie in [0, 1]")
        last_values = arrays.floats("last_values", last_values, (self.num_envs,), "env")
        last = self._steps.bootstrap_value[:, -1]
        last[:] = np.where(self._steps.truncated[:, -1], last, last_values)
        advantages = _compute(self._steps, gamma=float(gamma), gae_lambda=float(gae_lambda))
        self._advantages = Advantages(*map(arrays.copied, advantages))

    @property
    def advantages(self) -> Steps:
        """A_t, `[env, time]`; an error before `compute_advantages`."""
        return arrays.copied(self.learnable[1].advantage)

    @property
    def returns(self) -> Steps:
        """What the values are trained towards: A_t + V(o_≤t), `[env, time]`."""
        return arrays.copied(self.learnable[1].value_target)

    @property
    def learnable(self) -> tuple[Rollout, Advantages]:
        """What a trainer learns from.

        Raises:
            ValueError: `compute_advantages` has not been called on this window.
        """
        if self._advantages is None:
            raise ValueError(
                "the window has no advantages yet: call compute_advantages(last_values, gamma, gae_lambda)"
                " once it is full, then train"
            )
        return self.rollout, self._advantages

    @property
    def rollout(self) -> Rollout:
        """A copy of the full window."""
        self._require_full("rollout")
        return jax.tree.map(arrays.copied, self._steps._replace(memory=self._first_memory()))

    def reset(self) -> None:
        """Begin the next window. Episodes go on: whether its first observations open one is remembered."""
        self._position = 0
        self._given[:] = False
        self._advantages = None

    @abc.abstractmethod
    def _first_memory(self) -> Memory:
        """m_0 of the window, leaves `[env, ...]`."""

    def _store(self, step: int, rows: slice, given: tuple[Any, ...], final_values: Any) -> None:
        """Check everything, then write the rows of one step."""
        self._require_next(step)
        obs, actions, rewards, values, log_probs, terminated, truncated = given
        n = (len(self._opens[rows]),)
        terminated = arrays.flags("terminated", terminated, n, "env")
        truncated = arrays.flags("truncated", truncated, n, "env")
        record = {
            "obs": arrays.floats("obs", obs, (*n, self.obs_dim), "env obs"),
            "episode_start": self._opens[rows],
            "action": arrays.integers("actions", actions, n, "env"),
            "log_prob": arrays.floats("log_probs", log_probs, n, "env"),
            "value": arrays.floats("values", values, n, "env"),
            "reward": arrays.floats("rewards", rewards, n, "env"),
            "terminated": terminated,
            "truncated": truncated,
            "bootstrap_value": bootstrap_values(final_values, truncated & ~terminated, rows.start or 0),
        }
        for name, array in record.items():
            getattr(self._steps, name)[rows, step] = array
        self._opens[rows] = terminated | truncated
        self._given[rows] = True
        if self._given.all():
            self._given[:] = False
            self._position += 1

    def _require_next(self, step: int) -> None:
        if self._position == self.num_steps:
            raise ValueError(f"step {step} is past the end: the window of {self.num_steps} steps is full; call reset()")
        if arrays.whole("step", step) != self._position:
            raise ValueError(f"step {step} is out of order: {self._position} comes next; add every step once")

    def _require_full(self, what: str) -> None:
        if self._position < self.num_steps:
            raise ValueError(
                f"{what} on a window with {self._position} of {self.num_steps} steps: add the others first"
            )


@functools.partial(jax.jit, static_argnames=("gamma", "gae_lambda"))
def _compute(rollout: Rollout, *, gamma: float, gae_lambda: float) -> Advantages:
    return rollout_advantages(rollout, gamma=gamma, gae_lambda=gae_lambda)
