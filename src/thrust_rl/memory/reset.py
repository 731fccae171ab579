"""A cell that forgets at every step: the same parameters as the cell it wraps, and no memory."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from thrust_rl.memory.core import MemoryCell
from thrust_rl.types import Memory


class Forgetful(MemoryCell):
    """A cell that is told at every step that an episode starts.

    The control between an arm with memory and one without: the architecture, the number of parameters and their
    initial values are the wrapped cell's, and what it says at t depends on x_t alone. Weights that only memory
    reaches get a gradient of exactly zero.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from thrust_rl.memory.lstm import LSTM
        >>> cell = Forgetful(LSTM(4, 64, key=jax.random.key(0)))
        >>> _, out = cell.unroll(cell.initial(), jnp.ones((3, 4)), jnp.array([True, False, False]))
        >>> bool(jnp.all(out[0] == out[2]))
        True
    """

    cell: MemoryCell

    def initial(self) -> Memory:
        """The wrapped cell's; never read."""
        return self.cell.initial()

    def step(
        self, memory: Memory, x: Float[Array, " in"], episode_start: Bool[Array, ""]
    ) -> tuple[Memory, Float[Array, " out"]]:
        """One step from empty memory, whatever `memory` and `episode_start`."""
        return self.cell.step(memory, x, jnp.ones_like(episode_start))

    def unroll(
        self, memory: Memory, xs: Float[Array, "time in"], episode_starts: Bool[Array, " time"]
    ) -> tuple[Memory, Float[Array, "time out"]]:
        """All steps at once: none waits for the one before, so nothing is scanned."""
        memories, outputs = jax.vmap(self.step, in_axes=(None, 0, 0))(memory, xs, episode_starts)
        return jax.tree.map(lambda leaf: leaf[-1], memories), outputs
