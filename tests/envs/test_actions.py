"""Action spaces: every action that is drawn lies in its space, and its log-probability is exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Text
from scipy import stats

from thrust_rl.config import ConfigError
from thrust_rl.envs.actions import ContinuousActions, action_spec

SPACES = {
    "discrete": Discrete(3, start=-1),
    "multi-discrete": MultiDiscrete([2, 4]),
    "multi-discrete, two axes": MultiDiscrete([[2, 3], [4, 2]], start=[[0, 5], [1, -2]]),
    "multi-binary": MultiBinary([2, 3]),
    "integers": Box(np.array([-2, 7]), np.array([3, 7]), dtype=np.int64),
    "bytes, two axes": Box(250, 255, (1, 2), np.uint8),
    "box": Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32)),
    "box, two axes": Box(-1.0, 1.0, (2, 2)),  # F15
    "box of one": Box(-1.0, 1.0, (1,)),
    "box, half bounded": Box(np.array([0.0, -np.inf], np.float32), np.array([np.inf, np.inf], np.float32)),
}


def drawn(space, count=64, seed=0):
    spec = action_spec(space)
    rng = np.random.default_rng(seed)
    outputs = jnp.asarray(rng.normal(size=(count, spec.num_outputs)), jnp.float32)
    log_std = jnp.full(spec.num_spreads, 0.3) if spec.num_spreads else None
    distribution = spec.distribution(outputs, log_std)
    actions = jax.vmap(lambda row, key: row.sample(key))(distribution, jax.random.split(jax.random.key(seed), count))
    return spec, distribution, actions


@pytest.mark.parametrize("name", SPACES)
def test_drawn_actions_lie_in_their_space(name):
    space = SPACES[name]
    spec, distribution, actions = drawn(space)
    assert actions.dtype == spec.none.dtype and actions.shape[1:] == spec.none.shape
    for chosen in (actions, distribution.mode()):
        given = spec.to_env(np.asarray(chosen))
        assert given.shape == (64, *space.shape)
        assert all(space.contains(action) for action in given)
        np.testing.assert_allclose(spec.to_env(chosen), given, rtol=1e-5, err_msg="JAX and NumPy arrays fare alike")
    assert len({action.tobytes() for action in np.asarray(actions)}) > 1


@pytest.mark.parametrize("name", SPACES)
def test_an_encoded_action_has_the_width_it_says_and_tells_actions_apart(name):
    spec, _, actions = drawn(SPACES[name])
    encoded = np.asarray(spec.encode(actions))
    assert encoded.shape == (64, spec.width)
    given = spec.to_env(np.asarray(actions)).reshape(64, -1)
    same_given = (given[:, None] == given).all(axis=-1)
    np.testing.assert_array_equal((encoded[:, None] == encoded).all(axis=-1), same_given)


def test_a_gaussian_is_that_of_scipy():
    _, distribution, actions = drawn(SPACES["box"])
    std = np.exp(0.3)
    reference = stats.norm(np.asarray(distribution.mean), std)
    np.testing.assert_allclose(distribution.log_prob(actions), reference.logpdf(actions).sum(axis=-1), rtol=1e-5)
    np.testing.assert_allclose(distribution.entropy(), reference.entropy().sum(axis=-1), rtol=1e-5)


@pytest.mark.parametrize("name", ["multi-discrete", "multi-binary"])
def test_probabilities_of_all_actions_sum_to_one_and_give_the_entropy(name):
    spec, distribution, _ = drawn(SPACES[name], count=3)
    sizes = spec.sizes if name == "multi-discrete" else (2,) * spec.num_outputs
    every = jnp.asarray(np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes)))
    for row in range(3):
        mine = jax.tree.map(lambda leaf, row=row: leaf[row], distribution)
        log_probs = np.array([mine.log_prob(action) for action in every])
        np.testing.assert_allclose(np.exp(log_probs).sum(), 1.0, rtol=1e-5)
        np.testing.assert_allclose(mine.entropy(), -(np.exp(log_probs) * log_probs).sum(), rtol=1e-5)


def test_frequencies_follow_probabilities():
    spec, distribution, _ = drawn(SPACES["multi-discrete"], count=1)
    alone = jax.tree.map(lambda leaf: leaf[0], distribution)
    actions = np.asarray(jax.vmap(alone.sample)(jax.random.split(jax.random.key(1), 20_000)))
    for i, size in enumerate(spec.sizes):
        expected = jax.nn.softmax(alone.choices[i].logits)
        seen = np.bincount(actions[:, i], minlength=size) / 20_000
        np.testing.assert_allclose(seen, expected, atol=5 * np.sqrt(0.25 / 20_000))


def test_bounds_are_within_reach_and_clipping_is_the_environments():
    spec = ContinuousActions((-2.0, 0.0), (2.0, 10.0), (2,))
    given = spec.to_env(np.array([[1.0, -1.0], [7.0, -7.0], [0.0, 0.0]], np.float32))
    np.testing.assert_allclose(given, [[2.0, 0.0], [2.0, 0.0], [0.0, 5.0]])


def test_other_spaces_are_refused_with_a_remedy():
    integers = [Box(0, 2048, (2,), np.int32), Box(2**31 - 2, 2**31, dtype=np.int64)]
    for space in (Text(3), *integers, Box(-np.inf, np.inf, (1,), np.int64)):
        with pytest.raises(ConfigError, match="action_space is .*TransformAction"):
            action_spec(space)


@pytest.mark.parametrize("name", SPACES)
def test_noise_may_be_drawn_before_the_distribution_is_known(name):
    spec, distribution, actions = drawn(SPACES[name], seed=4)
    shapes_alone = jax.tree.map(jnp.zeros_like, distribution)
    keys = jax.random.split(jax.random.key(4), 64)
    noise = jax.vmap(lambda row, key: row.noise(key))(shapes_alone, keys)
    chosen = jax.vmap(lambda row, numbers: row.draw(numbers))(distribution, noise)
    np.testing.assert_array_equal(chosen, actions)
    assert chosen.dtype == spec.none.dtype
