"""How likely recorded actions are under a policy, and what it says of the observations: what a loss is made of."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
from jaxtyping import Array, Bool, Float, PyTree, Shaped

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
    obs: PyTree,
    action: Shaped[Array, "row time *action"],
    episode_start: Bool[Array, "row time"],
    memory: Memory,
) -> Scores:
    """Replay every row from its m_0. The default `Evaluate` of a trainer.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from thrust_rl.config import ARMS
        >>> from thrust_rl.envs.actions import DiscreteActions
        >>> from thrust_rl.envs.spaces import vector_spec
        >>> from thrust_rl.policies.actor_critic import build_policy, empty_memory
        >>> policy = build_policy(ARMS["lstm"], vector_spec(4), DiscreteActions(2), key=jax.random.key(0))
        >>> steps = jnp.zeros((3, 5), int)
        >>> score(policy, jnp.ones((3, 5, 4)), steps, steps == 1, empty_memory(policy, 3)).value.shape
        (3, 5)
    """
    _, output = jax.vmap(policy.unroll)(memory, obs, episode_start)
    return Scores(output.distribution.log_prob(action), output.distribution.entropy(), output.value)
