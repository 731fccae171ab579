"""The two reshapes of a rollout, named so that nobody writes a bare one."""

from typing import TypeVar

import jax

Tree = TypeVar("Tree")


def trajectory_major(tree: Tree) -> Tree:
    """Swap leaves from `[time, env, ...]`, as a scan stacks them, to `[env, time, ...]`."""
    return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), tree)


def as_single_steps(tree: Tree) -> Tree:
    """Cut leaves `[env, time, ...]` into `[env·time, 1, ...]`: every transition a trajectory of length one."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, 1, *leaf.shape[2:]), tree)
