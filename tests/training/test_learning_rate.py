"""The annealed learning rate: the closed form, and packaged training's to the last bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_for_tests import MLP_ARM, QUICK, Short, environment, settings
from thrust_rl.config import ConfigError
from thrust_rl.training import learning_rate
from thrust_rl.training.learning_rate import annealed_learning_rate
from thrust_rl.training.loop import CHUNK_CAPACITY, initial_state, train_chunk

LONG = settings(updates=1_543, num_envs=2, num_steps=2, batch_size=4, n_epochs=1, learning_rate=1.5e-3)


def test_annealing_is_linear_down_to_five_percent():
    rates = [annealed_learning_rate(2.0, update=u, num_updates=40) for u in range(40)]
    np.testing.assert_allclose(rates[:39], [2.0 * (1 - u / 40) for u in range(39)], rtol=1e-6)
    np.testing.assert_allclose(rates[39], 2.0 * 0.05, rtol=1e-6)  # 1/40 is below the floor


def test_it_is_what_packaged_training_uses_at_every_update_bit_for_bit():
    env = environment(Short(3), max_steps=2)
    state = jax.jit(functools.partial(initial_state, env, MLP_ARM, LONG), compiler_options=QUICK)(jnp.uint32(0))
    chunk = jax.jit(functools.partial(train_chunk, env, MLP_ARM, LONG))
    used = []
    while len(used) < LONG.num_updates:
        length = min(CHUNK_CAPACITY, LONG.num_updates - len(used))
        state, records = chunk(state, jnp.int32(length))
        used.extend(np.asarray(records.stats.learning_rate[:length]))
    mine = [annealed_learning_rate(1.5e-3, update=u, num_updates=LONG.num_updates) for u in range(LONG.num_updates)]
    assert used[0] == np.float32(1.5e-3)
    np.testing.assert_array_equal(np.array(mine), np.array(used, np.float64))


def test_a_run_of_any_length_is_compiled_once():
    before = learning_rate._annealed._cache_size()
    for update in range(41):
        annealed_learning_rate(10.0**-update, update=update, num_updates=41)
    assert learning_rate._annealed._cache_size() == before + 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ((1e-3, 40, 40), ConfigError, "update is 40: 40 updates are counted from 0 to 39"),
        ((1e-3, -1, 40), ConfigError, "update is -1"),
        ((1e-3, 0, 0), ConfigError, "num_updates is 0: it must be at least 1"),
        ((1e-3, 0.5, 40), TypeError, "update is 0.5 .*expected an integer"),
        ((-1e-3, 0, 40), ConfigError, "initial is -0.001: it must be finite and at least 0"),
        ((float("nan"), 0, 40), ConfigError, "initial is nan"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_update_is_refused(call, error, message):
    initial, update, num_updates = call
    with pytest.raises(error, match=message):
        annealed_learning_rate(initial, update=update, num_updates=num_updates)
