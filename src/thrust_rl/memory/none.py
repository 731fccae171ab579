"""The empty memory: what makes the memoryless arm the same agent minus the cell."""

from jaxtyping import Array, Bool, Float

from thrust_rl.memory.core import MemoryCell


class NoMemory(MemoryCell):
    """Passes its input through and remembers nothing.

    Example:
        >>> import jax.numpy as jnp
        >>> NoMemory().step((), jnp.ones(2), jnp.array(False))[0]
        ()
    """

    def initial(self) -> tuple[()]:
        """Nothing."""
        return ()

    def step(
        self, memory: tuple[()], x: Float[Array, " in"], episode_start: Bool[Array, ""]
    ) -> tuple[tuple[()], Float[Array, " in"]]:
        """Give x back."""
        return memory, x

    def unroll(
        self, memory: tuple[()], xs: Float[Array, "time in"], episode_starts: Bool[Array, " time"]
    ) -> tuple[tuple[()], Float[Array, "time in"]]:
        """Give every x back."""
        return memory, xs
