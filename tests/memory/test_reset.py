"""The forgetful cell: the wrapped cell's parameters, and nothing remembered without any flag being raised."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.memory.gru import GRU
from thrust_rl.memory.lstm import LSTM
from thrust_rl.memory.reset import Forgetful

IN_DIM, TIME = 3, 6
NEVER = jnp.zeros(TIME, bool)
WRAPPED = {"lstm": LSTM(IN_DIM, 5, key=jax.random.key(0)), "gru": GRU(IN_DIM, 5, key=jax.random.key(0))}


@pytest.fixture(params=WRAPPED, name="cell")
def wrapped_cell(request):
    return jax.tree.map(
        lambda leaf: leaf + 0.1 * jax.random.normal(jax.random.key(2), leaf.shape), WRAPPED[request.param]
    )


@pytest.fixture(name="memory")
def nonzero_memory(cell):
    return jax.tree.map(jnp.ones_like, cell.initial())


@pytest.fixture(name="xs")
def inputs():
    return jax.random.normal(jax.random.key(1), (TIME, IN_DIM))


@jax.jit
def unroll(cell, memory, xs, starts=NEVER):
    return cell.unroll(memory, xs, starts)


def close(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6), a, b)


def test_parameters_are_the_wrapped_cells(cell):
    mine, its = jax.tree.leaves(Forgetful(cell)), jax.tree.leaves(cell)
    assert [id(leaf) for leaf in mine] == [id(leaf) for leaf in its]


def test_every_step_is_the_wrapped_cells_first(cell, memory, xs):
    at_every_step = unroll(cell, memory, xs, ~NEVER)
    close(unroll(Forgetful(cell), memory, xs), at_every_step)


def test_outputs_move_with_their_inputs(cell, memory, xs):
    order = jnp.array([3, 0, 5, 1, 4, 2])
    close(unroll(Forgetful(cell), memory, xs[order])[1], unroll(Forgetful(cell), memory, xs)[1][order])


def test_weights_that_only_memory_reaches_learn_nothing(cell, memory, xs):
    def loss(cell):
        return jnp.sum(jnp.sin(cell.unroll(memory, xs, NEVER)[1]))

    learnt = jax.jit(jax.grad(loss))(Forgetful(cell)).cell
    np.testing.assert_array_equal(learnt.w_hidden, 0.0)
    assert np.all(jnp.abs(learnt.w_input).sum(axis=1) > 0.0)


def test_unroll_scans_nothing(cell, memory, xs):
    def traced(cell):
        return str(jax.make_jaxpr(cell.unroll)(memory, xs, NEVER))

    assert "scan" in traced(cell)
    assert "scan" not in traced(Forgetful(cell))
