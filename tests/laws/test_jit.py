"""Compiling changes nothing, and mapping over seeds changes nothing (law 7)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from envs_for_tests import LSTM_ARM, QUICK, Short, act, act_with, drawn_policy, environment, settings
from thrust_rl.training.ppo import experience_of, ppo_loss

ENV = environment(Short(3), max_steps=2)


def close(a, b, tolerance):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_acting_compiled_equals_acting_uncompiled():
    config = settings(num_envs=2, num_steps=3, window_start="stored")
    compiled = act(ENV, LSTM_ARM, config, windows=1)
    with jax.disable_jit():
        plain = act_with(ENV, LSTM_ARM, config, drawn_policy(LSTM_ARM, 2, 0), jax.random.key(0), windows=1, drift=0.0)
    close(compiled, plain, 1e-5)


def test_learning_compiled_equals_learning_uncompiled():
    """The loss and its gradient, through the hand-written backward pass of the LSTM."""
    config = settings(num_envs=2, num_steps=3, window_start="stored")
    acted = act(ENV, LSTM_ARM, config, windows=1)
    experience = experience_of(jax.tree.map(lambda leaf: leaf[0], acted.rollout), config.ppo, has_memory=True)
    moved = jax.tree.map(lambda leaf: 1.2 * leaf + 0.05, acted.policy)  # so that ratios are not 1
    learn = jax.value_and_grad(functools.partial(ppo_loss, config=config.ppo), has_aux=True)
    compiled = jax.jit(learn)(moved, experience)
    with jax.disable_jit():
        plain = learn(moved, experience)
    close(compiled, plain, 1e-5)


def test_seeds_mapped_equal_seeds_looped():
    """Acting for three windows; `train(vectorize_seeds=True)` is held to the same in tests/training."""
    config = settings(normalize_obs=False, window_start="stored")
    env = environment(Short(6), max_steps=4)
    policies = [drawn_policy(LSTM_ARM, 2, seed) for seed in (0, 1)]
    act_seed = functools.partial(act_with, env, LSTM_ARM, config, windows=3, drift=0.0)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    mapped = jax.jit(jax.vmap(act_seed), compiler_options=QUICK)(stacked, jax.vmap(jax.random.key)(jnp.arange(2)))
    for seed in (0, 1):
        mine = jax.tree.map(lambda leaf, seed=seed: leaf[seed], mapped)
        close(act(env, LSTM_ARM, config, seed=seed), mine, 1e-5)
    assert not np.array_equal(mapped.actor.obs[0], mapped.actor.obs[1])
