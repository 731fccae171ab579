"""A reshape keeps every step with its environment and its time: element by element, and back."""

import jax
import jax.numpy as jnp
import numpy as np

from thrust_rl.rollout.axes import as_single_steps, trajectory_major

TIME, ENV = 5, 3


def stacked():
    """As a scan stacks it: `[time, env, ...]`, each element naming its step."""
    time, env = jnp.meshgrid(jnp.arange(TIME), jnp.arange(ENV), indexing="ij")
    return {"step": time, "who": (env, jnp.stack([time, env], axis=-1))}


def test_sequences_are_consecutive_and_from_one_environment():
    tree = trajectory_major(stacked())
    for env in range(ENV):
        assert tree["step"][env].tolist() == list(range(TIME))
        assert tree["who"][0][env].tolist() == [env] * TIME
        assert tree["who"][1][env].tolist() == [[t, env] for t in range(TIME)]


def test_swapping_twice_is_the_identity():
    jax.tree.map(np.testing.assert_array_equal, trajectory_major(trajectory_major(stacked())), stacked())


def test_single_steps_keep_their_order_and_their_contents():
    tree = as_single_steps(trajectory_major(stacked()))
    named = [[t, env] for env in range(ENV) for t in range(TIME)]  # all of one environment, then the next
    assert tree["who"][1].tolist() == [[name] for name in named]  # time axis of length one
    assert tree["step"].tolist() == [[t] for t, _ in named]
    assert tree["who"][0].tolist() == [[env] for _, env in named]
