"""The one actor-critic: encoder → memory cell → actor and critic heads."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from thrust_rl.config import ArmConfig
from thrust_rl.maths.initializers import ACTOR_GAIN, CRITIC_GAIN, RELU_GAIN, orthogonal, uniform
from thrust_rl.maths.keys import Purpose, purpose_key
from thrust_rl.memory.core import MemoryCell
from thrust_rl.memory.lstm import LSTM
from thrust_rl.memory.none import NoMemory
from thrust_rl.types import Key, Memory, PolicyOutput


class Dense(eqx.Module):
    """x W + b on the last axis, zero b and W orthogonal or uniform."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __init__(self, in_dim: int, out_dim: int, *, gain: float, key: Key, is_orthogonal: bool = True) -> None:
        """Draw the weight."""
        draw = orthogonal if is_orthogonal else uniform
        self.weight = draw(key, in_dim, out_dim, gain=gain)
        self.bias = jnp.zeros(out_dim)

    def __call__(self, x: Float[Array, "*axes in"]) -> Float[Array, "*axes out"]:
        """Apply to any number of leading axes."""
        return x @ self.weight + self.bias


class Encoder(eqx.Module):
    """Layers of an arm's widths, each with its activation; none passes the observation through."""

    layers: tuple[Dense, ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)

    def __init__(self, in_dim: int, arm: ArmConfig, *, key: Key) -> None:
        """Draw every layer."""
        widths = (in_dim, *arm.encoder_sizes)
        keys = jax.random.split(key, max(1, len(arm.encoder_sizes)))
        self.layers = tuple(
            Dense(a, b, gain=RELU_GAIN, key=k, is_orthogonal=arm.orthogonal_init)
            for a, b, k in zip(widths[:-1], widths[1:], keys, strict=False)
        )
        self.activation = jax.nn.relu if arm.activation == "relu" else jnp.tanh

    def __call__(self, x: Float[Array, "*axes in"]) -> Float[Array, "*axes out"]:
        """Encode, on the last axis."""
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


class ActorCritic(eqx.Module):
    """A policy and a value that share encoder and memory. One environment; `vmap` for batches.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from thrust_rl.config import ARMS
        >>> policy = build_policy(ARMS["lstm"], obs_dim=4, num_actions=2, key=jax.random.key(0))
        >>> memory, out = policy.step(policy.initial(), jnp.zeros(4), jnp.array(True))
        >>> out.logits.shape
        (2,)
    """

    encoder: Encoder
    cell: MemoryCell
    actor: Dense
    critic: Dense

    def initial(self) -> Memory:
        """The empty memory m_0."""
        return self.cell.initial()

    def step(
        self, memory: Memory, obs: Float[Array, " obs"], episode_start: Bool[Array, ""]
    ) -> tuple[Memory, PolicyOutput]:
        """Consume o_t with m_t; give m_{t+1} and what the policy says at t."""
        memory, features = self.cell.step(memory, self.encoder(obs), episode_start)
        return memory, self._heads(features)

    def unroll(
        self, memory: Memory, obs: Float[Array, "time obs"], episode_starts: Bool[Array, " time"]
    ) -> tuple[Memory, PolicyOutput]:
        """Consume o_0 … o_{T-1} from m_0; give m_T and what the policy says at every step."""
        memory, features = self.cell.unroll(memory, self.encoder(obs), episode_starts)
        return memory, self._heads(features)

    def _heads(self, features: Float[Array, "*axes features"]) -> PolicyOutput:
        return PolicyOutput(self.actor(features), self.critic(features)[..., 0])


def build_policy(arm: ArmConfig, *, obs_dim: int, num_actions: int, key: Key) -> ActorCritic:
    """Draw an arm's initial policy. The same key gives the same parameters, bit for bit.

    Args:
        arm: what to build.
        obs_dim: length of the observation vector.
        num_actions: number of discrete actions.
        key: the run's root key; the numbers are drawn for the purpose `POLICY`.
    """
    encoder_key, cell_key, actor_key, critic_key = jax.random.split(purpose_key(key, Purpose.POLICY), 4)
    encoder = Encoder(obs_dim, arm, key=encoder_key)
    encoded = arm.encoder_sizes[-1] if arm.encoder_sizes else obs_dim
    cell = LSTM(encoded, arm.hidden_dim, key=cell_key) if arm.has_memory else NoMemory()
    features = arm.hidden_dim if arm.has_memory else encoded
    return ActorCritic(
        encoder=encoder,
        cell=cell,
        actor=Dense(features, num_actions, gain=ACTOR_GAIN, key=actor_key, is_orthogonal=arm.orthogonal_init),
        critic=Dense(features, 1, gain=CRITIC_GAIN, key=critic_key, is_orthogonal=arm.orthogonal_init),
    )


def empty_memory(policy: ActorCritic, num_envs: int) -> Memory:
    """m_0 for every environment, leaves `[env, ...]`."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_envs, *leaf.shape)), policy.initial())


def count_parameters(policy: ActorCritic) -> int:
    """Number of trainable scalars."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(policy, eqx.is_array)))
