"""Acting in environments that the host steps: one compiled call per step, and the same `Rollout` as a compiled scan.

What a call does is made of the functions of `rollout.collect`. Call t receives the frames that step t−1 brought and
decides a_t; the first call of a window only decides, and a last one only receives. What the environments said is
written down on the host, what the policy said on the device.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree
from numpy.typing import NDArray

from thrust_rl.config import TrainConfig
from thrust_rl.envs.hosted import Hosted, HostedEnvs
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.policies.actor_critic import ActorCritic, empty_memory
from thrust_rl.policies.inputs import Arrival, Task
from thrust_rl.rollout.axes import trajectory_major
from thrust_rl.rollout.collect import Actor, Window, decide, first_look, receive, successor_values, window_noise
from thrust_rl.rollout.normalize import initial_frame_moments
from thrust_rl.types import Frame, Rollout, StreamKeys


class Said(NamedTuple):
    """What the policy said in a window, leaves `[time, env, ...]`."""

    obs: PyTree
    log_prob: Array
    value: Array
    bootstrap_value: Array


class Told(NamedTuple):
    """What the environments were told and said in a window: arrays `[env, time, ...]` on the host."""

    episode_start: NDArray[np.bool_]
    action: NDArray[Any]  # flat
    reward: NDArray[np.float32]  # scaled
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_]


class Acting(NamedTuple):
    """Where acting on the host stands between two calls."""

    actor: Actor
    moments: PyTree
    action: Array  # a_t, flat, `[env, ...]`; drawn last
    noise: PyTree  # of the actions of the window, leaves `[transition, env, ...]`
    clock: Int[Array, " env"]  # transitions of every environment before the window
    taken: Int[Array, " env"]  # transitions of every environment in the window
    t: Int[Array, ""]  # of the step of the window that is to be decided
    said: Said


class Came(NamedTuple):
    """What a step of the environments brought; few arrays, since every one costs time on its way into a call."""

    frame: PyTree  # to act on next, leaves `[env, ...]`
    flags: Any  # uint8 `[flag, env]`, in the order of `Flags`
    reward: Any | None  # scaled, `[env]`, where the arm reads it
    successor: PyTree | None  # the true one, where some value of it is read


class Flags(NamedTuple):
    """Booleans about one step of every environment."""

    blank: Array  # the frame to act on next
    successor_blank: Array
    episode_start: Array  # the frame opens an episode
    valid: Array  # a transition, not a reset that took a step


class HostCollector:
    """Acts in hosted environments, window by window.

    Args:
        envs: they are begun here, and closed by whoever built them.
        task: what the arm meets in them.
        policy: of whom the first memory is taken; any policy of the same shape may act.
        config: window length and the rest.
        seed: of the run.
        after: steps of every environment that the run has behind it. The state of environments on the host cannot be
            kept, so these begin anew, with other seeds than at the run's start; the policy draws on where it was.
        moments: of the observations in those steps.
    """

    def __init__(
        self,
        envs: HostedEnvs,
        task: Task,
        policy: ActorCritic,
        config: TrainConfig,
        *,
        seed: int,
        after: int = 0,
        moments: PyTree | None = None,
    ) -> None:
        self._envs, self._task, self._config = envs, task, config
        frames = envs.begin(_first_seed(seed, after))
        self._streams = environment_keys(jax.random.key(np.uint32(seed)), config.num_envs)
        self._returns = np.zeros(config.num_envs)  # raw reward since the episode began
        self._episode_start = np.ones(config.num_envs, bool)  # about the frame to act on next
        first = Frame(frames.obs, frames.info["blank"])
        moments = initial_frame_moments(task.frame) if moments is None else moments
        self._acting = _begun(task, config, policy, self._streams, first, moments, np.int32(after))
        self._moments = jax.tree.map(jnp.copy, self._acting.moments)  # the first call writes over them
        self._calls = _calls(task, config, jax.tree.structure(policy))

    @property
    def actor(self) -> Actor:
        """Where acting stands."""
        return self._acting.actor

    @property
    def moments(self) -> PyTree:
        """Of the observations up to the end of the last window."""
        return self._moments

    def collect(self, policy: ActorCritic) -> Window:
        """Act for one window.

        Raises:
            EnvError: an environment failed.
        """
        num_steps, num_envs = self._config.num_steps, self._config.num_envs
        weights = jax.tree.leaves(policy)  # as a list: a module would be taken apart anew for every call
        acting, memory = self._calls.open(weights, self._acting, self._streams)
        told = _untold(self._task, self._config)
        returns = np.full((num_steps, num_envs), np.nan, np.float32)
        acting = self._calls.decide(weights, acting)
        for t in range(num_steps):
            action = np.asarray(acting.action)
            hosted = self._envs.step(self._task.actions.to_env(action))
            self._write(told, t, action, hosted)
            self._count(hosted, returns[t])
            last = t == num_steps - 1
            came = self._came(hosted, told.reward[:, t], reads_successors=last)
            acting = (self._calls.receive if last else self._calls.step)(weights, acting, came)
        self._acting = acting
        said, self._moments = self._calls.close(acting)
        every_step = told._asdict() | said._asdict()
        if isinstance(hosted.valid, tuple):
            every_step["valid"] = ()
        return Window(Rollout(**every_step, memory=memory), returns, np.ones(num_steps, bool))  # type: ignore[arg-type]

    def _write(self, told: Told, t: int, action: NDArray[Any], hosted: Hosted) -> None:
        """Write down step t."""
        result = hosted.result
        told.episode_start[:, t] = self._episode_start
        told.action[:, t] = action
        told.reward[:, t] = result.reward * np.float32(self._config.ppo.reward_scale)
        told.terminated[:, t], told.truncated[:, t] = result.terminated, result.truncated
        told.valid[:, t] = True if isinstance(hosted.valid, tuple) else hosted.valid
        self._episode_start = hosted.episode_start

    def _count(self, hosted: Hosted, finished: NDArray[np.float32]) -> None:
        """Take the rewards into the returns; write down those of the episodes that ended."""
        over = hosted.result.over
        self._returns += hosted.result.reward
        if over.any():
            finished[over] = self._returns[over]
            self._returns[over] = 0.0

    def _came(self, hosted: Hosted, reward: NDArray[np.float32], *, reads_successors: bool) -> Came:
        result, frames = hosted.result, hosted.frames
        flags = np.empty((len(Flags._fields), len(result.reward)), np.uint8)
        flags[0], flags[1], flags[2] = frames.info["blank"], result.info["blank"], hosted.episode_start
        flags[3] = 1 if isinstance(hosted.valid, tuple) else hosted.valid
        reads_successors = reads_successors or bool(result.truncated.any())
        return Came(
            frames.obs,
            flags,
            reward if self._task.arm.previous_reward else None,
            result.obs if reads_successors else None,
        )


def _first_seed(seed: int, after: int) -> int:
    """Of environments that begin after so many steps of a run: at its start, the run's own."""
    if after == 0:
        return seed
    return int(jax.random.bits(step_key(purpose_key(jax.random.key(np.uint32(seed)), Purpose.RESUME), after)))


def _untold(task: Task, config: TrainConfig) -> Told:
    """Arrays to write a window into."""
    axes, none = (config.num_envs, config.num_steps), task.actions.none
    flags = [np.empty(axes, bool) for _ in range(4)]
    action, reward = np.empty((*axes, *none.shape), none.dtype), np.empty(axes, np.float32)
    return Told(flags[0], action, reward, *flags[1:])


class _Calls(NamedTuple):
    """The compiled functions; a policy comes as the list of its leaves."""

    open: Callable[..., Any]
    decide: Callable[..., Acting]
    step: Callable[..., Acting]
    receive: Callable[..., Acting]
    close: Callable[[Acting], tuple[Said, PyTree]]


@functools.lru_cache(maxsize=16)
def _calls(task: Task, config: TrainConfig, structure: jax.tree_util.PyTreeDef) -> _Calls:
    def open_(weights: list[Array], acting: Acting, streams: StreamKeys) -> tuple[Acting, PyTree]:
        return _open(config, structure.unflatten(weights), acting, streams)

    def decide(weights: list[Array], acting: Acting) -> Acting:
        return _decide(structure.unflatten(weights), acting)

    def receive(weights: list[Array], acting: Acting, came: Came) -> Acting:
        return _receive(task, config, structure.unflatten(weights), acting, came)

    def step(weights: list[Array], acting: Acting, came: Came) -> Acting:
        return decide(weights, receive(weights, acting, came))

    act = functools.partial(jax.jit, donate_argnums=1)
    return _Calls(jax.jit(open_), act(decide), act(step), act(receive), jax.jit(_close))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _begun(
    task: Task,
    config: TrainConfig,
    policy: ActorCritic,
    streams: StreamKeys,
    frame: Frame,
    moments: PyTree,
    after: Int[Array, ""],
) -> Acting:
    """Receive the first frames; nothing has been decided yet."""
    actor, moments = first_look(task, policy, (), frame, moments=moments, config=config)
    action = jnp.broadcast_to(task.actions.none, (config.num_envs, *task.actions.none.shape))
    numbers, nothing = jnp.zeros((config.num_steps, config.num_envs)), jnp.zeros(config.num_envs, jnp.int32)
    said = Said(
        obs=jax.tree.map(lambda leaf: jnp.zeros((config.num_steps, *leaf.shape), leaf.dtype), actor.obs),
        log_prob=numbers,
        value=numbers,
        bootstrap_value=numbers,
    )
    noise = window_noise(policy, streams, nothing, config.num_steps)  # of the right shape; drawn when a window opens
    return Acting(actor, moments, action, noise, nothing + after, nothing, jnp.zeros((), jnp.int32), said)


def _open(config: TrainConfig, policy: ActorCritic, acting: Acting, streams: StreamKeys) -> tuple[Acting, PyTree]:
    """Begin a window; its first memory is handed out as a copy that nobody writes over."""
    memory = empty_memory(policy, config.num_envs) if config.window_start == "cold" else acting.actor.memory
    clock = acting.clock + acting.taken
    acting = acting._replace(
        actor=acting.actor._replace(memory=memory),
        noise=window_noise(policy, streams, clock, config.num_steps),
        clock=clock,
        taken=jnp.zeros_like(clock),
        t=jnp.zeros_like(acting.t),
    )
    return acting, jax.tree.map(jnp.copy, memory)


def _decide(policy: ActorCritic, acting: Acting) -> Acting:
    """Consume o_t, draw a_t, and write down what was said."""
    actor, said, t = acting.actor, acting.said, acting.t
    envs = jnp.arange(len(acting.taken))
    noise = jax.tree.map(lambda numbers: numbers[acting.taken, envs], acting.noise)
    memory, action, log_prob, value = decide(policy, actor, noise)
    said = said._replace(
        obs=_written(said.obs, actor.obs, t),
        log_prob=_written(said.log_prob, log_prob, t),
        value=_written(said.value, value, t),
    )
    return acting._replace(actor=actor._replace(memory=memory), action=action, said=said)


def _receive(task: Task, config: TrainConfig, policy: ActorCritic, acting: Acting, came: Came) -> Acting:
    """Take in what a_t led to, and get ready to act on it."""
    actor, said, t = acting.actor, acting.said, acting.t
    flags = Flags(*(came.flags[i] == 1 for i in range(len(Flags._fields))))
    reward = jnp.zeros(len(flags.episode_start)) if came.reward is None else came.reward
    moments, obs = receive(
        task,
        acting.moments,
        Frame(came.frame, flags.blank),
        before=actor.obs,
        arrival=Arrival(acting.action, reward, flags.episode_start),
        config=config,
    )
    if came.successor is not None:
        values = successor_values(
            task,
            policy,
            actor.memory,
            moments,
            Frame(came.successor, flags.successor_blank),
            before=actor.obs,
            arrival=Arrival(acting.action, reward, jnp.zeros_like(flags.episode_start)),
            config=config,
        )
        said = said._replace(bootstrap_value=_written(said.bootstrap_value, values, t))
    return acting._replace(
        actor=actor._replace(obs=obs, episode_start=flags.episode_start),
        moments=moments,
        taken=acting.taken + flags.valid,
        t=t + 1,
        said=said,
    )


def _close(acting: Acting) -> tuple[Said, PyTree]:
    """What was said in a window, and the moments at its end as a copy that nobody writes over."""
    return trajectory_major(acting.said), jax.tree.map(jnp.copy, acting.moments)


def _written(record: PyTree, step: PyTree, t: Array) -> PyTree:
    return jax.tree.map(lambda all_, one: all_.at[t].set(one), record, step)
