"""Records that cross floors: what an environment returns, what a policy says, what learning sees."""

from typing import Any, NamedTuple, TypeAlias

import jaxtyping
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree, Shaped

Key: TypeAlias = PRNGKeyArray
StreamKeys: TypeAlias = jaxtyping.Key[Array, " env"]  # one key per environment
Obs: TypeAlias = PyTree  # an array, or a tree of arrays
Memory: TypeAlias = PyTree


class Frame(NamedTuple):
    """One observation as the sensor delivered it."""

    obs: Obs  # o_t, after the observation model, before normalizing
    blank: Bool[Array, ""]  # o_t was blanked by the observation model


class Transition(NamedTuple):
    """What one transition t → t+1 produced; `obs` is the true successor, before any reset."""

    obs: Obs  # o_{t+1}
    blank: Bool[Array, ""]  # about o_{t+1}
    reward: Float[Array, ""]  # r_{t+1}, raw
    terminated: Bool[Array, ""]  # absorbing state: the successor is worth 0
    truncated: Bool[Array, ""]  # cut by a limit: the successor's value is bootstrapped


class PolicyOutput(NamedTuple):
    """What an actor-critic says about observations; leading axes follow the input."""

    distribution: Any  # a `maths.distributions.Distribution` of the action
    value: Float[Array, "*axes"]  # state value, in scaled-reward units


class Rollout(NamedTuple):
    """One window of experience, trajectory-major: the only thing learning ever sees.

    Leaves are `[env, time, ...]`. `terminated` and `truncated` belong to the transition that
    *leaves* o_t; `episode_start` belongs to o_t itself.
    """

    obs: PyTree  # o_t, as the policy consumed it (normalized), leaves `[env, time, ...]`
    episode_start: Bool[Array, "env time"]  # o_t opens an episode: forget before reading it
    action: Shaped[Array, "env time *action"]  # a_t, flat: one number or a vector
    log_prob: Float[Array, "env time"]  # log π(a_t | o_≤t) of the acting policy
    value: Float[Array, "env time"]  # V(o_≤t) of the acting policy
    reward: Float[Array, "env time"]  # r_{t+1}, scaled
    terminated: Bool[Array, "env time"]
    truncated: Bool[Array, "env time"]
    bootstrap_value: Float[Array, "env time"]  # V of the true successor; read where truncated or last
    memory: Memory  # m_0 per environment, leaves [env, ...]
    valid: Bool[Array, "env time"] | tuple[()] = ()  # a transition, not a reset that took a step; () says all are
