"""One evaluation episode, step by step: what the policy saw, did and got, and where the physics was."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.envs.batch import CompiledBatch
from thrust_rl.envs.cartpole import CartPoleState
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.hosted import HostedEnvs, SteppedInProcess
from thrust_rl.envs.task import AnyTask
from thrust_rl.maths.keys import environment_keys
from thrust_rl.policies.inputs import Arrival, Task
from thrust_rl.training.evaluate import EVALUATION_SEED, host_calls
from thrust_rl.training.loop import TrainState
from thrust_rl.types import Frame

MAX_STEPS = 1000  # of the episode: what comes later is not recorded
MAX_NUMBERS = 256  # in an observation: larger ones are not recorded


class Recording(NamedTuple):
    """An episode; row t holds o_t, a_t, r_{t+1} and the hidden state that o_t is about."""

    obs: NDArray[Any] | None  # `[time, ...]`, as seen, before normalizing; None where it is large or no array
    blank: NDArray[np.bool_]  # `[time]`
    action: NDArray[Any]  # `[time, ...]`, as the environment takes it
    reward: NDArray[np.float32]  # `[time]`, raw
    state: NDArray[np.float32] | None  # `[time, 4]`: position, velocity, angle, angular velocity; cart-pole only


def record(
    env: FunctionalEnv | AnyTask,
    arm: ArmConfig,
    config: TrainConfig,
    state: TrainState,
    *,
    greedy: bool = False,
    seed: int = EVALUATION_SEED,
) -> Recording:
    """Play the first episode of `evaluate` again, and keep it.

    The stream is that of the seed alone: two policies meet the same first state and the same blanks.

    Args:
        env: a compiled environment or a task that the host steps.
        arm: what was trained.
        config: as in training.
        state: of the trained run.
        greedy: take the likeliest action instead of a drawn one.
        seed: of the evaluation.

    Example:
        >>> from thrust_rl import TrainConfig, arm_from, make, train
        >>> env, arm, config = make("CartPole-v1"), arm_from("mlp"), TrainConfig(total_timesteps=2048)
        >>> [result] = train(env, arm, config)
        >>> episode = record(env, arm, config, result.state)
        >>> episode.obs.shape == (len(episode.reward), 4) and bool((episode.obs == episode.state).all())
        True
    """
    task = Task.of(env, arm)
    batch = CompiledBatch(env, 1) if isinstance(env, FunctionalEnv) else None
    envs = SteppedInProcess(batch) if batch is not None else env.start(1)  # type: ignore[union-attr]
    try:
        return _played(envs, batch, task, config, state, greedy, seed)
    finally:
        envs.close()


def _played(
    envs: HostedEnvs,
    batch: CompiledBatch | None,
    task: Task,
    config: TrainConfig,
    state: TrainState,
    greedy: bool,
    seed: int,
) -> Recording:
    receive, decide = host_calls(task, config, greedy)
    policy, moments, streams = state.learner.policy, state.moments, environment_keys(jax.random.key(np.uint32(seed)), 1)
    frames = envs.begin(seed)
    frame = Frame(frames.obs, frames.info["blank"])
    now = receive(policy, moments, frame, None, None)
    rows: list[tuple[Any, ...]] = []
    for t in range(MAX_STEPS):
        now, action = decide(policy, now, streams, np.int32(t + 1))
        chosen, hidden = task.actions.to_env(np.asarray(action)), _cartpole_state(batch)
        hosted = envs.step(chosen)
        rows.append((_small(task, frame.obs), frame.blank[0], chosen[0], hosted.result.reward[0], hidden))
        if hosted.result.over.all():
            break
        frame = Frame(hosted.frames.obs, hosted.frames.info["blank"])
        reward = hosted.result.reward * np.float32(config.ppo.reward_scale)
        arrival = Arrival(action, jnp.asarray(reward), jnp.asarray(hosted.episode_start))
        now = receive(policy, moments, frame, now, arrival)
    obs, blank, actions, rewards, states = zip(*rows, strict=True)
    return Recording(
        None if obs[0] is None else np.stack(obs),
        np.array(blank, bool),
        np.stack(actions),
        np.array(rewards, np.float32),
        None if states[0] is None else np.stack(states),
    )


def _small(task: Task, obs: Any) -> NDArray[Any] | None:
    """The only environment's observation, if it is one array and not large."""
    return np.array(obs[0]) if task.frame.is_array and obs[0].size <= MAX_NUMBERS else None


def _cartpole_state(batch: CompiledBatch | None) -> NDArray[np.float32] | None:
    physics = batch.streams.env_state.physics if batch is not None and batch.streams is not None else None
    return np.array([leaf[0] for leaf in physics], np.float32) if isinstance(physics, CartPoleState) else None
