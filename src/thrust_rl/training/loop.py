"""Training as pure functions: a state, one update of it, and a chunk of updates in one compiled call."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Integer, PyTree

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.maths.finite import all_finite
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.policies.actor_critic import build_policy
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.collect import Actor, Window, collect, initial_actor
from thrust_rl.training.learning_rate import annealed
from thrust_rl.training.ppo import (
    Learner,
    UpdateStats,
    experience_of,
    make_optimizer,
    with_learning_rate,
)
from thrust_rl.training.ppo import update as ppo_update
from thrust_rl.types import Key

ACTION_MASKS = "action masks"  # among what is checked in an update
CHUNK_CAPACITY = 64  # updates one compiled call can run at most


class TrainState(NamedTuple):
    """Everything that training is, as one pytree."""

    learner: Learner
    actor: Actor
    moments: PyTree  # running `Moments` of what is standardized, in the shape of a frame
    key: Key
    update: Int[Array, ""]


class UpdateRecord(NamedTuple):
    """What one update leaves for the host."""

    episode_return: Float[Array, "time env"]  # raw, where an episode ended, else NaN
    stats: UpdateStats
    sound: dict[str, Bool[Array, ""]]  # by name of what was checked: it is finite, or of masks, leaves every choice one


def initial_state(env: FunctionalEnv, arm: ArmConfig, config: TrainConfig, seed: Integer[Array, ""]) -> TrainState:
    """The state before the first update; everything random in it comes from `seed`."""
    key = jax.random.key(seed)
    task = Task.of(env, arm)
    learner = initial_learner(task, config, key)
    actor, moments = initial_actor(env, task, learner.policy, environment_keys(key, config.num_envs), config)
    return TrainState(learner, actor, moments, key, jnp.zeros((), jnp.int32))


def initial_learner(task: Task, config: TrainConfig, key: Key) -> Learner:
    """The arm's first policy and optimizer state."""
    policy = build_policy(task.arm, task.inputs, task.actions, key=key)
    opt_state = make_optimizer(config.ppo).init(policy)
    return Learner(policy, with_learning_rate(opt_state, jnp.asarray(config.learning_rate(task.arm))))


def train_update(
    env: FunctionalEnv, arm: ArmConfig, config: TrainConfig, state: TrainState
) -> tuple[TrainState, UpdateRecord]:
    """Collect one window and learn from it."""
    actor, moments, window = collect(
        env,
        Task.of(env, arm),
        state.learner.policy,
        state.actor,
        state.moments,
        environment_keys(state.key, config.num_envs),
        first_step=state.update * config.num_steps,
        config=config,
    )
    learner, record = learn(arm, config, state.learner, window, key=state.key, update=state.update)
    return TrainState(learner, actor, moments, state.key, state.update + 1), record


def learn(
    arm: ArmConfig, config: TrainConfig, learner: Learner, window: Window, *, key: Key, update: Int[Array, ""]
) -> tuple[Learner, UpdateRecord]:
    """Learn from one window, whoever collected it."""
    rate = jnp.asarray(config.learning_rate(arm))
    if config.ppo.anneal_lr:
        rate = annealed(rate, update=update, num_updates=config.num_updates)
    experience = experience_of(window.rollout, config.ppo, has_memory=arm.has_memory)
    learner, stats = ppo_update(
        learner._replace(opt_state=with_learning_rate(learner.opt_state, rate)),
        experience,
        step_key(purpose_key(key, Purpose.SHUFFLE), update),
        optimizer=make_optimizer(config.ppo),
        config=config.ppo,
        rows_per_minibatch=config.rows_per_minibatch(arm),
    )
    finite = {
        "observations": (window.rollout.obs, jnp.where(window.finite_frames, 0.0, jnp.nan)),
        "rewards": window.rollout.reward,
        "values": window.rollout.value,
        "losses": stats.losses,
        "parameters": learner.policy,
    }
    sound = {name: all_finite(tree) for name, tree in finite.items()}
    allowed = learner.policy.allowed(window.rollout.obs)
    if allowed is not None:
        sound[ACTION_MASKS] = every_choice_left(allowed, learner.policy.actions.sizes)
    return learner, UpdateRecord(window.episode_return, stats, sound)


def every_choice_left(allowed: Bool[Array, "*axes alternative"], sizes: tuple[int, ...]) -> Bool[Array, ""]:
    """Whether action masks leave every choice an alternative.

    Args:
        allowed: the masks.
        sizes: how many alternatives the choices have.
    """
    choices = jnp.split(allowed, np.cumsum(sizes)[:-1].tolist(), axis=-1)
    return jnp.all(jnp.stack([jnp.all(jnp.any(choice, axis=-1)) for choice in choices]))


def train_chunk(
    env: FunctionalEnv, arm: ArmConfig, config: TrainConfig, state: TrainState, num_updates: Int[Array, ""]
) -> tuple[TrainState, UpdateRecord]:
    """Run `num_updates` updates, at most `CHUNK_CAPACITY`, without coming back to the host.

    The number is data: chunks of any length share one compilation, and how a run is cut into chunks changes nothing.

    Returns:
        The state, and records with leading axis `[CHUNK_CAPACITY]` of which the first `num_updates` are filled.
    """
    shapes = jax.eval_shape(lambda s: train_update(env, arm, config, s)[1], state)
    records = jax.tree.map(lambda leaf: jnp.zeros((CHUNK_CAPACITY, *leaf.shape), leaf.dtype), shapes)

    def body(i: Int[Array, ""], carry: tuple[TrainState, UpdateRecord]) -> tuple[TrainState, UpdateRecord]:
        state, records = carry
        state, record = train_update(env, arm, config, state)
        return state, jax.tree.map(lambda all_, one: all_.at[i].set(one), records, record)

    return lax.fori_loop(0, num_updates, body, (state, records))
