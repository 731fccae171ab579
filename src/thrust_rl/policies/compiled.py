"""What the facades call: building, looking, sampling and scoring for a batch of environments, compiled."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer

from thrust_rl.config import ArmConfig
from thrust_rl.envs.actions import DiscreteActions
from thrust_rl.envs.checks import checked_seed
from thrust_rl.envs.spaces import vector_spec
from thrust_rl.maths.distributions import Categorical
from thrust_rl.maths.sampling import acting_keys, action_noise, draw_actions
from thrust_rl.policies import scoring
from thrust_rl.policies.actor_critic import ActorCritic, build_policy, empty_memory
from thrust_rl.types import Memory, PolicyOutput


def built(arm: ArmConfig, obs_dim: int, action_dim: int, seed: int) -> ActorCritic:
    """What packaged training starts from with that seed."""
    key = jax.random.key(np.uint32(checked_seed(seed)))
    return build_policy(arm, vector_spec(obs_dim), DiscreteActions(action_dim), key=key)


@jax.jit
def look(
    module: ActorCritic, obs: Float[Array, "env obs"], memory: Memory, episode_start: Bool[Array, " env"]
) -> tuple[Memory, PolicyOutput]:
    """One step of every environment."""
    return jax.vmap(module.step)(memory, obs, episode_start)


@jax.jit
def draw(
    module: ActorCritic, obs: Float[Array, "env obs"], seed: Integer[Array, ""], step: Int[Array, ""]
) -> tuple[Int[Array, " env"], Float[Array, " env"], Float[Array, " env"]]:
    """Look and sample in one call, for a policy without memory."""
    _, output = look(module, obs, empty_memory(module, len(obs)), jnp.ones(len(obs), bool))
    return (*sample(output.distribution.logits, seed, step), output.value)


@jax.jit
def sample(
    logits: Float[Array, "env action"], seed: Integer[Array, ""], step: Int[Array, ""]
) -> tuple[Int[Array, " env"], Float[Array, " env"]]:
    """One action per environment, with its log-probability; `step` is t of o_t."""
    choice = Categorical(logits)
    action, log_prob = draw_actions(choice, action_noise(choice, acting_keys(seed, step, len(logits))))
    return action, log_prob


@jax.jit
def score(
    module: ActorCritic,
    obs: Float[Array, "row time obs"],
    actions: Int[Array, "row time"],
    episode_starts: Bool[Array, "row time"],
    memory: Memory,
) -> scoring.Scores:
    """`scoring.score`."""
    return scoring.score(module, obs, actions, episode_starts, memory)
