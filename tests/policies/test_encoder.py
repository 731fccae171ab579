"""How parts of an observation are read: many choices by looking them up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from thrust_rl.config import ArmConfig, ConfigError
from thrust_rl.envs.spaces import MAX_CHOICES, MAX_ONE_HOT, ObsSpec, obs_spec
from thrust_rl.policies.encoder import Encoder
from thrust_rl.policies.layers import CHOICE_FEATURES

BARE = ArmConfig("bare", cell="lstm")


def test_long_choices_are_rows_of_a_table_and_learn_as_one_hots_would():
    """The gradient of a lookup is that of a one-hot times the table: nothing for rows that were not looked up."""
    encoder = Encoder(obs_spec(MultiDiscrete([5000, 3])), BARE, key=jax.random.key(0))
    table = encoder.tables[0].table
    assert table.shape == (5003, CHOICE_FEATURES) and encoder.out_dim == 2 * CHOICE_FEATURES
    values = jnp.array([[[4999, 0]], [[7, 2]]])  # two leading axes
    one_hots = np.zeros((2, 1, 2, 5003), np.float32)
    for axes in np.ndindex(2, 1, 2):
        one_hots[(*axes, int(values[axes]) + 5000 * axes[-1])] = 1.0
    np.testing.assert_array_equal(encoder(values), (one_hots @ table).reshape(2, 1, -1))

    def multiplied(table):
        return jnp.square(one_hots @ table).sum()

    mine = jax.grad(lambda one: jnp.square(one(values)).sum())(encoder).tables[0].table
    np.testing.assert_allclose(mine, jax.grad(multiplied)(table), rtol=1e-6)
    assert np.flatnonzero(np.any(mine != 0, axis=1)).tolist() == [7, 4999, 5000, 5002]


def test_stacked_frames_share_a_table_and_are_read_as_one_frame_is():
    """An arm that sees several frames reads each as one that sees one does, one-hots or rows alike."""
    for size in (MAX_ONE_HOT - 3, MAX_ONE_HOT):
        (part,) = obs_spec(MultiDiscrete([size, 3])).parts
        one, several = (Encoder(ObsSpec.of(seen), BARE, key=jax.random.key(0)) for seen in (part, part.stacked(3)))
        frames = jnp.array([[1, 2], [size - 1, 0], [7, 1]])
        np.testing.assert_array_equal(several(frames), one(frames).ravel())
        assert [reader.table.shape for reader in several.tables] == [reader.table.shape for reader in one.tables]
        assert several.out_dim == 3 * one.out_dim and len(one.tables) == (size == MAX_ONE_HOT)


@pytest.mark.parametrize("start", [2**31 - 4, 2**40, -(2**31) - 1])
def test_alternatives_that_no_int32_can_number_are_refused(start):
    with pytest.raises(ConfigError, match="beyond what an int32 holds: number its alternatives from 0"):
        obs_spec(Discrete(5, start=start))


def test_the_longest_one_hot_is_none_too_long():
    """A part alone decides; what is beside it is read as before."""
    space = Dict(a=Discrete(MAX_ONE_HOT), b=Discrete(MAX_ONE_HOT + 1), c=Box(-1.0, 1.0, (2,)))
    encoder = Encoder(obs_spec(space), BARE, key=jax.random.key(0))
    assert len(encoder.tables) == 1 and encoder.out_dim == MAX_ONE_HOT + CHOICE_FEATURES + 2
    read = encoder({"a": jnp.int32(2), "b": jnp.int32(MAX_ONE_HOT), "c": jnp.array([0.25, -1.0])})
    np.testing.assert_array_equal(np.flatnonzero(read[:MAX_ONE_HOT]), [2])
    np.testing.assert_array_equal(read[MAX_ONE_HOT:-2], encoder.tables[0].table[MAX_ONE_HOT])
    np.testing.assert_array_equal(read[-2:], [0.25, -1.0])


def test_a_table_that_would_be_too_large_is_refused():
    with pytest.raises(ConfigError, match=f"{MAX_CHOICES + 1} alternatives, over {MAX_CHOICES}"):
        obs_spec(Discrete(MAX_CHOICES + 1))
