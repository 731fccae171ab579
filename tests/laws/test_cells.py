"""Laws of memory cells: unroll is the fold of step, an episode start cuts everything, gradients are right."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from thrust_rl.memory.core import fold_steps
from thrust_rl.memory.gru import GRU
from thrust_rl.memory.lstm import LSTM
from thrust_rl.memory.none import NoMemory
from thrust_rl.memory.reset import Forgetful

IN_DIM, TIME = 3, 9
STARTS = jnp.array([False, False, True, False, False, True, True, False, False])
CELLS = {  # a new cell is one row
    "none": lambda key: NoMemory(),
    "lstm": lambda key: LSTM(IN_DIM, 5, key=key),
    "gru": lambda key: GRU(IN_DIM, 5, key=key),
    "lstm-reset": lambda key: Forgetful(LSTM(IN_DIM, 5, key=key)),
}
WITH_OWN_BACKWARD = ["lstm", "gru"]
UNROLLS = {
    "unroll": jax.jit(lambda cell, memory, xs, starts: cell.unroll(memory, xs, starts)),
    "fold": jax.jit(fold_steps),
}


def normal_like(tree, key):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, max(1, len(leaves)))
    drawn = [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=False)]
    return jax.tree.unflatten(structure, drawn)


def close(a, b, tolerance=2e-6):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance), a, b)


@pytest.fixture(params=CELLS, name="cell")
def any_cell(request):
    cell = CELLS[request.param](jax.random.key(1))
    return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(jax.random.key(2), leaf.shape), cell)


@pytest.fixture(name="memory")
def nonzero_memory(cell):
    return normal_like(cell.initial(), jax.random.key(3))


@pytest.fixture(name="xs")
def inputs():
    return jax.random.normal(jax.random.key(4), (TIME, IN_DIM))


@pytest.mark.parametrize("seed", range(4))
def test_unroll_is_the_fold_of_step(cell, memory, xs, seed):
    starts = jax.random.bernoulli(jax.random.key(seed), 0.3, (TIME,))
    close(*(unroll(cell, memory, xs, starts) for unroll in UNROLLS.values()))


def test_memory_keeps_shape_and_dtype(cell, xs):
    empty = jax.eval_shape(cell.initial)
    assert jax.eval_shape(cell.step, empty, xs[0], STARTS[0])[0] == empty
    assert jax.eval_shape(cell.unroll, empty, xs, STARTS)[0] == empty


@pytest.mark.parametrize("start", [0, 4, TIME - 1])
@pytest.mark.parametrize("unroll", UNROLLS.values(), ids=UNROLLS)
def test_nothing_before_an_episode_start_matters_after_it(cell, memory, xs, unroll, start):
    starts = jnp.arange(TIME) == start
    _, outputs = unroll(cell, memory, xs, starts)
    other_past = xs.at[:start].set(7.0)
    _, same = unroll(cell, jax.tree.map(jnp.negative, memory), other_past, starts)
    np.testing.assert_array_equal(outputs[start:], same[start:])
    _, alone = unroll(cell, cell.initial(), xs[start:], jnp.zeros(TIME - start, bool))
    close(outputs[start:], alone)


@pytest.mark.parametrize("unroll", UNROLLS.values(), ids=UNROLLS)
def test_no_gradient_flows_past_an_episode_start(cell, memory, xs, unroll):
    start = 4
    starts = jnp.arange(TIME) == start

    def later(memory, xs):
        final, outputs = unroll(cell, memory, xs, starts)
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in [outputs[start:], *jax.tree.leaves(final)])

    to_memory, to_xs = jax.jit(jax.grad(later, argnums=(0, 1)))(memory, xs)
    for leaf in [to_xs[:start], *jax.tree.leaves(to_memory)]:
        np.testing.assert_array_equal(leaf, 0.0)
    assert np.all(np.abs(to_xs[start:]).sum(axis=1) > 0.0)  # while the rest is learnt from


def test_one_long_flagged_sequence_equals_a_batch_of_short_ones(cell, memory):
    short = jax.random.normal(jax.random.key(5), (4, 3, IN_DIM))
    _, long = cell.unroll(memory, short.reshape(12, IN_DIM), jnp.arange(12) % 3 == 0)
    never = jnp.zeros(3, bool)
    _, batch = jax.vmap(lambda xs: cell.unroll(cell.initial(), xs, never))(short)
    close(long.reshape(batch.shape), batch)


@pytest.mark.parametrize("name", CELLS)
def test_gradient_equals_finite_differences(name):
    with jax.enable_x64(True):
        cell = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), CELLS[name](jax.random.key(1)))
        memory = normal_like(cell.initial(), jax.random.key(3))
        xs = jax.random.normal(jax.random.key(4), (TIME, IN_DIM), jnp.float64)
        unroll = jax.jit(lambda cell, memory, xs: cell.unroll(memory, xs, STARTS))
        check_grads(unroll, (cell, memory, xs), order=1, modes=["rev"], atol=1e-7, rtol=1e-7)


@jax.jit
def pulled_back(cell, memory, xs, starts, cotangents):
    """The same cotangents through the hand-written backward pass, and through autodiff of the definition."""
    by_hand = jax.vjp(lambda c, m, x: c.unroll(m, x, starts), cell, memory, xs)[1]
    by_autodiff = jax.vjp(lambda c, m, x: fold_steps(c, m, x, starts), cell, memory, xs)[1]
    return by_hand(cotangents), by_autodiff(cotangents)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", WITH_OWN_BACKWARD)
def test_hand_written_backward_equals_autodiff(name, seed):
    keys = jax.random.split(jax.random.key(seed), 5)
    with jax.enable_x64(True):
        cell = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) + 0.3, CELLS[name](keys[0]))
        memory = normal_like(cell.initial(), keys[1])
        xs = jax.random.normal(keys[2], (TIME, IN_DIM), jnp.float64)
        starts = jax.random.bernoulli(keys[3], 0.1 * seed, (TIME,))
        cotangents = normal_like(jax.eval_shape(cell.unroll, memory, xs, starts), keys[4])  # of m_T too
        by_hand, by_autodiff = pulled_back(cell, memory, xs, starts, cotangents)
        close(by_hand, by_autodiff, tolerance=1e-12)
        assert all(np.any(leaf != 0.0) for leaf in jax.tree.leaves((by_hand[0], by_hand[2])))


def seconds(function, *args):
    started = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - started


def test_learning_costs_the_same_however_many_episodes_start(cell):
    """Throughput must not depend on the data: no cutting or padding at episode starts, no branch on them."""
    windows = jax.random.normal(jax.random.key(8), (16, 128, IN_DIM))
    never = jnp.zeros((16, 128), bool)
    often = jax.random.bernoulli(jax.random.key(9), 0.3, never.shape)

    def loss(cell, windows, starts):
        unroll = jax.vmap(cell.unroll, in_axes=(None, 0, 0))
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(unroll(cell.initial(), windows, starts)))

    learn = jax.jit(jax.grad(loss, argnums=(0, 1)))
    learn(cell, windows, never)
    pairs = [(seconds(learn, cell, windows, never), seconds(learn, cell, windows, often)) for _ in range(25)]
    without, with_many = map(min, zip(*pairs, strict=True))
    assert with_many < 1.3 * without


def test_lstm_step_is_the_textbook_lstm(xs):
    cell = LSTM(IN_DIM, 5, key=jax.random.key(6))
    bias, before = normal_like((cell.bias, cell.initial()), jax.random.key(7))
    cell = eqx.tree_at(lambda c: c.bias, cell, bias)
    w_x, w_h, b, x = (np.asarray(a, np.float64) for a in (cell.w_input, cell.w_hidden, cell.bias, xs[0]))
    h, c = (np.asarray(a, np.float64) for a in before)

    def gate(number, squash):
        columns = slice(5 * number, 5 * (number + 1))
        return squash(x @ w_x[:, columns] + h @ w_h[:, columns] + b[columns])

    def sigmoid(z):
        return 1.0 / (1.0 + np.exp(-z))

    expected_c = gate(1, sigmoid) * c + gate(0, sigmoid) * gate(2, np.tanh)
    expected_h = gate(3, sigmoid) * np.tanh(expected_c)
    memory, output = cell.step(before, xs[0], jnp.array(False))
    np.testing.assert_allclose(memory.cell, expected_c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(memory.hidden, expected_h, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(output, memory.hidden)
