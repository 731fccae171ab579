"""Proximal policy optimization: one update from one rollout, for agents with and without memory alike."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from thrust_rl.config import PPOConfig
from thrust_rl.maths.losses import (
    approximate_kl,
    clipped_fraction,
    clipped_surrogate,
    clipped_value_loss,
    mean_of,
    standardized,
)
from thrust_rl.maths.returns import Advantages, explained_variance
from thrust_rl.policies.actor_critic import ActorCritic
from thrust_rl.policies.scoring import Evaluate, score
from thrust_rl.rollout.advantages import rollout_advantages
from thrust_rl.rollout.axes import as_single_steps
from thrust_rl.training.learning_rate import learning_rate_of
from thrust_rl.types import Key, Memory, Rollout

KL_TOLERANCE = 1.5  # early stop beyond this multiple of target_kl, as in Stable-Baselines3


class Experience(NamedTuple):
    """What PPO learns from: rows are whole windows (memory) or single transitions (no memory)."""

    obs: PyTree  # leaves `[row, time, ...]`
    episode_start: Bool[Array, "row time"]
    action: Shaped[Array, "row time *action"]
    log_prob: Float[Array, "row time"]
    value: Float[Array, "row time"]
    advantage: Float[Array, "row time"]
    value_target: Float[Array, "row time"]
    memory: Memory  # m_0 of each row
    valid: Bool[Array, "row time"] | tuple[()] = ()  # see `Rollout`


class LossTerms(NamedTuple):
    """Statistics of one minibatch, or their mean over the minibatches of an update."""

    policy_loss: Float[Array, ""]
    value_loss: Float[Array, ""]
    entropy: Float[Array, ""]  # nats
    approx_kl: Float[Array, ""]
    clip_fraction: Float[Array, ""]
    grad_norm: Float[Array, ""]  # global, before clipping


class UpdateStats(NamedTuple):
    """Statistics of one update."""

    losses: LossTerms
    explained_variance: Float[Array, ""]  # of the acting policy's values
    learning_rate: Float[Array, ""]  # NaN for an optimizer that does not say
    n_updates: Int[Array, ""]  # optimizer steps taken
    early_stopped: Bool[Array, ""]


class Learner(NamedTuple):
    """What an update changes."""

    policy: ActorCritic
    opt_state: optax.OptState


def make_optimizer(config: PPOConfig) -> optax.GradientTransformation:
    """Adam behind a bound on the global gradient norm; its learning rate is set by `with_learning_rate`."""

    def build(learning_rate: optax.ScalarOrSchedule) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(learning_rate, eps=1e-5))

    return optax.inject_hyperparams(build)(learning_rate=0.0)


def with_learning_rate(opt_state: optax.OptState, learning_rate: Float[Array, ""]) -> optax.OptState:
    """The optimizer state with another learning rate: data, so nothing is compiled again."""
    hyperparams = {**opt_state.hyperparams, "learning_rate": jnp.asarray(learning_rate, jnp.float32)}
    return opt_state._replace(hyperparams=hyperparams)


def experience_of(rollout: Rollout, config: PPOConfig, *, has_memory: bool) -> Experience:
    """Compute and attach advantages, then cut the rollout into rows."""
    advantages = rollout_advantages(rollout, gamma=config.gamma, gae_lambda=config.gae_lambda)
    return as_experience(rollout, advantages, has_memory=has_memory)


def as_experience(rollout: Rollout, advantages: Advantages, *, has_memory: bool) -> Experience:
    """Attach advantages, then cut the rollout into the rows that minibatches are made of."""
    experience = Experience(
        obs=rollout.obs,
        episode_start=rollout.episode_start,
        action=rollout.action,
        log_prob=rollout.log_prob,
        value=rollout.value,
        advantage=advantages.advantage,
        value_target=advantages.value_target,
        memory=rollout.memory,
        valid=rollout.valid,
    )
    return experience if has_memory else as_single_steps(experience)


def ppo_loss(
    policy: ActorCritic, batch: Experience, config: PPOConfig, evaluate: Evaluate = score
) -> tuple[Float[Array, ""], LossTerms]:
    """−surrogate + vf_coef · value loss − ent_coef · entropy (Schulman et al. 2017, eq. 9), replayed from m_0."""
    log_prob, entropy, value = evaluate(policy, batch.obs, batch.action, batch.episode_start, batch.memory)
    mean = functools.partial(mean_of, valid=batch.valid)
    advantage = standardized(batch.advantage, batch.valid) if config.normalize_advantage else batch.advantage
    surrogate = clipped_surrogate(log_prob, batch.log_prob, advantage, clip_range=config.clip_range)
    value_error = clipped_value_loss(value, batch.value, batch.value_target, clip_range_vf=config.clip_range_vf)
    terms = LossTerms(
        policy_loss=-mean(surrogate),
        value_loss=mean(value_error),
        entropy=mean(entropy),
        approx_kl=mean(approximate_kl(log_prob, batch.log_prob)),
        clip_fraction=mean(clipped_fraction(log_prob, batch.log_prob, clip_range=config.clip_range)),
        grad_norm=jnp.zeros(()),
    )
    loss = terms.policy_loss + config.vf_coef * terms.value_loss - config.ent_coef * terms.entropy
    return loss, terms


def minibatch_indices(
    key: Key, *, num_rows: int, rows_per_minibatch: int, n_epochs: int
) -> Int[Array, "minibatch row"]:
    """A fresh permutation of the rows for every epoch, cut into minibatches."""
    orders = jax.vmap(lambda k: jax.random.permutation(k, num_rows))(jax.random.split(key, n_epochs))
    return orders.reshape(-1, rows_per_minibatch)


def update(
    learner: Learner,
    experience: Experience,
    key: Key,
    *,
    optimizer: optax.GradientTransformation,
    config: PPOConfig,
    rows_per_minibatch: int,
    evaluate: Evaluate = score,
) -> tuple[Learner, UpdateStats]:
    """All epochs of minibatch steps on one window's experience.

    With `target_kl`, the first minibatch whose approximate KL exceeds 1.5 times it takes no step, and neither does
    any after it in this update. Statistics are means over the minibatches that were looked at.
    """
    num_rows = experience.action.shape[0]
    indices = minibatch_indices(key, num_rows=num_rows, rows_per_minibatch=rows_per_minibatch, n_epochs=config.n_epochs)

    def body(
        carry: tuple[Learner, Bool[Array, ""]], rows: Int[Array, " row"]
    ) -> tuple[tuple[Learner, Bool[Array, ""]], tuple[LossTerms, Bool[Array, ""], Bool[Array, ""]]]:
        learner, stopped = carry
        batch = jax.tree.map(lambda leaf: leaf[rows], experience)
        looked_at = ~stopped
        learner, stopped, terms = _minibatch_step(learner, stopped, batch, optimizer, config, evaluate)
        return (learner, stopped), (terms, looked_at, ~stopped)

    (learner, stopped), (terms, looked_at, stepped) = lax.scan(body, (learner, jnp.zeros((), bool)), indices)
    share = looked_at / jnp.sum(looked_at)
    stats = UpdateStats(
        losses=jax.tree.map(lambda term: jnp.sum(jnp.where(looked_at, term, 0.0) * share), terms),
        explained_variance=explained_variance(experience.value, experience.value_target, experience.valid),
        learning_rate=learning_rate_of(learner.opt_state),
        n_updates=jnp.sum(stepped),
        early_stopped=stopped,
    )
    return learner, stats


def _minibatch_step(
    learner: Learner,
    stopped: Bool[Array, ""],
    batch: Experience,
    optimizer: optax.GradientTransformation,
    config: PPOConfig,
    evaluate: Evaluate,
) -> tuple[Learner, Bool[Array, ""], LossTerms]:
    """One gradient step, unless the KL bound says stop."""

    def look() -> tuple[Learner, Bool[Array, ""], LossTerms]:
        (_, terms), grads = jax.value_and_grad(ppo_loss, has_aux=True)(learner.policy, batch, config, evaluate)
        terms = terms._replace(grad_norm=optax.tree.norm(grads))
        if config.target_kl is None:
            return _descend(learner, grads, optimizer), stopped, terms
        too_far = terms.approx_kl > KL_TOLERANCE * config.target_kl
        moved = lax.cond(too_far, lambda: learner, lambda: _descend(learner, grads, optimizer))
        return moved, too_far, terms

    if config.target_kl is None:
        return look()
    nothing = LossTerms(*[jnp.zeros(())] * len(LossTerms._fields))
    return lax.cond(stopped, lambda: (learner, stopped, nothing), look)


def _descend(learner: Learner, grads: ActorCritic, optimizer: optax.GradientTransformation) -> Learner:
    steps, opt_state = optimizer.update(grads, learner.opt_state, learner.policy)
    return Learner(optax.apply_updates(learner.policy, steps), opt_state)
