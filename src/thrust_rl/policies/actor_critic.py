"""The one actor-critic: encoder → memory cell → actor and critic heads."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from thrust_rl.config import ArmConfig, require
from thrust_rl.envs.actions import UNMASKABLE, ActionSpec
from thrust_rl.envs.spaces import ObsSpec
from thrust_rl.maths.initializers import ACTOR_GAIN, CRITIC_GAIN
from thrust_rl.maths.keys import Purpose, purpose_key
from thrust_rl.memory.core import MemoryCell
from thrust_rl.memory.gru import GRU
from thrust_rl.memory.lstm import LSTM
from thrust_rl.memory.none import NoMemory
from thrust_rl.memory.reset import Forgetful
from thrust_rl.policies.encoder import Encoder
from thrust_rl.policies.layers import Dense
from thrust_rl.types import Key, Memory, PolicyOutput


class ActorCritic(eqx.Module):
    """A policy and a value that share encoder and memory. One environment; `vmap` for batches.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from thrust_rl.config import ARMS
        >>> from thrust_rl.envs.actions import DiscreteActions
        >>> from thrust_rl.envs.spaces import vector_spec
        >>> policy = build_policy(ARMS["lstm"], vector_spec(4), DiscreteActions(2), key=jax.random.key(0))
        >>> memory, out = policy.step(policy.initial(), jnp.zeros(4), jnp.array(True))
        >>> out.distribution.logits.shape
        (2,)
    """

    encoder: Encoder
    cell: MemoryCell
    actor: Dense
    critic: Dense
    log_std: Float[Array, " spread"] | None  # of continuous actions
    actions: ActionSpec = eqx.field(static=True)

    def initial(self) -> Memory:
        """The empty memory m_0."""
        return self.cell.initial()

    def step(self, memory: Memory, obs: PyTree, episode_start: Bool[Array, ""]) -> tuple[Memory, PolicyOutput]:
        """Consume o_t with m_t; give m_{t+1} and what the policy says at t."""
        memory, features = self.cell.step(memory, self.encoder(obs), episode_start)
        return memory, self._heads(features, obs)

    def unroll(self, memory: Memory, obs: PyTree, episode_starts: Bool[Array, " time"]) -> tuple[Memory, PolicyOutput]:
        """Consume o_0 … o_{T-1} (leaves `[time, ...]`) from m_0; give m_T and what the policy says at every step."""
        memory, features = self.cell.unroll(memory, self.encoder(obs), episode_starts)
        return memory, self._heads(features, obs)

    def allowed(self, obs: PyTree) -> Bool[Array, "*axes alternative"] | None:
        """The action mask in what is consumed, of the newest frame; None where there is none."""
        spec = self.encoder.spec
        if spec.mask is None:
            return None
        mask = spec.leaves(obs)[spec.mask]
        return mask if len(spec.parts[spec.mask].shape) == 1 else mask[..., -1, :]

    def _heads(self, features: Float[Array, "*axes features"], obs: PyTree) -> PolicyOutput:
        outputs, allowed = self.actor(features), self.allowed(obs)
        if allowed is not None:
            outputs = jnp.where(allowed, outputs, -jnp.inf)
        return PolicyOutput(self.actions.distribution(outputs, self.log_std), self.critic(features)[..., 0])


def build_policy(arm: ArmConfig, obs: ObsSpec, actions: ActionSpec, *, key: Key) -> ActorCritic:
    """Draw an arm's initial policy. The same key gives the same parameters, bit for bit.

    Args:
        arm: what to build.
        obs: what it consumes (`policies.inputs.Task.inputs`).
        actions: what it may do.
        key: the run's root key; the numbers are drawn for the purpose `POLICY`.

    Raises:
        ConfigError: the action mask does not fit the actions.
    """
    _require_mask_fits(obs, actions)
    encoder_key, cell_key, actor_key, critic_key = jax.random.split(purpose_key(key, Purpose.POLICY), 4)
    encoder = Encoder(obs, arm, key=encoder_key)
    cell, features = _cell(arm, encoder.out_dim, cell_key)
    return ActorCritic(
        encoder=encoder,
        cell=cell,
        actor=Dense(features, actions.num_outputs, gain=ACTOR_GAIN, key=actor_key, is_orthogonal=arm.orthogonal_init),
        critic=Dense(features, 1, gain=CRITIC_GAIN, key=critic_key, is_orthogonal=arm.orthogonal_init),
        log_std=jnp.zeros(actions.num_spreads) if actions.num_spreads else None,
        actions=actions,
    )


def _cell(arm: ArmConfig, in_dim: int, key: Key) -> tuple[MemoryCell, int]:
    """The arm's cell and the length of what it gives."""
    if not arm.has_memory:
        return NoMemory(), in_dim
    kinds = {"lstm": LSTM, "gru": GRU}
    cell = kinds[arm.cell](in_dim, arm.hidden_dim, key=key)
    return Forgetful(cell) if arm.reset_memory else cell, arm.hidden_dim


def _require_mask_fits(obs: ObsSpec, actions: ActionSpec) -> None:
    if obs.mask is None:
        return
    length, alternatives = obs.parts[obs.mask].shape[-1], actions.num_alternatives
    require(alternatives is not None, f"there is an action mask, but {actions} {UNMASKABLE}")
    require(length == alternatives, f"the action mask has {length} numbers for {alternatives} alternatives")


def empty_memory(policy: ActorCritic, num_envs: int) -> Memory:
    """m_0 for every environment, leaves `[env, ...]`."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_envs, *leaf.shape)), policy.initial())


def count_parameters(policy: ActorCritic) -> int:
    """Number of trainable scalars."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(policy, eqx.is_array)))
