"""GRU: every gate and every step equal a NumPy fold of the published equations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.memory.gru import GRU, advance

IN_DIM, HIDDEN, TIME = 3, 5, 8
STARTS = np.arange(TIME) == 4


@pytest.fixture(name="cell")
def cell_with_biases():
    cell = GRU(IN_DIM, HIDDEN, key=jax.random.key(0))
    biases = (jax.random.normal(jax.random.key(1), (3 * HIDDEN,)), jax.random.normal(jax.random.key(2), (HIDDEN,)))
    return eqx.tree_at(lambda c: (c.bias, c.bias_hidden), cell, biases)


@pytest.fixture(name="start")
def initial_memory():
    return jax.random.normal(jax.random.key(3), (HIDDEN,))


@pytest.fixture(name="xs")
def inputs():
    return jax.random.normal(jax.random.key(4), (TIME, IN_DIM))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def textbook(cell, h, x):
    """Cho et al. 2014, eqs. 5-8, reset gate after the product and its bias: r, z, n, U_n h + c_n and the new h."""
    w_r, w_z, w_n = np.split(np.asarray(cell.w_input, np.float64), 3, axis=1)
    u_r, u_z, u_n = np.split(np.asarray(cell.w_hidden, np.float64), 3, axis=1)
    b_r, b_z, b_n = np.split(np.asarray(cell.bias, np.float64), 3)
    r = sigmoid(x @ w_r + b_r + h @ u_r)
    z = sigmoid(x @ w_z + b_z + h @ u_z)
    recalled = h @ u_n + np.asarray(cell.bias_hidden, np.float64)
    n = np.tanh(x @ w_n + b_n + r * recalled)
    return (r, z, n, recalled), (1.0 - z) * n + z * h


def test_every_gate_is_the_textbook_gate(cell, start, xs):
    h, x = np.asarray(start, np.float64), np.asarray(xs[0], np.float64)
    expected_gates, expected = textbook(cell, h, x)
    after, gates = advance(xs[0] @ cell.w_input + cell.bias, start @ cell.w_hidden, cell.bias_hidden, start)
    for gate, wanted in zip(gates, expected_gates, strict=True):
        np.testing.assert_allclose(gate, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after, expected, rtol=1e-5, atol=1e-6)


def test_unroll_is_a_fold_of_the_textbook_step(cell, start, xs):
    h, expected = np.asarray(start, np.float64), []
    for x, episode_start in zip(np.asarray(xs, np.float64), STARTS, strict=True):
        _, h = textbook(cell, np.zeros(HIDDEN) if episode_start else h, x)
        expected.append(h)
    final, outputs = jax.jit(GRU.unroll)(cell, start, xs, jnp.asarray(STARTS))
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(final, outputs[-1])


def test_drawn_weights_are_orthogonal_and_biases_zero():
    cell = GRU(IN_DIM, HIDDEN, key=jax.random.key(5))
    np.testing.assert_allclose(cell.w_hidden @ cell.w_hidden.T, np.eye(HIDDEN), atol=1e-5)
    np.testing.assert_allclose(cell.w_input @ cell.w_input.T, np.eye(IN_DIM), atol=1e-5)
    np.testing.assert_array_equal(cell.bias, np.zeros(3 * HIDDEN))
    np.testing.assert_array_equal(cell.bias_hidden, np.zeros(HIDDEN))
