"""The training state: chunks change nothing, seeds decide everything, schedules follow environment steps."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from envs_for_tests import MLP_ARM, QUICK, Short, environment, settings
from thrust_rl.training.loop import CHUNK_CAPACITY, all_finite, initial_state, train_chunk

ENV = environment(Short(3), max_steps=2)
# An early stop in nearly every update, so that schedules and counters have something to get wrong.
CONFIG = settings(updates=4, window_start="stored", target_kl=1e-4, learning_rate=0.1)


@pytest.fixture(scope="module", name="init")
def compiled_init():
    return jax.jit(functools.partial(initial_state, ENV, MLP_ARM, CONFIG), compiler_options=QUICK)


@pytest.fixture(scope="module", name="chunk")
def compiled_chunk():
    return jax.jit(functools.partial(train_chunk, ENV, MLP_ARM, CONFIG), compiler_options=QUICK)


def bits(tree):
    leaves = jax.tree.leaves(tree)
    return [
        np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)
        for leaf in leaves
    ]


def identical(a, b):
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in zip(bits(a), bits(b), strict=True))


def run(init, chunk, lengths, seed=0):
    """Train by chunks of the given lengths; the state, and the records one after the other."""
    state, records = init(jnp.uint32(seed)), []
    for length in lengths:
        state, record = chunk(state, jnp.int32(length))
        records += [jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), record) for i in range(length)]
    return state, records


@pytest.mark.parametrize("lengths", [(2, 2), (1, 1, 1, 1), (3, 1)])
def test_cutting_a_run_into_chunks_changes_no_bit(init, chunk, lengths):
    whole, cut = run(init, chunk, (4,)), run(init, chunk, lengths)
    assert int(whole[0].update) == 4
    assert identical(whole, cut)
    assert chunk._cache_size() == 1


def test_a_seed_is_a_run(init, chunk):
    first, again, other = (run(init, chunk, (2,), seed) for seed in (0, 0, 1))
    assert identical(first, again)
    policies = zip(*(jax.tree.leaves(s.learner.policy) for s, _ in (first, other)), strict=True)
    assert not any(np.array_equal(a, b) for a, b in policies)
    assert not np.array_equal(first[0].actor.obs, other[0].actor.obs)


def test_counters_count_what_was_done_and_the_schedule_follows_environment_steps(init, chunk):
    """F14: an early stop shortens an update, not the schedule."""
    state, records = run(init, chunk, (4,))
    taken = [int(record.stats.n_updates) for record in records]
    assert all(bool(record.stats.early_stopped) == (n < 2 * 4) for record, n in zip(records, taken, strict=True))
    assert min(taken) < 4
    assert int(optax.tree.get(state.learner.opt_state, "ScaleByAdamState").count) == sum(taken)
    rates = [float(record.stats.learning_rate) for record in records]
    np.testing.assert_allclose(rates, [0.1, 0.075, 0.05, 0.025], rtol=1e-6)


def test_unused_records_stay_empty(init, chunk):
    _, records = chunk(init(jnp.uint32(0)), jnp.int32(3))
    used = np.asarray(records.stats.learning_rate) != 0.0
    np.testing.assert_array_equal(used, np.arange(CHUNK_CAPACITY) < 3)
    assert all(flags[:3].all() and not flags[3:].any() for flags in records.sound.values())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_number_anywhere_is_not_finite(bad):
    good = {"a": jnp.zeros((2, 2)), "b": jnp.ones(3)}
    assert all_finite(good)
    assert not all_finite({**good, "b": good["b"].at[2].set(bad)})
