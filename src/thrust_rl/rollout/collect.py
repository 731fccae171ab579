"""Acting: one compiled scan that turns a policy and a batch of environments into a `Rollout`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from thrust_rl.config import TrainConfig
from thrust_rl.envs.core import EnvState, FunctionalEnv, step_and_restart
from thrust_rl.maths.distributions import Action
from thrust_rl.maths.finite import all_finite
from thrust_rl.maths.keys import step_key
from thrust_rl.maths.sampling import action_noise, draw_actions
from thrust_rl.policies.actor_critic import ActorCritic, empty_memory
from thrust_rl.policies.inputs import Arrival, Task, assemble
from thrust_rl.rollout.axes import trajectory_major
from thrust_rl.rollout.normalize import initial_frame_moments, observe_frames, standardize_frames
from thrust_rl.types import Frame, Memory, Rollout, StreamKeys


class Actor(NamedTuple):
    """Where acting stands between two steps; leaves `[env, ...]`."""

    env_state: EnvState
    obs: PyTree  # o_t as the policy will consume it: normalized, with the inputs the arm asks for
    episode_start: Bool[Array, " env"]  # about o_t
    memory: Memory  # m_t
    episode_return: Float[Array, " env"]  # raw reward since the episode began


class Window(NamedTuple):
    """What one window of acting produced."""

    rollout: Rollout
    episode_return: Float[Array, "time env"]  # raw return of the episode that ended here, else NaN
    finite_frames: Bool[Array, " time"]  # no frame of that step was infinite or NaN, before normalizing


class _Step(NamedTuple):
    """One time step of every environment: a `Rollout` in the making, leaves `[env, ...]`."""

    obs: PyTree
    episode_start: Array
    action: Array
    log_prob: Array
    value: Array
    reward: Array
    terminated: Array
    truncated: Array
    bootstrap_value: Array


class _Report(NamedTuple):
    """What else one time step leaves: see `Window`."""

    episode_return: Array
    finite_frames: Array


def initial_actor(
    env: FunctionalEnv, task: Task, policy: ActorCritic, streams: StreamKeys, config: TrainConfig
) -> tuple[Actor, PyTree]:
    """Begin every stream: first frames, empty memories, and the moments of those frames."""
    env_state, frame = jax.vmap(env.init)(jax.vmap(step_key, in_axes=(0, None))(streams, 0))
    return first_look(task, policy, env_state, frame, moments=initial_frame_moments(task.frame), config=config)


def first_look(
    task: Task, policy: ActorCritic, env_state: PyTree, frame: Frame, *, moments: PyTree, config: TrainConfig
) -> tuple[Actor, PyTree]:
    """Receive the first frames of all streams, and take them into the moments."""
    num_envs = frame.blank.shape[0]
    episode_start = jnp.ones(num_envs, bool)
    before = jax.tree.map(jnp.asarray, task.inputs.zeros(num_envs))
    action = jnp.broadcast_to(task.actions.none, (num_envs, *task.actions.none.shape))
    arrival = Arrival(action, jnp.zeros(num_envs), episode_start)
    moments, obs = receive(task, moments, frame, before=before, arrival=arrival, config=config)
    return Actor(env_state, obs, episode_start, empty_memory(policy, num_envs), jnp.zeros(num_envs)), moments


def receive(
    task: Task, moments: PyTree, frame: Frame, *, before: PyTree, arrival: Arrival, config: TrainConfig
) -> tuple[PyTree, PyTree]:
    """The moments with arriving frames taken in, and what the policy consumes of them; leaves `[env, ...]`."""
    seen = frame.obs
    if config.ppo.normalize_obs:
        moments, seen = observe_frames(task.frame, moments, frame.obs, frame.blank)
    return moments, _assembled(task, seen, before, arrival)


def collect(
    env: FunctionalEnv,
    task: Task,
    policy: ActorCritic,
    actor: Actor,
    moments: PyTree,
    streams: StreamKeys,
    *,
    first_step: Int[Array, ""],
    config: TrainConfig,
) -> tuple[Actor, PyTree, Window]:
    """Act for one window.

    Args:
        env: the environment, not batched.
        task: what the arm meets in it.
        policy: acts by sampling.
        actor: where acting stands.
        moments: of the observations so far.
        streams: one key per environment.
        first_step: index of the window's first step in the streams.
        config: window length, window start, reward scale, normalizing.

    Returns:
        Where acting stands afterwards, the moments, and the window.
    """
    if config.window_start == "cold":
        actor = actor._replace(memory=empty_memory(policy, streams.shape[0]))
    first_memory = actor.memory
    first_clock = jnp.broadcast_to(first_step, streams.shape)
    noise = window_noise(policy, streams, first_clock, config.num_steps)

    def body(
        carry: tuple[Actor, PyTree], inputs: tuple[Int[Array, ""], PyTree]
    ) -> tuple[tuple[Actor, PyTree], tuple[_Step, _Report]]:
        t, noise = inputs
        keys = jax.vmap(step_key, in_axes=(0, None))(streams, first_step + t + 1)
        actor, moments, step, report = _act(env, task, policy, *carry, keys, noise, t == config.num_steps - 1, config)
        return (actor, moments), (step, report)

    (actor, moments), (steps, reports) = lax.scan(body, (actor, moments), (jnp.arange(config.num_steps), noise))
    rollout = Rollout(*trajectory_major(steps), memory=first_memory)
    return actor, moments, Window(rollout, *reports)


def _act(
    env: FunctionalEnv,
    task: Task,
    policy: ActorCritic,
    actor: Actor,
    moments: PyTree,
    keys: StreamKeys,
    noise: PyTree,
    last: Bool[Array, ""],
    config: TrainConfig,
) -> tuple[Actor, PyTree, _Step, _Report]:
    """One step of every environment."""
    memory, action, log_prob, value = decide(policy, actor, noise)
    env_state, result, frame = jax.vmap(lambda *args: step_and_restart(env, *args))(
        keys, actor.env_state, task.actions.to_env(action)
    )
    over = result.terminated | result.truncated
    reward = result.reward * config.ppo.reward_scale
    moments, obs = receive(task, moments, frame, before=actor.obs, arrival=Arrival(action, reward, over), config=config)
    episode_return = actor.episode_return + result.reward
    successor = Frame(result.obs, result.blank)

    def bootstrap_values() -> Float[Array, " env"]:
        arrival = Arrival(action, reward, jnp.zeros_like(over))
        return successor_values(
            task, policy, memory, moments, successor, before=actor.obs, arrival=arrival, config=config
        )

    step = _Step(
        obs=actor.obs,
        episode_start=actor.episode_start,
        action=action,
        log_prob=log_prob,
        value=value,
        reward=reward,
        terminated=result.terminated,
        truncated=result.truncated,
        # An extra pass through the policy costs as much as acting. Truncations are rare, so it is taken only on steps
        # that have one, and on the window's last step.
        bootstrap_value=lax.cond(last | jnp.any(result.truncated), bootstrap_values, lambda: jnp.zeros_like(reward)),
    )
    actor = Actor(env_state, obs, over, memory, jnp.where(over, 0.0, episode_return))
    finite = all_finite(result.obs) & all_finite(frame.obs)
    return actor, moments, step, _Report(jnp.where(over, episode_return, jnp.nan), finite)


def window_noise(policy: ActorCritic, streams: StreamKeys, clock: Int[Array, " env"], num_steps: int) -> PyTree:
    """The random numbers of a window's actions, leaves `[time, env, ...]`: cheap because drawn at once.

    Args:
        policy: whose actions; only its shapes matter.
        streams: one key per environment.
        clock: transitions of every environment before the window.
        num_steps: length of the window.
    """
    nothing = jnp.zeros((*streams.shape, policy.actions.num_outputs))
    distribution = policy.actions.distribution(nothing, policy.log_std)

    def noise_at(t: Int[Array, ""]) -> PyTree:
        return action_noise(distribution, jax.vmap(step_key)(streams, clock + t + 1))

    return jax.vmap(noise_at)(jnp.arange(num_steps))


def decide(
    policy: ActorCritic, actor: Actor, noise: PyTree
) -> tuple[Memory, Action, Float[Array, " env"], Float[Array, " env"]]:
    """Consume o_t: m_{t+1}, the actions that the noise of step t+1 chooses, their log-probabilities, and the values."""
    memory, output = jax.vmap(policy.step)(actor.memory, actor.obs, actor.episode_start)
    action, log_prob = draw_actions(output.distribution, noise)
    return memory, action, log_prob, output.value


def successor_values(
    task: Task,
    policy: ActorCritic,
    memory: Memory,
    moments: PyTree,
    successor: Frame,
    *,
    before: PyTree,
    arrival: Arrival,
    config: TrainConfig,
) -> Float[Array, " env"]:
    """V of the true successors o_{t+1}, under m_{t+1}, the memory that saw their episodes."""
    seen = successor.obs
    if config.ppo.normalize_obs:
        seen = standardize_frames(task.frame, moments, seen, successor.blank)
    obs = _assembled(task, seen, before, arrival)
    _, output = jax.vmap(policy.step)(memory, obs, arrival.episode_start)
    return output.value


def _assembled(task: Task, frames: PyTree, before: PyTree, arrival: Arrival) -> PyTree:
    return jax.vmap(lambda frame, old, came: assemble(task, frame, before=old, arrival=came))(frames, before, arrival)
