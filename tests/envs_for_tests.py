"""Physics small enough to predict by hand, tiny settings, and what acting under them looks like."""

import dataclasses
import functools
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from thrust_rl.config import ArmConfig, PPOConfig, TrainConfig
from thrust_rl.envs.actions import DiscreteActions
from thrust_rl.envs.core import FullyObserved, FunctionalEnv
from thrust_rl.envs.spaces import vector_spec
from thrust_rl.maths.keys import environment_keys
from thrust_rl.maths.moments import Moments
from thrust_rl.policies.actor_critic import ActorCritic, build_policy
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.collect import Actor, collect, initial_actor
from thrust_rl.types import Rollout

LSTM_ARM = ArmConfig("tiny-lstm", cell="lstm", hidden_dim=6)
MLP_ARM = ArmConfig("tiny-mlp", encoder_sizes=(8,))
FOREVER = 10**6  # a time limit nobody reaches
# Laws hold at any level of optimization, and at the lowest one XLA needs half the time to compile.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@dataclasses.dataclass(frozen=True)
class TwoActions:
    """What all of these have in common: two actions and an unbounded vector of `width`."""

    @property
    def width(self) -> int:
        """Length of the observation."""
        return 1

    @property
    def observation_space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(-np.inf, np.inf, (self.width,), np.float32)

    @property
    def action_space(self) -> gymnasium.spaces.Discrete:
        return gymnasium.spaces.Discrete(2)


class Count(NamedTuple):
    tag: jax.Array  # drawn once per episode: says which environment and episode this is
    time: jax.Array
    last_action: jax.Array


@dataclasses.dataclass(frozen=True)
class Counter(TwoActions):
    """Sees (tag, time index, action that led here); is paid time + action / 2; never ends by itself."""

    @property
    def width(self) -> int:
        return 3

    def init(self, key):
        return Count(jax.random.uniform(key), jnp.zeros(()), jnp.zeros(()))

    def step(self, key, state, action):
        state_after = Count(state.tag, state.time + 1.0, action.astype(jnp.float32))
        return state_after, state.time + action / 2.0, jnp.zeros((), bool)

    def observe(self, state):
        return jnp.stack(state)


class Life(NamedTuple):
    tag: jax.Array
    time: jax.Array
    length: jax.Array


@dataclasses.dataclass(frozen=True)
class Short(TwoActions):
    """Terminates after a random number of steps in [1, longest]; is paid tag + time + action."""

    longest: int = 3

    @property
    def width(self) -> int:
        return 2

    def init(self, key):
        tag_key, length_key = jax.random.split(key)
        length = jax.random.randint(length_key, (), 1, self.longest + 1)
        return Life(jax.random.uniform(tag_key), jnp.zeros(()), length)

    def step(self, key, state, action):
        after = state._replace(time=state.time + 1.0)
        return after, state.tag + after.time + action, after.time >= state.length

    def observe(self, state):
        return jnp.stack([state.tag, state.time + 1.0])


class Recollection(NamedTuple):
    cue: jax.Array  # -1 or 1
    time: jax.Array


@dataclasses.dataclass(frozen=True)
class Cue(TwoActions):
    """Shows a fair cue at step 0 only; at the last of `length` steps, naming it pays 1. Ends there."""

    length: int = 4

    @property
    def width(self) -> int:
        return 2

    def init(self, key):
        return Recollection(2.0 * jax.random.bernoulli(key) - 1.0, jnp.zeros(()))

    def step(self, key, state, action):
        asked = state.time == self.length - 1
        right = asked & ((action == 1) == (state.cue > 0))
        return state._replace(time=state.time + 1.0), right.astype(jnp.float32), asked

    def observe(self, state):
        return jnp.stack([jnp.where(state.time == 0, state.cue, 0.0), jnp.ones(())])


@dataclasses.dataclass(frozen=True)
class Constant(TwoActions):
    """Nothing to see, always the same pay, no end: worth r / (1 − γ) whatever the time limit."""

    reward: float = 0.5

    def init(self, key):
        return jnp.ones(1)

    def step(self, key, state, action):
        return state, jnp.asarray(self.reward), jnp.zeros((), bool)

    def observe(self, state):
        return state


@dataclasses.dataclass(frozen=True)
class Echo(TwoActions):
    """Shows a fresh ±1 at every step and pays 1 for the action that names it."""

    def init(self, key):
        return 2.0 * jax.random.bernoulli(key, shape=(1,)) - 1.0

    def step(self, key, state, action):
        right = (action == 1) == (state[0] > 0)
        return self.init(key), right.astype(jnp.float32), jnp.zeros((), bool)

    def observe(self, state):
        return state


@dataclasses.dataclass(frozen=True)
class Poisoned(TwoActions):
    """A NaN in the reward of transition `step` (0-based), or in the observation number `step`."""

    step_index: int
    in_reward: bool

    def init(self, key):
        return jnp.zeros(())

    def step(self, key, state, action):
        poisoned = self.in_reward & (state == self.step_index)
        return state + 1.0, jnp.where(poisoned, jnp.nan, 1.0), jnp.zeros((), bool)

    def observe(self, state):
        poisoned = (not self.in_reward) & (state == self.step_index)
        return jnp.where(poisoned, jnp.nan, jnp.cos(state))[None]


def environment(physics, *, max_steps: int = FOREVER, sensor=None) -> FunctionalEnv:
    """The physics seen whole (or through `sensor`), cut after `max_steps`."""
    return FunctionalEnv(type(physics).__name__, physics, sensor or FullyObserved(), max_steps)


def settings(*, updates: int = 3, num_envs: int = 4, num_steps: int = 8, window_start="cold", **ppo):
    """A `TrainConfig` of a few windows; `ppo` overrides what suits the tiny environments."""
    defaults = {"envs_per_minibatch": 2, "batch_size": 8, "n_epochs": 2, "learning_rate": 1e-2}
    return TrainConfig(
        total_timesteps=updates * num_envs * num_steps,
        num_envs=num_envs,
        num_steps=num_steps,
        window_start=window_start,
        ppo=PPOConfig(**{**defaults, **ppo}),
    )


class Acted(NamedTuple):
    """Several windows of acting by one policy; `rollout` leaves are [window, env, time, ...]."""

    policy: ActorCritic  # of the last window
    rollout: Rollout
    episode_return: jax.Array  # [window, time, env]
    actor: Actor
    moments: Moments


def decided(policy: ActorCritic) -> ActorCritic:
    """The policy with weights so large that what it sees and remembers matters to what it says."""
    grown = jax.tree.map(lambda leaf: 1.5 * leaf, policy)
    actor = jax.tree.map(lambda leaf: 100.0 * leaf, policy.actor)
    return dataclasses.replace(grown, actor=actor)


@functools.cache
def drawn_policy(arm, obs_dim: int, seed: int) -> ActorCritic:
    """The arm's first policy for a seed, made `decided`."""
    build = functools.partial(build_policy, arm, vector_spec(obs_dim), DiscreteActions(2))
    return decided(jax.jit(lambda key: build(key=key), compiler_options=QUICK)(jax.random.key(seed)))


@functools.cache
def act(env, arm, config, *, windows: int = 3, drift: float = 0.0, seed: int = 0) -> Acted:
    """Act for some windows; after each of them the policy's weights grow by the share `drift`."""
    policy = drawn_policy(arm, env.observation_space.shape[0], seed)
    return _compiled(env, arm, config, windows, drift)(policy, jax.random.key(seed))


@functools.cache
def _compiled(env, arm, config, windows, drift):
    return jax.jit(functools.partial(act_with, env, arm, config, windows=windows, drift=drift), compiler_options=QUICK)


def act_with(env, arm, config, policy, key, *, windows, drift) -> Acted:
    """What `act` compiles."""
    streams, task = environment_keys(key, config.num_envs), Task.of(env, arm)
    actor, moments = initial_actor(env, task, policy, streams, config)

    def window(carry, index):
        actor, moments = carry
        first, grown = index * config.num_steps, jax.tree.map(lambda leaf: leaf * (1.0 + drift * index), policy)
        actor, moments, seen = collect(env, task, grown, actor, moments, streams, first_step=first, config=config)
        return (actor, moments), (grown, seen)

    (actor, moments), (policies, seen) = lax.scan(window, (actor, moments), jnp.arange(windows))
    last = jax.tree.map(lambda leaf: leaf[-1], policies)
    return Acted(last, seen.rollout, seen.episode_return, actor, moments)


@jax.jit
def one_step(policy, memory, obs):
    """The policy's step without a flag."""
    return policy.step(memory, obs, jnp.zeros((), bool))


def by_hand(policy, memory, obs, forget):
    """Act on one trajectory step by step, emptying memory by hand where `forget`.

    Returns:
        Values [time], logits [time, action], and the list of memories after each step.
    """
    values, logits, memories = [], [], []
    for o, forgets in zip(obs, forget, strict=True):
        memory = policy.initial() if forgets else memory
        memory, out = one_step(policy, memory, o)
        values.append(out.value)
        logits.append(out.distribution.logits)
        memories.append(memory)
    return np.array(values), np.array(logits), memories
