"""GRU cell (Cho et al. 2014), in the variant that takes one recurrent product per step, with its own backward pass."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from thrust_rl.maths.initializers import orthogonal
from thrust_rl.memory.core import MemoryCell, forget_where
from thrust_rl.types import Key


class GRU(MemoryCell):
    """h = GRU(x, h); gates in the order reset, update, candidate. The memory is h, the output the new h.

    Cho et al. 2014, eqs. 5-8, with biases, and with the reset gate on the recurrent product and its bias instead of
    on h before it. That is the variant of cuDNN, PyTorch and Flax: a step needs one product and not two.

        r = σ(W_r x + b_r + U_r h)
        z = σ(W_z x + b_z + U_z h)
        n = tanh(W_n x + b_n + r ∘ (U_n h + c_n))
        h ← (1 − z) ∘ n + z ∘ h

    Example:
        >>> import jax, jax.numpy as jnp
        >>> cell = GRU(4, 64, key=jax.random.key(0))
        >>> memory, out = cell.step(cell.initial(), jnp.ones(4), jnp.array(True))
        >>> out.shape
        (64,)
    """

    w_input: Float[Array, "in gates"]  # W
    w_hidden: Float[Array, "hidden gates"]  # U
    bias: Float[Array, " gates"]  # b
    bias_hidden: Float[Array, " hidden"]  # c_n; beside U_r and U_z it would only repeat b

    def __init__(self, in_dim: int, hidden_dim: int, *, key: Key) -> None:
        """Orthogonal weights over all gates together and zero biases, as for our LSTM."""
        input_key, hidden_key = jax.random.split(key)
        self.w_input = orthogonal(input_key, in_dim, 3 * hidden_dim, gain=1.0)
        self.w_hidden = orthogonal(hidden_key, hidden_dim, 3 * hidden_dim, gain=1.0)
        self.bias = jnp.zeros(3 * hidden_dim)
        self.bias_hidden = jnp.zeros(hidden_dim)

    def initial(self) -> Float[Array, " hidden"]:
        """Zeros."""
        return jnp.zeros_like(self.bias_hidden)

    def step(
        self, memory: Float[Array, " hidden"], x: Float[Array, " in"], episode_start: Bool[Array, ""]
    ) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
        """One step; the output is the new memory."""
        kept = forget_where(episode_start, memory)
        hidden, _ = advance(x @ self.w_input + self.bias, kept @ self.w_hidden, self.bias_hidden, kept)
        return hidden, hidden

    def unroll(
        self, memory: Float[Array, " hidden"], xs: Float[Array, "time in"], episode_starts: Bool[Array, " time"]
    ) -> tuple[Float[Array, " hidden"], Float[Array, "time hidden"]]:
        """All steps: the input's share of the drive is one product for the whole sequence."""
        drives = xs @ self.w_input + self.bias
        hidden = recurrence(self.w_hidden, self.bias_hidden, drives, episode_starts, memory)
        return hidden[-1], hidden


class Gates(NamedTuple):
    """Activations of one step."""

    reset: Float[Array, "*time hidden"]
    update: Float[Array, "*time hidden"]
    candidate: Float[Array, "*time hidden"]
    recalled: Float[Array, "*time hidden"]  # U_n h + c_n: what the reset gate lets through or not


def advance(
    drive: Float[Array, " gates"],
    recurrent: Float[Array, " gates"],
    bias_hidden: Float[Array, " hidden"],
    hidden: Float[Array, " hidden"],
) -> tuple[Float[Array, " hidden"], Gates]:
    """The pointwise half of a step, from the input's and the memory's share of the drive to the new memory."""
    r, z, n = jnp.split(drive, 3)
    r_hidden, z_hidden, n_hidden = jnp.split(recurrent, 3)
    reset, update, recalled = jax.nn.sigmoid(r + r_hidden), jax.nn.sigmoid(z + z_hidden), n_hidden + bias_hidden
    candidate = jnp.tanh(n + reset * recalled)
    return candidate + update * (hidden - candidate), Gates(reset, update, candidate, recalled)


@jax.custom_vjp
def recurrence(
    w_hidden: Float[Array, "hidden gates"],
    bias_hidden: Float[Array, " hidden"],
    drives: Float[Array, "time gates"],
    episode_starts: Bool[Array, " time"],
    hidden: Float[Array, " hidden"],
) -> Float[Array, "time hidden"]:
    """Memory after each step, given the input's share of every drive.

    Its backward pass is written by hand, for the reason that the LSTM's is (docs/decisions/0003): the scan carries only
    the error of h, and the weight's gradient is one matrix product at the end. Equality with autodiff is a law.
    """
    return _forward(w_hidden, bias_hidden, drives, episode_starts, hidden)[0]


class _Residuals(NamedTuple):
    w_hidden: Float[Array, "hidden gates"]
    episode_starts: Bool[Array, " time"]
    before: Float[Array, "time hidden"]  # as consumed at each step, emptied where an episode starts
    gates: Gates


def _forward(
    w_hidden: Float[Array, "hidden gates"],
    bias_hidden: Float[Array, " hidden"],
    drives: Float[Array, "time gates"],
    episode_starts: Bool[Array, " time"],
    hidden: Float[Array, " hidden"],
) -> tuple[Float[Array, "time hidden"], _Residuals]:
    def body(hidden: Array, inputs: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        drive, episode_start = inputs
        kept = forget_where(episode_start, hidden)
        after, gates = advance(drive, kept @ w_hidden, bias_hidden, kept)
        return after, (after, jnp.concatenate(gates))  # one array is stored faster than four

    _, (after, gates) = lax.scan(body, hidden, (drives, episode_starts))
    before = jax.vmap(forget_where)(episode_starts, jnp.concatenate([hidden[None], after[:-1]]))
    return after, _Residuals(w_hidden, episode_starts, before, Gates(*jnp.split(gates, 4, axis=-1)))


class _Slopes(NamedTuple):
    """∂/∂h_{t+1} of everything that needs no recursion, computed for all steps at once."""

    drive: Float[Array, "time gates"]
    recurrent: Float[Array, "time gates"]  # differs in the candidate: what memory adds there has passed the reset gate


def _slopes(residuals: _Residuals) -> _Slopes:
    r, z, n, recalled = residuals.gates
    candidate = (1.0 - z) * (1.0 - jnp.square(n))
    reset = candidate * recalled * r * (1.0 - r)
    update = (residuals.before - n) * z * (1.0 - z)
    return _Slopes(
        drive=jnp.concatenate([reset, update, candidate], axis=-1),
        recurrent=jnp.concatenate([reset, update, candidate * r], axis=-1),
    )


def _per_gate(d_hidden: Float[Array, "*time hidden"]) -> Float[Array, "*time gates"]:
    """The same error for each of the three gates."""
    return jnp.concatenate([d_hidden] * 3, axis=-1)


def _backward(residuals: _Residuals, grads: Float[Array, "time hidden"]) -> tuple[Array, Array, Array, None, Array]:
    to_hidden = residuals.w_hidden.T
    slopes = _slopes(residuals)
    keep = (~residuals.episode_starts).astype(grads.dtype)[:, None]

    def body(later: Array, inputs: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        here, slope, carry = inputs
        d_hidden = later + here
        return (_per_gate(d_hidden) * slope) @ to_hidden + d_hidden * carry, d_hidden

    # An episode start cuts both ways back to the memory before it: through the gates and past them.
    inputs = (grads, slopes.recurrent * keep, residuals.gates.update * keep)
    d_memory, d_hidden = lax.scan(body, jnp.zeros_like(grads[0]), inputs, reverse=True)
    d_recurrent = _per_gate(d_hidden) * slopes.recurrent
    d_bias_hidden = jnp.sum(d_recurrent[:, -grads.shape[-1] :], axis=0)
    return residuals.before.T @ d_recurrent, d_bias_hidden, _per_gate(d_hidden) * slopes.drive, None, d_memory


recurrence.defvjp(_forward, _backward)
