"""Evaluation apart from training: fresh episodes with fixed seeds, the same ones for every arm and training seed."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree
from numpy.typing import NDArray

from thrust_rl.config import ArmConfig, TrainConfig, require
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.hosted import HostedEnvs
from thrust_rl.envs.task import AnyTask, HostTask
from thrust_rl.maths.keys import environment_keys, step_key
from thrust_rl.maths.sampling import action_noise, draw_actions
from thrust_rl.policies.actor_critic import ActorCritic, empty_memory
from thrust_rl.policies.inputs import Arrival, Task, assemble
from thrust_rl.rollout.normalize import standardize_frames
from thrust_rl.training.loop import TrainState
from thrust_rl.types import Frame, Memory, StreamKeys

EVALUATION_SEED = 1_000_003  # of the episodes; a training run with this very seed would see them
HOST_STEPS = 100_000  # of one host environment, at most: an episode that never ends is cut there
REPORT_EVERY = 256  # steps


class Episodes(NamedTuple):
    """What a policy got in evaluation episodes, one row an episode."""

    episode_return: NDArray[np.float64]  # raw
    length: NDArray[np.int64]
    cut: NDArray[np.bool_]  # by the evaluation, not by the environment
    env_restarts: int = 0  # host environments that failed and were replaced: their episodes ended there


class _Playing(NamedTuple):
    """Where evaluation stands; leaves `[episode, ...]`."""

    env_state: PyTree
    obs: PyTree
    episode_start: Bool[Array, " episode"]
    memory: Memory
    episode_return: Float[Array, " episode"]
    length: Int[Array, " episode"]
    over: Bool[Array, " episode"]


def evaluate(
    env: FunctionalEnv | AnyTask,
    arm: ArmConfig,
    config: TrainConfig,
    state: TrainState,
    *,
    episodes: int = 100,
    greedy: bool = False,
    seed: int = EVALUATION_SEED,
    on_progress: Callable[[], None] | None = None,
) -> Episodes:
    """Play fresh episodes with a trained policy, which learns nothing from them.

    Every episode is played to its end, on a stream of its own, so that short episodes count no more than long ones.
    Memory starts empty in each of them, and the observation moments stay those of training.

    Args:
        env: a compiled environment or a task that the host steps.
        arm: what was trained.
        config: as in training.
        state: of the trained run.
        episodes: how many.
        greedy: take the likeliest action instead of a drawn one.
        seed: of the episodes: the same one gives every policy the same first states and the same blanks.
        on_progress: called every so often while the host steps environments.

    Raises:
        ConfigError: `episodes` is less than 1.

    Example:
        >>> from thrust_rl import TrainConfig, arm_from, make, train
        >>> env, arm, config = make("CartPole-v1"), arm_from("mlp"), TrainConfig(total_timesteps=2048)
        >>> [result] = train(env, arm, config)
        >>> evaluate(env, arm, config, result.state, episodes=8).episode_return.shape
        (8,)
    """
    require(episodes >= 1, f"episodes is {episodes}: play at least one")
    policy, moments = state.learner.policy, state.moments
    task = Task.of(env, arm)
    if not isinstance(env, FunctionalEnv):
        report = on_progress or (lambda: None)
        return _on_host(env, task, config, policy, moments, episodes, greedy, seed, report)
    streams = environment_keys(jax.random.key(np.uint32(seed)), episodes)
    played = _compiled(env, task, config, greedy, policy, moments, streams)
    returns, lengths, over = (np.asarray(leaf) for leaf in (played.episode_return, played.length, played.over))
    return Episodes(returns.astype(np.float64), lengths.astype(np.int64), ~over)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _compiled(
    env: FunctionalEnv,
    task: Task,
    config: TrainConfig,
    greedy: bool,
    policy: ActorCritic,
    moments: PyTree,
    streams: StreamKeys,
) -> _Playing:
    """All episodes side by side, until the last one is over."""
    env_state, frame = jax.vmap(env.init)(jax.vmap(step_key, in_axes=(0, None))(streams, 0))
    first = _first(task, config, policy, moments, frame)._replace(env_state=env_state)

    def body(carry: tuple[_Playing, Int[Array, ""]]) -> tuple[_Playing, Int[Array, ""]]:
        now, t = carry
        keys = jax.vmap(step_key, in_axes=(0, None))(streams, t + 1)
        memory, action = _act(policy, now, keys, greedy)
        env_state, result = jax.vmap(env.step)(keys, now.env_state, task.actions.to_env(action))
        arrival = Arrival(action, result.reward * config.ppo.reward_scale, jnp.zeros_like(now.over))
        seen = Frame(result.obs, result.blank)
        obs = _inputs(task, config, moments, seen, now.obs, arrival)
        return _Playing(
            env_state,
            obs,
            jnp.zeros_like(now.over),
            memory,
            now.episode_return + jnp.where(now.over, 0.0, result.reward),
            now.length + ~now.over,
            now.over | result.terminated | result.truncated,
        ), t + 1

    def someone_plays(carry: tuple[_Playing, Int[Array, ""]]) -> Bool[Array, ""]:
        return ~jnp.all(carry[0].over)

    played, _ = lax.while_loop(someone_plays, body, (first, jnp.zeros((), jnp.int32)))
    return played


def _act(policy: ActorCritic, now: _Playing, keys: StreamKeys, greedy: bool) -> tuple[Memory, Array]:
    memory, output = jax.vmap(policy.step)(now.memory, now.obs, now.episode_start)
    says = output.distribution
    return memory, says.mode() if greedy else draw_actions(says, action_noise(says, keys))[0]


def _first(task: Task, config: TrainConfig, policy: ActorCritic, moments: PyTree, frame: Frame) -> _Playing:
    """First frames, empty memories."""
    count = frame.blank.shape[0]
    episode_start, numbers = jnp.ones(count, bool), jnp.zeros(count)
    before = jax.tree.map(jnp.asarray, task.inputs.zeros(count))
    arrival = Arrival(jnp.broadcast_to(task.actions.none, (count, *task.actions.none.shape)), numbers, episode_start)
    obs = _inputs(task, config, moments, frame, before, arrival)
    memory = empty_memory(policy, count)
    return _Playing((), obs, episode_start, memory, numbers, jnp.zeros(count, jnp.int32), jnp.zeros(count, bool))


def _inputs(task: Task, config: TrainConfig, moments: PyTree, frame: Frame, before: PyTree, arrival: Arrival) -> PyTree:
    """What the policy consumes, by the moments as training left them."""
    seen = standardize_frames(task.frame, moments, frame.obs, frame.blank) if config.ppo.normalize_obs else frame.obs
    return jax.vmap(lambda one, old, came: assemble(task, one, before=old, arrival=came))(seen, before, arrival)


def _on_host(
    env: AnyTask,
    task: Task,
    config: TrainConfig,
    policy: ActorCritic,
    moments: PyTree,
    episodes: int,
    greedy: bool,
    seed: int,
    report: Callable[[], None],
) -> Episodes:
    """Rounds of at most `num_envs` environments, each of which plays its first episode under a seed of its own."""
    seeds = range(seed, seed + episodes, config.num_envs)
    lasting = isinstance(env, HostTask) and env.workers > 0  # processes that build new environments at every `begin`
    rounds, restarts = [], 0
    for group in [seeds] if lasting else [[each] for each in seeds]:
        envs = env.start(config.num_envs)
        try:
            rounds += [_round(envs, task, config, policy, moments, greedy, each, report) for each in group]
            restarts += envs.restarts()
        finally:
            envs.close()
    columns = zip(*((each.episode_return, each.length, each.cut) for each in rounds), strict=True)
    returns, length, cut = (np.concatenate(column)[:episodes] for column in columns)
    return Episodes(returns, length, cut, restarts)


def _round(
    envs: HostedEnvs,
    task: Task,
    config: TrainConfig,
    policy: ActorCritic,
    moments: PyTree,
    greedy: bool,
    seed: int,
    report: Callable[[], None],
) -> Episodes:
    """The first episode of every environment."""
    receive, decide = host_calls(task, config, greedy)
    frames = envs.begin(seed)
    streams = environment_keys(jax.random.key(np.uint32(seed)), config.num_envs)
    now = receive(policy, moments, Frame(frames.obs, frames.info["blank"]), None, None)
    returns, length = np.zeros(config.num_envs), np.zeros(config.num_envs, np.int64)
    over = np.zeros(config.num_envs, bool)
    for t in range(HOST_STEPS):
        now, action = decide(policy, now, streams, np.int32(t + 1))
        if t % REPORT_EVERY == 0:
            report()
        hosted = envs.step(task.actions.to_env(np.asarray(action)))
        returns += np.where(over, 0.0, hosted.result.reward)
        length += ~over
        over = over | hosted.result.over
        if over.all():
            break
        reward = hosted.result.reward * np.float32(config.ppo.reward_scale)
        arrival = Arrival(action, jnp.asarray(reward), jnp.asarray(hosted.episode_start))
        frame = Frame(hosted.frames.obs, hosted.frames.info["blank"])
        now = receive(policy, moments, frame, now, arrival)
    return Episodes(returns, length, ~over)


@functools.lru_cache(maxsize=16)
def host_calls(task: Task, config: TrainConfig, greedy: bool) -> Any:
    """The two compiled calls of a step."""

    @jax.jit
    def receive(
        policy: ActorCritic, moments: PyTree, frame: Frame, now: _Playing | None, arrival: Arrival | None
    ) -> _Playing:
        if now is None or arrival is None:
            return _first(task, config, policy, moments, frame)
        obs = _inputs(task, config, moments, frame, now.obs, arrival)
        return now._replace(obs=obs, episode_start=arrival.episode_start)

    @jax.jit
    def decide(policy: ActorCritic, now: _Playing, streams: StreamKeys, t: Array) -> tuple[_Playing, Array]:
        keys = jax.vmap(step_key, in_axes=(0, None))(streams, t)
        memory, action = _act(policy, now, keys, greedy)
        return now._replace(memory=memory), action

    return receive, decide
