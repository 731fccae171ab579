"""Action distributions behind one small interface: sample, log_prob, entropy, mode."""

import math
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from thrust_rl.types import Key

Action: TypeAlias = Float[Array, "..."] | Int[Array, "..."]


@runtime_checkable
class Distribution(Protocol):
    """What a policy says about its next action: a pytree whose leading axes are those of the observations."""

    def sample(self, key: Key) -> Action:
        """Draw one action: `draw(noise(key))`."""

    def noise(self, key: Key) -> PyTree:
        """The random numbers of one draw; they depend on the shape of the distribution alone."""

    def draw(self, noise: PyTree) -> Action:
        """The action that these random numbers choose."""

    def log_prob(self, action: Action) -> Float[Array, "*axes"]:
        """Log-probability, or log-density, of an action."""

    def entropy(self) -> Float[Array, "*axes"]:
        """Entropy in nats."""

    def mode(self) -> Action:
        """The likeliest action."""


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
        return self.draw(self.noise(key))

    def noise(self, key: Key) -> Float[Array, "*axes action"]:
        """Gumbel numbers: the largest of logit + noise is distributed as the choice is."""
        return jax.random.gumbel(key, self.logits.shape)

    def draw(self, noise: Float[Array, "*axes action"]) -> Int[Array, "*axes"]:
        """The alternative that comes out on top."""
        return jnp.argmax(self.logits + noise, axis=-1)

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


class MultiCategorical(NamedTuple):
    """Independent choices, each among alternatives of its own; an action is `[*axes, choice]`.

    Example:
        >>> import jax.numpy as jnp
        >>> both = MultiCategorical((Categorical(jnp.zeros(2)), Categorical(jnp.zeros(3))))
        >>> round(float(jnp.exp(both.entropy())), 3)  # one of 2 x 3
        6.0
    """

    choices: tuple[Categorical, ...]

    def sample(self, key: Key) -> Int[Array, "*axes choice"]:
        """Draw one action."""
        return self.draw(self.noise(key))

    def noise(self, key: Key) -> tuple[Float[Array, "..."], ...]:
        """Of every choice."""
        keys = jax.random.split(key, len(self.choices))
        return tuple(choice.noise(k) for choice, k in zip(self.choices, keys, strict=True))

    def draw(self, noise: tuple[Float[Array, "..."], ...]) -> Int[Array, "*axes choice"]:
        """Every choice."""
        return jnp.stack([choice.draw(n) for choice, n in zip(self.choices, noise, strict=True)], axis=-1)

    def log_prob(self, action: Int[Array, "*axes choice"]) -> Float[Array, "*axes"]:
        """Sum over the choices."""
        return sum(
            (choice.log_prob(action[..., i]) for i, choice in enumerate(self.choices)), jnp.zeros(action.shape[:-1])
        )

    def entropy(self) -> Float[Array, "*axes"]:
        """Sum over the choices, in nats."""
        return sum((choice.entropy() for choice in self.choices[1:]), self.choices[0].entropy())

    def mode(self) -> Int[Array, "*axes choice"]:
        """The likeliest of every choice."""
        return jnp.stack([choice.mode() for choice in self.choices], axis=-1)


class Bernoulli(NamedTuple):
    """Independent coins, given by the log-odds of 1; an action is `[*axes, coin]` of 0 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> Bernoulli(jnp.array([-3.0, 3.0])).mode().tolist()
        [0, 1]
    """

    log_odds: Float[Array, "*axes coin"]

    def sample(self, key: Key) -> Int[Array, "*axes coin"]:
        """Draw one action."""
        return self.draw(self.noise(key))

    def noise(self, key: Key) -> Float[Array, "*axes coin"]:
        """A number in [0, 1) for every coin."""
        return jax.random.uniform(key, self.log_odds.shape)

    def draw(self, noise: Float[Array, "*axes coin"]) -> Int[Array, "*axes coin"]:
        """Toss every coin."""
        return (noise < jax.nn.sigmoid(self.log_odds)).astype(jnp.int32)

    def log_prob(self, action: Int[Array, "*axes coin"]) -> Float[Array, "*axes"]:
        """Sum over the coins."""
        return jnp.sum(jax.nn.log_sigmoid(jnp.where(action == 1, self.log_odds, -self.log_odds)), axis=-1)

    def entropy(self) -> Float[Array, "*axes"]:
        """Sum over the coins, in nats."""
        p = jax.nn.sigmoid(self.log_odds)
        return -jnp.sum(p * jax.nn.log_sigmoid(self.log_odds) + (1 - p) * jax.nn.log_sigmoid(-self.log_odds), axis=-1)

    def mode(self) -> Int[Array, "*axes coin"]:
        """1 where it is the likelier side."""
        return (self.log_odds > 0.0).astype(jnp.int32)


class DiagonalGaussian(NamedTuple):
    """Independent normal numbers, unbounded; what an environment does with a number out of bounds is its affair.

    Example:
        >>> import jax.numpy as jnp
        >>> float(DiagonalGaussian(jnp.zeros(1), jnp.zeros(1)).log_prob(jnp.zeros(1)))  # −½ log 2π
        -0.9189385175704956
    """

    mean: Float[Array, "*axes number"]
    log_std: Float[Array, "*axes number"]

    def sample(self, key: Key) -> Float[Array, "*axes number"]:
        """Draw one action."""
        return self.draw(self.noise(key))

    def noise(self, key: Key) -> Float[Array, "*axes number"]:
        """Standard normal numbers."""
        return jax.random.normal(key, self.mean.shape)

    def draw(self, noise: Float[Array, "*axes number"]) -> Float[Array, "*axes number"]:
        """Every number."""
        return self.mean + jnp.exp(self.log_std) * noise

    def log_prob(self, action: Float[Array, "*axes number"]) -> Float[Array, "*axes"]:
        """Log-density, summed over the numbers."""
        standard = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * jnp.square(standard) - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> Float[Array, "*axes"]:
        """Differential entropy in nats, summed over the numbers."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e), axis=-1)

    def mode(self) -> Float[Array, "*axes number"]:
        """The mean."""
        return self.mean
