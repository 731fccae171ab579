"""Evaluation apart from training: fresh episodes with fixed seeds, the same ones for every arm and training seed."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree
from numpy.typing import NDArray

from thrust_rl.config import ArmConfig, TrainConfig, require
from thrust_rl.envs.batch import Frames
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.hosted import Hosted, HostedEnvs
from thrust_rl.envs.task import AnyTask, HostTask
from thrust_rl.envs.tasks_only import require_task
from thrust_rl.maths.keys import environment_keys, step_key
from thrust_rl.maths.sampling import action_noise, draw_actions
from thrust_rl.policies.actor_critic import ActorCritic, empty_memory
from thrust_rl.policies.inputs import Arrival, Task, assemble
from thrust_rl.rollout.normalize import standardize_frames
from thrust_rl.training.loop import TrainState
from thrust_rl.types import Frame, Memory, StreamKeys

EVALUATION_SEED = 1_000_003  # of the episodes; a training run with this very seed would see them
EVALUATION_STEPS = 10_000  # of an episode: more than any of Gymnasium, MiniGrid and POPGym has, and seconds on the host
MOST_STEPS = 2**31 - 1  # that a counter holds
REPORT_EVERY = 256  # steps


class Episodes(NamedTuple):
    """What a policy got in evaluation episodes, one row an episode."""

    episode_return: NDArray[np.float64]  # raw
    length: NDArray[np.int64]
    cut: NDArray[np.bool_]  # by the evaluation, not by the environment
    env_restarts: int = 0  # host environments that failed and were replaced: their episodes ended there


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Player:
    """A trained policy at its task, and how it plays; what it has learned are the leaves."""

    task: Task = dataclasses.field(metadata={"static": True})
    config: TrainConfig = dataclasses.field(metadata={"static": True})
    greedy: bool = dataclasses.field(metadata={"static": True})
    policy: ActorCritic
    moments: PyTree

    @staticmethod
    def of(
        env: FunctionalEnv | AnyTask, arm: ArmConfig, *, config: TrainConfig, state: TrainState, greedy: bool
    ) -> "Player":
        """As a run left it."""
        return Player(Task.of(env, arm), config, greedy, state.learner.policy, state.moments)


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
    max_steps: int = EVALUATION_STEPS,
    on_progress: Callable[[], None] | None = None,
) -> Episodes:
    """Play fresh episodes with a trained policy, which learns nothing from them.

    Every episode is played to its end, on a stream of its own, so that short episodes count no more than long ones.
    Memory starts empty in each of them, and the observation moments stay those of training. An episode that has not
    ended after `max_steps` is cut there: its return is what it got by then.

    Args:
        env: a compiled environment or a task that the host steps.
        arm: what was trained.
        config: as in training.
        state: of the trained run.
        episodes: how many.
        greedy: take the likeliest action instead of a drawn one.
        seed: of the episodes: the same one gives every policy the same first states and the same blanks.
        max_steps: the most of an episode, compiled or not; a lower limit of the environment's own stays.
        on_progress: called every so often while the host steps environments.

    Raises:
        TypeError: `env` is no environment of the library and no task.
        ConfigError: `episodes` or `max_steps` is less than 1, or a counter cannot hold the latter.

    Example:
        >>> from thrust_rl import TrainConfig, arm_from, make, train
        >>> env, arm, config = make("CartPole-v1"), arm_from("mlp"), TrainConfig(total_timesteps=2048)
        >>> [result] = train(env, arm, config)
        >>> evaluate(env, arm, config, result.state, episodes=8).episode_return.shape
        (8,)
    """
    require_task(env)
    require(episodes >= 1, f"episodes is {episodes}: play at least one")
    require(1 <= max_steps <= MOST_STEPS, f"max_steps is {max_steps}: it must lie in [1, {MOST_STEPS}]")
    player = Player.of(env, arm, config=config, state=state, greedy=greedy)
    if not isinstance(env, FunctionalEnv):
        report = on_progress or (lambda: None)
        return _on_host(env, player, episodes=episodes, seed=seed, max_steps=max_steps, report=report)
    streams = environment_keys(jax.random.key(np.uint32(seed)), episodes)
    played = _compiled(env, player, streams=streams, max_steps=np.int32(max_steps))
    returns, lengths, over = (np.asarray(leaf) for leaf in (played.episode_return, played.length, played.over))
    return Episodes(returns.astype(np.float64), lengths.astype(np.int64), ~over)


@functools.partial(jax.jit, static_argnums=0)
def _compiled(
    env: FunctionalEnv, player: Player, *, streams: StreamKeys, max_steps: Int[Array, ""] | np.int32
) -> _Playing:
    """All episodes side by side, until the last one is over or cut."""
    env_state, frame = jax.vmap(env.init)(jax.vmap(step_key, in_axes=(0, None))(streams, 0))
    first = _first(player, frame)._replace(env_state=env_state)

    def body(carry: tuple[_Playing, Int[Array, ""]]) -> tuple[_Playing, Int[Array, ""]]:
        now, t = carry
        keys = jax.vmap(step_key, in_axes=(0, None))(streams, t + 1)
        memory, action = _act(player, now, keys)
        env_state, result = jax.vmap(env.step)(keys, now.env_state, player.task.actions.to_env(action))
        reward = result.reward * player.config.ppo.reward_scale
        arrival = Arrival(action, reward, jnp.zeros_like(now.over))
        return _Playing(
            env_state,
            _inputs(player, Frame(result.obs, result.blank), before=now.obs, arrival=arrival),
            jnp.zeros_like(now.over),
            memory,
            now.episode_return + jnp.where(now.over, 0.0, result.reward),
            now.length + ~now.over,
            now.over | result.terminated | result.truncated,
        ), t + 1

    def someone_plays(carry: tuple[_Playing, Int[Array, ""]]) -> Bool[Array, ""]:
        return ~jnp.all(carry[0].over) & (carry[1] < max_steps)

    played, _ = lax.while_loop(someone_plays, body, (first, jnp.zeros((), jnp.int32)))
    return played


def _act(player: Player, now: _Playing, keys: StreamKeys) -> tuple[Memory, Array]:
    memory, output = jax.vmap(player.policy.step)(now.memory, now.obs, now.episode_start)
    says = output.distribution
    return memory, says.mode() if player.greedy else draw_actions(says, action_noise(says, keys))[0]


def _first(player: Player, frame: Frame) -> _Playing:
    """First frames, empty memories."""
    task, count = player.task, frame.blank.shape[0]
    episode_start, numbers = jnp.ones(count, bool), jnp.zeros(count)
    before = jax.tree.map(jnp.asarray, task.inputs.zeros(count))
    arrival = Arrival(jnp.broadcast_to(task.actions.none, (count, *task.actions.none.shape)), numbers, episode_start)
    obs = _inputs(player, frame, before=before, arrival=arrival)
    memory = empty_memory(player.policy, count)
    return _Playing((), obs, episode_start, memory, numbers, jnp.zeros(count, jnp.int32), jnp.zeros(count, bool))


def _inputs(player: Player, frame: Frame, *, before: PyTree, arrival: Arrival) -> PyTree:
    """What the policy consumes, by the moments as training left them."""
    task, seen = player.task, frame.obs
    if player.config.ppo.normalize_obs:
        seen = standardize_frames(task.frame, player.moments, seen, frame.blank)
    return jax.vmap(lambda one, old, came: assemble(task, one, before=old, arrival=came))(seen, before, arrival)


def _on_host(
    env: AnyTask, player: Player, *, episodes: int, seed: int, max_steps: int, report: Callable[[], None]
) -> Episodes:
    """Rounds of at most `num_envs` environments, each of which plays its first episode under a seed of its own."""
    seeds = range(seed, seed + episodes, player.config.num_envs)
    lasting = isinstance(env, HostTask) and env.workers > 0  # processes that build new environments at every `begin`
    rounds, restarts = [], 0
    for group in [seeds] if lasting else [[each] for each in seeds]:
        envs = env.start(player.config.num_envs)
        try:
            rounds += [_round(player, envs, seed=each, max_steps=max_steps, report=report) for each in group]
            restarts += envs.restarts()
        finally:
            envs.close()
    columns = zip(*((each.episode_return, each.length, each.cut) for each in rounds), strict=True)
    returns, length, cut = (np.concatenate(column)[:episodes] for column in columns)
    return Episodes(returns, length, cut, restarts)


def _round(player: Player, envs: HostedEnvs, *, seed: int, max_steps: int, report: Callable[[], None]) -> Episodes:
    """The first episode of every environment."""
    frames, count = envs.begin(seed), player.config.num_envs
    returns, length, over = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, bool)
    for t, (_, came) in enumerate(play(player, envs, frames=frames, seed=seed, max_steps=max_steps)):
        if t % REPORT_EVERY == 0:
            report()
        returns += np.where(over, 0.0, came.result.reward)
        length += ~over
        over = over | came.result.over
        if over.all():
            break
    return Episodes(returns, length, ~over)


def play(
    player: Player, envs: HostedEnvs, *, frames: Frames, seed: int, max_steps: int
) -> Iterator[tuple[NDArray[Any], Hosted]]:
    """Act in host environments from empty memories: the actions as they take them, and what came of each step.

    Args:
        player: who acts.
        envs: which have just begun; the next step is taken when the next item is asked for.
        frames: with which they did.
        seed: of the actions that are drawn.
        max_steps: how many steps, at most.
    """
    frame = Frame(frames.obs, frames.info["blank"])
    streams = environment_keys(jax.random.key(np.uint32(seed)), len(frame.blank))
    now = begin(player, frame)
    for t in range(max_steps):
        now, action = _decide(player, now, streams, np.int32(t + 1))
        chosen = player.task.actions.to_env(np.asarray(action))
        came = envs.step(chosen)
        yield chosen, came
        reward = came.result.reward * np.float32(player.config.ppo.reward_scale)
        arrival = Arrival(action, jnp.asarray(reward), jnp.asarray(came.episode_start))
        now = _receive(player, now, Frame(came.frames.obs, came.frames.info["blank"]), arrival)


begin = jax.jit(_first)


@jax.jit
def _decide(player: Player, now: _Playing, streams: StreamKeys, t: Array) -> tuple[_Playing, Array]:
    memory, action = _act(player, now, jax.vmap(step_key, in_axes=(0, None))(streams, t))
    return now._replace(memory=memory), action


@jax.jit
def _receive(player: Player, now: _Playing, frame: Frame, arrival: Arrival) -> _Playing:
    obs = _inputs(player, frame, before=now.obs, arrival=arrival)
    return now._replace(obs=obs, episode_start=arrival.episode_start)
