"""LSTM cell (Hochreiter & Schmidhuber 1997; forget gate of Gers et al. 2000) with its own backward pass."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from thrust_rl.maths.initializers import orthogonal
from thrust_rl.memory.core import MemoryCell, forget_where
from thrust_rl.types import Key


class LSTMMemory(NamedTuple):
    """What the cell carries: the exposed and the protected half."""

    hidden: Float[Array, " hidden"]  # h, in (-1, 1)
    cell: Float[Array, " hidden"]  # c


class LSTM(MemoryCell):
    """h, c = LSTM(x, h, c); gates in the order input, forget, candidate, output.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> cell = LSTM(4, 64, key=jax.random.key(0))
        >>> memory, out = cell.step(cell.initial(), jnp.ones(4), jnp.array(True))
        >>> out.shape
        (64,)
    """

    w_input: Float[Array, "in gates"]
    w_hidden: Float[Array, "hidden gates"]
    bias: Float[Array, " gates"]

    def __init__(self, in_dim: int, hidden_dim: int, *, key: Key) -> None:
        """Orthogonal weights over all gates together and zero biases, as in CleanRL's recurrent PPO."""
        input_key, hidden_key = jax.random.split(key)
        self.w_input = orthogonal(input_key, in_dim, 4 * hidden_dim, gain=1.0)
        self.w_hidden = orthogonal(hidden_key, hidden_dim, 4 * hidden_dim, gain=1.0)
        self.bias = jnp.zeros(4 * hidden_dim)

    def initial(self) -> LSTMMemory:
        """Zeros."""
        zeros = jnp.zeros(self.w_hidden.shape[0], self.w_hidden.dtype)
        return LSTMMemory(zeros, zeros)

    def step(
        self, memory: LSTMMemory, x: Float[Array, " in"], episode_start: Bool[Array, ""]
    ) -> tuple[LSTMMemory, Float[Array, " hidden"]]:
        """One step; the output is the new hidden half."""
        kept = forget_where(episode_start, memory)
        drive = x @ self.w_input + self.bias + kept.hidden @ self.w_hidden
        memory, _ = advance(drive, kept.cell)
        return memory, memory.hidden

    def unroll(
        self, memory: LSTMMemory, xs: Float[Array, "time in"], episode_starts: Bool[Array, " time"]
    ) -> tuple[LSTMMemory, Float[Array, "time hidden"]]:
        """All steps: the input's share of the drive is one product for the whole sequence."""
        drives = xs @ self.w_input + self.bias
        hidden, cell = recurrence(self.w_hidden, drives, episode_starts, memory)
        return LSTMMemory(hidden[-1], cell[-1]), hidden


class Gates(NamedTuple):
    """Activations of one step."""

    input: Float[Array, "*time hidden"]
    forget: Float[Array, "*time hidden"]
    candidate: Float[Array, "*time hidden"]
    output: Float[Array, "*time hidden"]


def advance(drive: Float[Array, " gates"], cell: Float[Array, " hidden"]) -> tuple[LSTMMemory, Gates]:
    """The pointwise half of an LSTM step, from the summed input to the four gates."""
    i, f, g, o = jnp.split(drive, 4)
    gates = Gates(jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o))
    cell = gates.forget * cell + gates.input * gates.candidate
    return LSTMMemory(gates.output * jnp.tanh(cell), cell), gates


@jax.custom_vjp
def recurrence(
    w_hidden: Float[Array, "hidden gates"],
    drives: Float[Array, "time gates"],
    episode_starts: Bool[Array, " time"],
    memory: LSTMMemory,
) -> LSTMMemory:
    """Memory after each step, leaves [time, hidden], given the input's share of every drive.

    Its backward pass is written by hand. Autodiff would add a [hidden, gates] outer product to the weight's
    gradient at every step; here the scan carries only the errors of h and c, and the weight's gradient
    is one matrix product at the end (docs/decisions/0003). Equality with autodiff is a law.
    """
    return _forward(w_hidden, drives, episode_starts, memory)[0]


class _Residuals(NamedTuple):
    w_hidden: Float[Array, "hidden gates"]
    episode_starts: Bool[Array, " time"]
    before: LSTMMemory  # as consumed at each step, emptied where an episode starts
    after_cell: Float[Array, "time hidden"]
    gates: Gates


def _forward(
    w_hidden: Float[Array, "hidden gates"],
    drives: Float[Array, "time gates"],
    episode_starts: Bool[Array, " time"],
    memory: LSTMMemory,
) -> tuple[LSTMMemory, _Residuals]:
    def body(
        memory: LSTMMemory, inputs: tuple[Array, Array]
    ) -> tuple[LSTMMemory, tuple[LSTMMemory, LSTMMemory, Gates]]:
        drive, episode_start = inputs
        kept = forget_where(episode_start, memory)
        after, gates = advance(drive + kept.hidden @ w_hidden, kept.cell)
        return after, (kept, after, gates)

    _, (before, after, gates) = lax.scan(body, memory, (drives, episode_starts))
    return after, _Residuals(w_hidden, episode_starts, before, after.cell, gates)


class _Slopes(NamedTuple):
    """Everything in the backward step that needs no recursion, computed for all steps at once."""

    cell_from_hidden: Array
    input: Array
    forget: Array
    candidate: Array
    output: Array
    carry: Array  # ∂c_{t+1}/∂c_t, zero across an episode start
    keep: Array  # 0 where an episode starts


def _slopes(residuals: _Residuals) -> _Slopes:
    i, f, g, o = residuals.gates
    tanh_cell = jnp.tanh(residuals.after_cell)
    keep = (~residuals.episode_starts).astype(i.dtype)[:, None]
    return _Slopes(
        cell_from_hidden=o * (1.0 - jnp.square(tanh_cell)),
        input=g * i * (1.0 - i),
        forget=residuals.before.cell * f * (1.0 - f),
        candidate=i * (1.0 - jnp.square(g)),
        output=tanh_cell * o * (1.0 - o),
        carry=f * keep,
        keep=keep,
    )


def _backward(residuals: _Residuals, grads: LSTMMemory) -> tuple[Array, Array, None, LSTMMemory]:
    to_hidden = residuals.w_hidden.T

    def body(later: LSTMMemory, inputs: tuple[LSTMMemory, _Slopes]) -> tuple[LSTMMemory, Array]:
        here, slope = inputs
        d_hidden = later.hidden + here.hidden
        d_cell = later.cell + here.cell + d_hidden * slope.cell_from_hidden
        d_drive = jnp.concatenate(
            [d_cell * slope.input, d_cell * slope.forget, d_cell * slope.candidate, d_hidden * slope.output]
        )
        return LSTMMemory((d_drive @ to_hidden) * slope.keep, d_cell * slope.carry), d_drive

    zeros = jnp.zeros_like(residuals.after_cell[0])
    inputs = (grads, _slopes(residuals))
    d_memory, d_drives = lax.scan(body, LSTMMemory(zeros, zeros), inputs, reverse=True)
    return residuals.before.hidden.T @ d_drives, d_drives, None, d_memory


recurrence.defvjp(_forward, _backward)
