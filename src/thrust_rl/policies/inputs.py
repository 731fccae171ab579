"""What a policy consumes at t: the frame, and what an arm asks for beside it.

The previous action, the previous reward and earlier frames are a memory channel of their own. They are assembled
here and nowhere else: acting, replay and bootstrap values use the same function.
"""

import dataclasses
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from thrust_rl.config import ArmConfig
from thrust_rl.envs.actions import ActionSpec, action_spec
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.spaces import ObsSpec, Switches, obs_spec, require_read_as_it_is
from thrust_rl.envs.task import CompiledTask
from thrust_rl.maths.distributions import Action


@runtime_checkable
class Spaces(Protocol):
    """Anything with a Gymnasium space of observations and one of actions."""

    @property
    def observation_space(self) -> Any:
        """Of one environment."""

    @property
    def action_space(self) -> Any:
        """Of one environment."""


class Inputs(NamedTuple):
    """More than a frame; `()` stands for what the arm does not ask for."""

    obs: PyTree  # o_t, normalized; with a frame stack, the last frames `[frame, ...]`, the newest last
    action: Float[Array, " width"] | tuple[()]  # a_{t−1}, encoded; zeros where o_t opens an episode
    reward: Float[Array, ""] | tuple[()]  # r_t, scaled; zero where o_t opens an episode


class Arrival(NamedTuple):
    """What leads to o_t."""

    action: Action  # a_{t−1}, flat
    reward: Float[Array, ""]  # r_t, scaled
    episode_start: Bool[Array, ""]  # o_t opens an episode: nothing leads to it


@dataclasses.dataclass(frozen=True)
class Task:
    """What an arm meets in an environment: its frames, its actions, and the arm. Pure, hashable."""

    arm: ArmConfig
    frame: ObsSpec
    actions: ActionSpec

    @staticmethod
    def of(env: Spaces, arm: ArmConfig) -> "Task":
        """From an environment's spaces.

        Raises:
            ConfigError: the arm cannot read the observations, or draw the actions.
        """
        frame = obs_spec(env.observation_space)
        if isinstance(env, FunctionalEnv | CompiledTask):
            require_read_as_it_is(env.name, frame)
        return Task(arm, frame, action_spec(env.action_space))

    @property
    def inputs(self) -> ObsSpec:
        """The spec of what the policy consumes."""
        arm, frame = self.arm, self.frame.tree
        if not arm.asks_for_inputs:
            return self.frame
        stack = frame if arm.frame_stack == 1 else jax.tree.map(lambda part: part.stacked(arm.frame_stack), frame)
        action: Any = Switches((self.actions.width,)) if arm.previous_action else ()
        reward: Any = Switches(()) if arm.previous_reward else ()
        return ObsSpec.of(Inputs(stack, action, reward))


def assemble(task: Task, frame: PyTree, *, before: PyTree, arrival: Arrival) -> PyTree:
    """What a policy consumes at t, for one environment.

    Args:
        task: what the arm asks for.
        frame: o_t, normalized.
        before: what was consumed at t−1; its frame stack goes on unless o_t opens an episode.
        arrival: what leads to o_t.

    Returns:
        The frame itself where the arm asks for nothing more, else `Inputs`.
    """
    arm, start = task.arm, arrival.episode_start
    if not arm.asks_for_inputs:
        return frame

    def push(old: Array, new: Array) -> Array:
        return jnp.concatenate([jnp.where(start, jnp.zeros_like(old[1:]), old[1:]), new[None]])

    return Inputs(
        obs=frame if arm.frame_stack == 1 else jax.tree.map(push, before.obs, frame),
        action=jnp.where(start, 0.0, task.actions.encode(arrival.action)) if arm.previous_action else (),
        reward=jnp.where(start, 0.0, arrival.reward) if arm.previous_reward else (),
    )
