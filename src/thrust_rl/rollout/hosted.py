"""Acting in environments that the host steps: one compiled call per step, and the same `Rollout` as a compiled scan.

What a call does is made of the functions of `rollout.collect`. Call t receives the frames that step t−1 brought and
decides a_t; the first call of a window only decides, and a last one only receives.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree, UInt32
from numpy.typing import NDArray

from thrust_rl.config import TrainConfig
from thrust_rl.envs.hosted import Hosted, HostedEnvs
from thrust_rl.maths.keys import environment_keys, step_key
from thrust_rl.policies.actor_critic import ActorCritic, empty_memory
from thrust_rl.policies.inputs import Arrival, Task
from thrust_rl.rollout.axes import trajectory_major
from thrust_rl.rollout.collect import Actor, Window, decide, first_look, receive, successor_values
from thrust_rl.types import Frame, Rollout


class Steps(NamedTuple):
    """A window in the making: a `Rollout` without memory, leaves `[time, env, ...]`."""

    obs: PyTree
    episode_start: Array
    action: Array
    log_prob: Array
    value: Array
    reward: Array
    terminated: Array
    truncated: Array
    bootstrap_value: Array
    valid: Array | tuple[()]


class Acting(NamedTuple):
    """Where acting on the host stands between two calls."""

    actor: Actor
    moments: PyTree
    action: Array  # a_t, flat, `[env, ...]`; drawn last
    clock: Int[Array, " env"]  # transitions of every environment so far
    t: Int[Array, ""]  # of the step of the window that is to be decided
    steps: Steps


class Came(NamedTuple):
    """What a step of the environments brought; few arrays, since every one costs time on its way into a call."""

    frame: PyTree  # to act on next, leaves `[env, ...]`
    flags: Any  # uint8 `[flag, env]`, in the order of `Flags`
    reward: Any  # raw, `[env]`
    successor: PyTree | None  # the true one, where some value of it is read


class Flags(NamedTuple):
    """Booleans about one step of every environment."""

    blank: Array  # the frame to act on next
    successor_blank: Array
    starts: Array  # the frame opens an episode
    terminated: Array
    truncated: Array
    valid: Array  # a transition, not a reset that took a step


class HostCollector:
    """Acts in hosted environments, window by window.

    Args:
        envs: they are begun here, and closed by whoever built them.
        task: what the arm meets in them.
        policy: of whom the first memory is taken; any policy of the same shape may act.
        config: window length and the rest.
        seed: of the run.
    """

    def __init__(self, envs: HostedEnvs, task: Task, policy: ActorCritic, config: TrainConfig, *, seed: int) -> None:
        self._envs, self._task, self._config = envs, task, config
        frames = envs.begin(seed)
        self._streams = jax.random.key_data(environment_keys(jax.random.key(np.uint32(seed)), config.num_envs))
        self._returns = np.zeros(config.num_envs)  # raw reward since the episode began
        frame = Frame(frames.obs, frames.info["blank"])
        self._acting = _begun(task, config, policy, frame)
        self._calls = _calls(task, config)

    @property
    def actor(self) -> Actor:
        """Where acting stands."""
        return self._acting.actor

    @property
    def moments(self) -> PyTree:
        """Of the observations so far."""
        return self._acting.moments

    def collect(self, policy: ActorCritic) -> Window:
        """Act for one window.

        Raises:
            EnvError: an environment failed.
        """
        acting, first_memory = self._calls.open(policy, self._acting)
        num_steps = self._config.num_steps
        returns = np.full((num_steps, self._config.num_envs), np.nan, np.float32)
        acting = self._calls.decide(policy, acting, self._streams)
        for t in range(num_steps):
            hosted = self._envs.step(self._task.actions.to_env(np.asarray(acting.action)))
            self._count(hosted, returns[t])
            last = t == num_steps - 1
            came = _came(hosted, reads_successors=last or bool(hosted.result.truncated.any()))
            if last:
                acting = self._calls.receive(policy, acting, came)
            else:
                acting = self._calls.step(policy, acting, came, self._streams)
        self._acting = acting
        seen = trajectory_major(acting.steps)._asdict()
        if isinstance(hosted.valid, tuple):
            seen["valid"] = ()
        rollout = Rollout(**seen, memory=first_memory)
        return Window(rollout, returns, np.ones(num_steps, bool))  # type: ignore[arg-type]

    def _count(self, hosted: Hosted, finished: NDArray[np.float32]) -> None:
        """Take the rewards into the returns; write down those of the episodes that ended."""
        over = hosted.result.over
        self._returns += hosted.result.reward
        if over.any():
            finished[over] = self._returns[over]
            self._returns[over] = 0.0


class _Calls(NamedTuple):
    """The compiled functions."""

    open: Callable[..., Any]
    decide: Callable[..., Acting]
    step: Callable[..., Acting]
    receive: Callable[..., Acting]


@functools.lru_cache(maxsize=16)
def _calls(task: Task, config: TrainConfig) -> _Calls:
    def receive_last(policy: ActorCritic, acting: Acting, came: Came) -> Acting:
        return _receive(task, config, policy, acting, came)

    def step(policy: ActorCritic, acting: Acting, came: Came, streams: UInt32[Array, "env word"]) -> Acting:
        return _decide(policy, _receive(task, config, policy, acting, came), streams)

    return _Calls(
        jax.jit(functools.partial(_open, config)),
        jax.jit(_decide, donate_argnums=1),
        jax.jit(step, donate_argnums=1),
        jax.jit(receive_last, donate_argnums=1),
    )


@functools.partial(jax.jit, static_argnums=(0, 1))
def _begun(task: Task, config: TrainConfig, policy: ActorCritic, frame: Frame) -> Acting:
    """Receive the first frames; nothing has been decided yet."""
    actor, moments = first_look(task, policy, (), frame, config)
    action = jnp.broadcast_to(task.actions.none, (config.num_envs, *task.actions.none.shape))
    axes = (config.num_steps, config.num_envs)
    numbers, flags = jnp.zeros(axes), jnp.zeros(axes, bool)
    steps = Steps(
        obs=jax.tree.map(lambda leaf: jnp.zeros((config.num_steps, *leaf.shape), leaf.dtype), actor.obs),
        episode_start=flags,
        action=jnp.zeros((config.num_steps, *action.shape), action.dtype),
        log_prob=numbers,
        value=numbers,
        reward=numbers,
        terminated=flags,
        truncated=flags,
        bootstrap_value=numbers,
        valid=flags,
    )
    return Acting(actor, moments, action, jnp.zeros(config.num_envs, jnp.int32), jnp.zeros((), jnp.int32), steps)


def _open(config: TrainConfig, policy: ActorCritic, acting: Acting) -> tuple[Acting, PyTree]:
    """Begin a window; its first memory is handed out as a copy that nobody writes over."""
    memory = empty_memory(policy, config.num_envs) if config.window_start == "cold" else acting.actor.memory
    acting = acting._replace(actor=acting.actor._replace(memory=memory), t=jnp.zeros_like(acting.t))
    return acting, jax.tree.map(jnp.copy, memory)


def _decide(policy: ActorCritic, acting: Acting, streams: UInt32[Array, "env word"]) -> Acting:
    """Consume o_t, draw a_t, and write both down."""
    actor, steps, t = acting.actor, acting.steps, acting.t
    keys = jax.vmap(step_key)(jax.random.wrap_key_data(streams), acting.clock + 1)
    memory, action, log_prob, value = decide(policy, actor, keys)
    steps = steps._replace(
        obs=_written(steps.obs, actor.obs, t),
        episode_start=_written(steps.episode_start, actor.episode_start, t),
        action=_written(steps.action, action, t),
        log_prob=_written(steps.log_prob, log_prob, t),
        value=_written(steps.value, value, t),
    )
    return acting._replace(actor=actor._replace(memory=memory), action=action, steps=steps)


def _receive(task: Task, config: TrainConfig, policy: ActorCritic, acting: Acting, came: Came) -> Acting:
    """Write down what a_t led to, and get ready to act on it."""
    actor, steps, t = acting.actor, acting.steps, acting.t
    flags = Flags(*(came.flags[i] == 1 for i in range(len(Flags._fields))))
    reward = came.reward * config.ppo.reward_scale
    moments, obs = receive(
        task,
        acting.moments,
        Frame(came.frame, flags.blank),
        before=actor.obs,
        arrival=Arrival(acting.action, reward, flags.starts),
        config=config,
    )
    steps = steps._replace(
        reward=_written(steps.reward, reward, t),
        terminated=_written(steps.terminated, flags.terminated, t),
        truncated=_written(steps.truncated, flags.truncated, t),
        valid=_written(steps.valid, flags.valid, t),
    )
    if came.successor is not None:
        values = successor_values(
            task,
            policy,
            actor.memory,
            moments,
            Frame(came.successor, flags.successor_blank),
            before=actor.obs,
            arrival=Arrival(acting.action, reward, jnp.zeros_like(flags.starts)),
            config=config,
        )
        steps = steps._replace(bootstrap_value=_written(steps.bootstrap_value, values, t))
    return Acting(
        actor._replace(obs=obs, episode_start=flags.starts),
        moments,
        acting.action,
        acting.clock + flags.valid,
        t + 1,
        steps,
    )


def _written(record: PyTree, step: PyTree, t: Array) -> PyTree:
    return jax.tree.map(lambda all_, one: all_.at[t].set(one), record, step)


def _came(hosted: Hosted, *, reads_successors: bool) -> Came:
    result, frames = hosted.result, hosted.frames
    flags = np.empty((len(Flags._fields), len(result.reward)), np.uint8)
    flags[0], flags[1], flags[2] = frames.info["blank"], result.info["blank"], hosted.starts
    flags[3], flags[4] = result.terminated, result.truncated
    flags[5] = 1 if isinstance(hosted.valid, tuple) else hosted.valid
    return Came(frames.obs, flags, result.reward, result.obs if reads_successors else None)
