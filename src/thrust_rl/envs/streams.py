"""A stream: one environment's random numbers, clock, hidden state and frame as one value, and how it moves on."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from thrust_rl.envs.core import EnvState, FunctionalEnv, step_and_restart
from thrust_rl.maths.distributions import Action
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.types import Frame, Key, Transition


class Stream(NamedTuple):
    """Where one environment stands. It is immutable and complete: the same stream and actions give the same future.

    The step key of the clock is the one that the packaged training uses at that step, so objects and compiled
    training draw the same numbers.
    """

    key_data: UInt32[Array, " word"]  # of the stream's key; raw, because a typed key slows every compiled call down
    clock: Int[Array, ""]  # steps since the stream began, over all its episodes
    begun: Int[Array, ""]  # episodes begun since the clock last moved
    env_state: EnvState
    frame: Frame  # the current one: what there is to act on


def begin(env: FunctionalEnv, key: Key) -> Stream:
    """Start the clock and the first episode."""
    env_state, frame = env.init(step_key(key, 0))
    zero = jnp.zeros((), jnp.int32)
    return Stream(jax.random.key_data(key), zero, zero + 1, env_state, frame)


def step(env: FunctionalEnv, stream: Stream, action: Action) -> tuple[Stream, Transition]:
    """One transition; an episode that ends stays ended."""
    clock = stream.clock + 1
    env_state, result = env.step(_key(stream, clock), stream.env_state, action)
    frame = Frame(result.obs, result.blank)
    return Stream(stream.key_data, clock, jnp.zeros_like(stream.begun), env_state, frame), result


def step_on(env: FunctionalEnv, stream: Stream, action: Action) -> tuple[Stream, Transition]:
    """One transition, and a new episode where this one is over."""
    clock = stream.clock + 1
    env_state, result, frame = step_and_restart(env, _key(stream, clock), stream.env_state, action)
    begun = (result.terminated | result.truncated).astype(stream.begun.dtype)
    return Stream(stream.key_data, clock, begun, env_state, frame), result


def restart(env: FunctionalEnv, stream: Stream) -> Stream:
    """A new episode; the clock stands still.

    The first episode begun at a reading of the clock takes the step key itself, as packaged training does. Further
    ones are numbered, so that resetting twice in a row gives two different first states.
    """
    key = _key(stream, stream.clock)
    # No environment is ever batched below a step's key, so this purpose is free there.
    further = step_key(purpose_key(key, Purpose.ENVIRONMENT), stream.begun)
    env_state, frame = env.restart(jnp.where(stream.begun == 0, key, further), stream.env_state)
    return stream._replace(begun=stream.begun + 1, env_state=env_state, frame=frame)


def restart_if(env: FunctionalEnv, stream: Stream, wanted: Bool[Array, ""]) -> Stream:
    """Restart or leave alone."""
    return jax.tree.map(lambda new, old: jnp.where(wanted, new, old), restart(env, stream), stream)


def _key(stream: Stream, clock: Int[Array, ""]) -> Key:
    return step_key(jax.random.wrap_key_data(stream.key_data), clock)


@functools.partial(jax.jit, static_argnums=(0, 2))
def begin_all(env: FunctionalEnv, seed: UInt32[Array, ""], num_envs: int) -> Stream:
    """`begin` for the first `num_envs` streams of a seed, compiled; leaves `[env, ...]`."""
    return jax.vmap(functools.partial(begin, env))(environment_keys(jax.random.key(seed), num_envs))


@functools.partial(jax.jit, static_argnums=0)
def step_all(env: FunctionalEnv, streams: Stream, actions: Action) -> tuple[Stream, Transition]:
    """`step` for every stream, compiled; leaves `[env, ...]`."""
    return jax.vmap(functools.partial(step, env))(streams, actions)


@functools.partial(jax.jit, static_argnums=0)
def step_on_all(env: FunctionalEnv, streams: Stream, actions: Action) -> tuple[Stream, Transition]:
    """`step_on` for every stream, compiled; leaves `[env, ...]`."""
    return jax.vmap(functools.partial(step_on, env))(streams, actions)


@functools.partial(jax.jit, static_argnums=0)
def restart_some(env: FunctionalEnv, streams: Stream, wanted: Bool[Array, " env"]) -> Stream:
    """`restart_if` for every stream, compiled; leaves `[env, ...]`."""
    return jax.vmap(functools.partial(restart_if, env))(streams, wanted)
