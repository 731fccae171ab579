"""Random keys by purpose, stream and step: nobody ever splits a chain, so nothing depends on order."""

from enum import IntEnum

import jax

from thrust_rl.types import Key, StreamKeys


class Purpose(IntEnum):
    """What a random number is for. Values are part of the seeding contract: append, never renumber."""

    PHYSICS = 0  # noise of a transition
    RESET = 1  # first state of an episode
    SENSOR = 2  # the observation model's clock
    ACTION = 3  # which action is drawn
    POLICY = 4  # initial parameters
    SHUFFLE = 5  # order of minibatches
    ENVIRONMENT = 6  # the stream of one environment of a batch
    FRAME = 7  # noise that the observation model puts into one frame
    RESUME = 8  # seed of the environments that a run on the host goes on in after a checkpoint


def purpose_key(key: Key, purpose: Purpose) -> Key:
    """The root of all numbers drawn for one purpose."""
    return jax.random.fold_in(key, purpose.value)


def environment_keys(key: Key, num_envs: int) -> StreamKeys:
    """One stream key per environment index; leading axis `[env]`."""
    root = purpose_key(key, Purpose.ENVIRONMENT)
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(root, jax.numpy.arange(num_envs))


def step_key(stream: Key, step: jax.Array | int) -> Key:
    """The key of one step of one environment's stream."""
    return jax.random.fold_in(stream, step)
