"""What a memory cell is: `step` to act, `unroll` to learn, and one law between them."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from thrust_rl.types import Memory


class MemoryCell(eqx.Module):
    """A recurrent cell for one environment; `vmap` for batches.

    Laws (tests/laws/test_cells.py): `unroll` is the fold of `step`; after an `episode_start`
    nothing earlier has any influence, not even a gradient; memory keeps shapes and dtypes.
    """

    @abc.abstractmethod
    def initial(self) -> Memory:
        """The empty memory m_0."""

    @abc.abstractmethod
    def step(
        self, memory: Memory, x: Float[Array, " in"], episode_start: Bool[Array, ""]
    ) -> tuple[Memory, Float[Array, " out"]]:
        """Consume x_t with m_t (emptied first where `episode_start`); give m_{t+1} and the output."""

    @abc.abstractmethod
    def unroll(
        self, memory: Memory, xs: Float[Array, "time in"], episode_starts: Bool[Array, " time"]
    ) -> tuple[Memory, Float[Array, "time out"]]:
        """Consume x_0 … x_{T-1} from m_0; give m_T and every output."""


def forget_where(episode_start: Bool[Array, ""], memory: Memory) -> Memory:
    """The one place where memory is emptied."""
    return jax.tree.map(lambda leaf: jnp.where(episode_start, jnp.zeros_like(leaf), leaf), memory)


def fold_steps(
    cell: MemoryCell, memory: Memory, xs: Float[Array, "time in"], episode_starts: Bool[Array, " time"]
) -> tuple[Memory, Float[Array, "time out"]]:
    """`unroll` by definition: `step`, once per time step. What every faster `unroll` is tested against."""
    return lax.scan(lambda m, inputs: cell.step(m, *inputs), memory, (xs, episode_starts))
