"""Action distributions behind one small interface: sample, log_prob, entropy, mode."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from thrust_rl.types import Key


class Categorical(NamedTuple):
    """A choice among `action` alternatives, given by unnormalized log-probabilities; −inf rules one out.

    Example:
        >>> import jax.numpy as jnp
        >>> float(Categorical(jnp.zeros(4)).entropy())  # log 4
        1.3862943649291992
    """

    logits: Float[Array, "*axes action"]

    def sample(self, key: Key) -> Int[Array, "*axes"]:
        """Draw one action."""
        return jax.random.categorical(key, self.logits)

    def log_prob(self, action: Int[Array, "*axes"]) -> Float[Array, "*axes"]:
        """Log-probability of `action`, which must be one of the alternatives."""
        chosen = jax.nn.one_hot(action, self.logits.shape[-1], dtype=bool)
        return jnp.sum(jnp.where(chosen, jax.nn.log_softmax(self.logits), 0.0), axis=-1)

    def entropy(self) -> Float[Array, "*axes"]:
        """Entropy in nats."""
        log_probs = jax.nn.log_softmax(self.logits)
        possible = jnp.where(jnp.isneginf(log_probs), 0.0, log_probs)  # 0 log 0 is 0
        return -jnp.sum(jnp.exp(log_probs) * possible, axis=-1)

    def mode(self) -> Int[Array, "*axes"]:
        """The likeliest action; the first of equals."""
        return jnp.argmax(self.logits, axis=-1)
