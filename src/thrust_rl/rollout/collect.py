"""Acting: one compiled scan that turns a policy and a batch of environments into a `Rollout`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from thrust_rl.config import TrainConfig
from thrust_rl.envs.core import EnvState, FunctionalEnv, step_and_restart
from thrust_rl.maths.keys import step_key
from thrust_rl.maths.moments import Moments, initial_moments
from thrust_rl.maths.sampling import draw_actions
from thrust_rl.policies.actor_critic import ActorCritic, empty_memory
from thrust_rl.rollout.axes import trajectory_major
from thrust_rl.rollout.normalize import observe_and_standardize, standardize_visible
from thrust_rl.types import Frame, Memory, Rollout, StreamKeys, Transition


class Actor(NamedTuple):
    """Where acting stands between two steps; leaves `[env, ...]`."""

    env_state: EnvState
    obs: Float[Array, "env *obs"]  # o_t, normalized, about to be consumed
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

    obs: Array
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
    env: FunctionalEnv, policy: ActorCritic, streams: StreamKeys, config: TrainConfig
) -> tuple[Actor, Moments]:
    """Begin every stream: first frames, empty memories, and the moments of those frames."""
    num_envs = streams.shape[0]
    env_state, frame = jax.vmap(env.init)(jax.vmap(step_key, in_axes=(0, None))(streams, 0))
    moments = initial_moments(frame.obs.shape[1:])
    moments, obs = _receive(moments, frame, config)
    actor = Actor(
        env_state=env_state,
        obs=obs,
        episode_start=jnp.ones(num_envs, bool),
        memory=empty_memory(policy, num_envs),
        episode_return=jnp.zeros(num_envs),
    )
    return actor, moments


def collect(
    env: FunctionalEnv,
    policy: ActorCritic,
    actor: Actor,
    moments: Moments,
    streams: StreamKeys,
    *,
    first_step: Int[Array, ""],
    config: TrainConfig,
) -> tuple[Actor, Moments, Window]:
    """Act for one window.

    Args:
        env: the environment, not batched.
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

    def body(carry: tuple[Actor, Moments], t: Int[Array, ""]) -> tuple[tuple[Actor, Moments], tuple[_Step, _Report]]:
        keys = jax.vmap(step_key, in_axes=(0, None))(streams, first_step + t + 1)
        actor, moments, step, report = _act(env, policy, *carry, keys, t == config.num_steps - 1, config)
        return (actor, moments), (step, report)

    (actor, moments), (steps, reports) = lax.scan(body, (actor, moments), jnp.arange(config.num_steps))
    rollout = Rollout(*trajectory_major(steps), memory=first_memory)
    return actor, moments, Window(rollout, *reports)


def _act(
    env: FunctionalEnv,
    policy: ActorCritic,
    actor: Actor,
    moments: Moments,
    keys: StreamKeys,
    last: Bool[Array, ""],
    config: TrainConfig,
) -> tuple[Actor, Moments, _Step, _Report]:
    """One step of every environment."""
    memory, output = jax.vmap(policy.step)(actor.memory, actor.obs, actor.episode_start)
    action, log_prob = draw_actions(output.logits, keys)
    env_state, result, frame = jax.vmap(lambda *args: step_and_restart(env, *args))(keys, actor.env_state, action)
    moments, obs = _receive(moments, frame, config)
    over = result.terminated | result.truncated
    episode_return = actor.episode_return + result.reward
    step = _Step(
        obs=actor.obs,
        episode_start=actor.episode_start,
        action=action,
        log_prob=log_prob,
        value=output.value,
        reward=result.reward * config.ppo.reward_scale,
        terminated=result.terminated,
        truncated=result.truncated,
        bootstrap_value=_bootstrap_values(policy, memory, moments, result, last, config),
    )
    actor = Actor(env_state, obs, over, memory, jnp.where(over, 0.0, episode_return))
    finite = jnp.all(jnp.isfinite(result.obs)) & jnp.all(jnp.isfinite(frame.obs))
    return actor, moments, step, _Report(jnp.where(over, episode_return, jnp.nan), finite)


def _bootstrap_values(
    policy: ActorCritic,
    memory: Memory,
    moments: Moments,
    result: Transition,
    last: Bool[Array, ""],
    config: TrainConfig,
) -> Float[Array, " env"]:
    """V of the true successors under the memory that saw their episodes, only when some are read.

    An extra pass through the policy costs as much as acting; truncations are rare, so the pass is taken only on
    steps that have one, and on the window's last step.
    """

    def values() -> Float[Array, " env"]:
        obs = standardize_visible(moments, result.obs) if config.ppo.normalize_obs else result.obs
        _, output = jax.vmap(policy.step)(memory, obs, jnp.zeros_like(result.truncated))
        return output.value

    return lax.cond(last | jnp.any(result.truncated), values, lambda: jnp.zeros_like(result.reward))


def _receive(moments: Moments, frame: Frame, config: TrainConfig) -> tuple[Moments, Float[Array, "env *obs"]]:
    """What the policy consumes of arriving frames."""
    return observe_and_standardize(moments, frame.obs) if config.ppo.normalize_obs else (moments, frame.obs)
