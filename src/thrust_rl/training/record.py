"""One evaluation episode, step by step: what the policy saw, did and got, and where the physics was."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.envs.batch import CompiledBatch, Frames
from thrust_rl.envs.cartpole import CartPoleState
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.hosted import HostedEnvs, SteppedInProcess
from thrust_rl.envs.task import AnyTask
from thrust_rl.envs.tasks_only import require_task
from thrust_rl.training.evaluate import EVALUATION_SEED, EVALUATION_STEPS, Player, play
from thrust_rl.training.loop import TrainState

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
    max_steps: int = EVALUATION_STEPS,
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
        max_steps: of its episodes, which are cut there.

    Raises:
        TypeError: `env` is no environment of the library and no task.

    Example:
        >>> from thrust_rl import TrainConfig, arm_from, make, train
        >>> env, arm, config = make("CartPole-v1"), arm_from("mlp"), TrainConfig(total_timesteps=2048)
        >>> [result] = train(env, arm, config)
        >>> episode = record(env, arm, config, result.state)
        >>> episode.obs.shape == (len(episode.reward), 4) and bool((episode.obs == episode.state).all())
        True
    """
    require_task(env)
    player = Player.of(env, arm, config=config, state=state, greedy=greedy)
    batch = CompiledBatch(env, 1) if isinstance(env, FunctionalEnv) else None
    envs = SteppedInProcess(batch) if batch is not None else env.start(1)  # type: ignore[union-attr]
    try:
        return _played(player, envs, batch=batch, seed=seed, max_steps=min(max_steps, MAX_STEPS))
    finally:
        envs.close()


def _played(player: Player, envs: HostedEnvs, *, batch: CompiledBatch | None, seed: int, max_steps: int) -> Recording:
    frames, rows = envs.begin(seed), []
    seen = _seen(player, frames, batch=batch)
    for action, came in play(player, envs, frames=frames, seed=seed, max_steps=max_steps):
        rows.append((*seen, action[0], came.result.reward[0]))
        if came.result.over.all():
            break
        seen = _seen(player, came.frames, batch=batch)
    obs, blank, states, actions, rewards = zip(*rows, strict=True)
    return Recording(
        None if obs[0] is None else np.stack(obs),
        np.array(blank, bool),
        np.stack(actions),
        np.array(rewards, np.float32),
        None if states[0] is None else np.stack(states),
    )


def _seen(player: Player, frames: Frames, *, batch: CompiledBatch | None) -> tuple[Any, Any, Any]:
    """Of the only environment: what is seen, if one array and not large; whether it was blanked; the hidden state."""
    small = player.task.frame.is_array and frames.obs[0].size <= MAX_NUMBERS
    return np.array(frames.obs[0]) if small else None, frames.info["blank"][0], _cartpole_state(batch)


def _cartpole_state(batch: CompiledBatch | None) -> NDArray[np.float32] | None:
    physics = batch.streams.env_state.physics if batch is not None and batch.streams is not None else None
    return np.array([leaf[0] for leaf in physics], np.float32) if isinstance(physics, CartPoleState) else None
