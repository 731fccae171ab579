"""How likely recorded actions are under a policy, and what it says of the observations: what a loss is made of."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
from jaxtyping import Array, Bool, Float, Int

from thrust_rl.maths.distributions import Categorical
from thrust_rl.policies.actor_critic import ActorCritic
from thrust_rl.types import Memory


class Scores(NamedTuple):
    """About every recorded step."""

    log_prob: Float[Array, "row time"]  # log π(a_t | o_≤t)
    entropy: Float[Array, "row time"]  # nats
    value: Float[Array, "row time"]  # V(o_≤t)


# (policy, obs, actions, episode_starts, initial memory) → (log_probs, entropy, values), axes [row, time, ...].
Evaluate: TypeAlias = Callable[[ActorCritic, Array, Array, Array, Memory], tuple[Array, Array, Array]]


def score(
    policy: ActorCritic,
    obs: Float[Array, "row time *obs"],
    action: Int[Array, "row time"],
    episode_start: Bool[Array, "row time"],
    memory: Memory,
) -> Scores:
    """Replay every row from its m_0. The default `Evaluate` of a trainer.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from thrust_rl.config import ARMS
        >>> from thrust_rl.policies.actor_critic import build_policy, empty_memory
        >>> policy = build_policy(ARMS["lstm"], obs_dim=4, num_actions=2, key=jax.random.key(0))
        >>> steps = jnp.zeros((3, 5), int)
        >>> score(policy, jnp.ones((3, 5, 4)), steps, steps == 1, empty_memory(policy, 3)).value.shape
        (3, 5)
    """
    _, output = jax.vmap(policy.unroll)(memory, obs, episode_start)
    distribution = Categorical(output.logits)
    return Scores(distribution.log_prob(action), distribution.entropy(), output.value)
