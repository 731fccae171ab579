"""The training loop of the flickering examples, written by hand from the library's objects.

One loop serves both arms. What differs between them (whose memory, which buffer, which trainer) is in `LSTMArm` and
`MLPArm`; everything else, down to the blanks that the sensor draws, is the same. docs/tutorials/3-memory-and-pomdps.md
explains each step.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from thrust_rl import ARMS as PRESETS
from thrust_rl import (
    EnvPool,
    FlickeringCartPole,
    LearningCurve,
    LSTMConfig,
    LSTMPolicy,
    MLPConfig,
    MLPPolicy,
    ObsNormalizer,
    PPOConfig,
    PPOTrainer,
    RecurrentPPOTrainer,
    RecurrentRolloutBuffer,
    RolloutBuffer,
    TrainConfig,
    annealed_learning_rate,
    sample_actions,
)

LOG_LINES = 10  # per arm


class LSTMArm:
    """A policy with memory, and the memory it acts with."""

    def __init__(self, obs_dim: int, action_dim: int, config: TrainConfig, seed: int) -> None:
        policy = LSTMPolicy(obs_dim, action_dim, LSTMConfig(seed=seed))
        self.policy = policy
        self.trainer = RecurrentPPOTrainer(config.ppo, policy)
        self.buffer = RecurrentRolloutBuffer(config.num_steps, config.num_envs, obs_dim, policy.config.hidden_dim)
        self.cold = config.window_start == "cold"
        self.state = policy.empty_memory(config.num_envs)  # m_t, leaves [env, hidden]

    def act(self, obs: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Consume o_t, move the memory on, draw the actions."""
        logits, values, self.state = self.policy.forward_step(obs, self.state)
        actions, log_probs = sample_actions(logits, seed=self.policy.config.seed, step=step)
        return actions, log_probs, values

    def values(self, obs: np.ndarray) -> np.ndarray:
        """V of these observations under the present memory, which stays as it is."""
        return self.policy.forward_step(obs, self.state)[1]

    def forget(self, over: np.ndarray) -> None:
        """Empty the memory of the environments whose episode ended, in whichever way."""
        self.state.hidden[over] = 0.0
        self.state.cell[over] = 0.0

    def next_window(self) -> None:
        """Acting and learning must begin a window with the same memory: none (cold), or what acting ended with."""
        if self.cold:
            self.state = self.policy.empty_memory(self.buffer.num_envs)
        else:
            self.buffer.seed_warm_start(self.buffer.num_steps - 1, self.state.hidden, self.state.cell)
        self.buffer.reset()


class MLPArm:
    """A policy that sees the present frame only."""

    def __init__(self, obs_dim: int, action_dim: int, config: TrainConfig, seed: int) -> None:
        self.policy = MLPPolicy(obs_dim, action_dim, MLPConfig(seed=seed))
        self.trainer = PPOTrainer(config.ppo, self.policy)
        self.buffer = RolloutBuffer(config.num_steps, config.num_envs, obs_dim)

    def act(self, obs: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw the actions; the policy counts the steps itself."""
        return self.policy.get_action(obs)

    def values(self, obs: np.ndarray) -> np.ndarray:
        """V of these observations."""
        return self.policy.predict_values(obs)

    def forget(self, over: np.ndarray) -> None:
        """There is nothing to forget."""

    def next_window(self) -> None:
        """Empty the buffer."""
        self.buffer.reset()


ARMS = {"lstm": LSTMArm, "mlp": MLPArm}


def train_arm(
    name: str, make_env: Callable[[], FlickeringCartPole], config: TrainConfig, seed: int
) -> tuple[LearningCurve, float | None]:
    """Train one arm from scratch, with a log line now and then.

    Returns:
        The learning curve, and environment steps per second; the first update, which compiles, does not count.
    """
    pool = EnvPool(make_env, config.num_envs, seed=seed)  # the seed fixes the blanks: every arm meets the same
    obs_dim, action_dim = pool.observation_space.shape[0], int(pool.action_space.n)
    arm = ARMS[name](obs_dim, action_dim, config, seed)
    normalizer = ObsNormalizer(obs_dim)
    first_rate = arm.trainer.learning_rate
    curve = LearningCurve()
    clock = Clock(config.steps_per_update)

    obs = normalizer.normalize(pool.reset())
    returns = np.zeros(config.num_envs)  # raw, of the episodes that run
    for update in range(config.num_updates):
        finished = np.full((config.num_steps, config.num_envs), np.nan)
        for t in range(config.num_steps):
            actions, log_probs, values = arm.act(obs, update * config.num_steps + t)
            result = pool.step(actions)
            successors = normalizer.normalize(pool.reset_where(result.over))
            final_values = None
            if result.truncated.any():  # valued before the memory of their episodes is gone
                final_values = arm.values(normalizer.normalize(result.obs, update=False))
            arm.buffer.add(
                t,
                obs,
                actions,
                result.reward * config.ppo.reward_scale,
                values,
                log_probs,
                result.terminated,
                result.truncated,
                final_values,
            )
            arm.forget(result.over)
            obs = successors

            returns += result.reward
            finished[t, result.over] = returns[result.over]
            returns[result.over] = 0.0
            arm.trainer.increment_episodes(int(result.over.sum()))

        arm.buffer.compute_advantages(arm.values(obs), config.ppo.gamma, config.ppo.gae_lambda)
        rate = annealed_learning_rate(first_rate, update=update, num_updates=config.num_updates)
        arm.trainer.set_learning_rate(rate)
        arm.trainer.train_step(arm.buffer)
        arm.next_window()

        curve.add((update + 1) * config.steps_per_update, finished)
        clock.tick()
        if is_logged(update, config.num_updates):
            log(name, curve, clock)
    pool.close()
    return curve, clock.steps_per_second


class Clock:
    """Environment steps per second, from the end of the first update on."""

    def __init__(self, steps_per_update: int) -> None:
        self.steps_per_update = steps_per_update
        self.updates = 0
        self.first = self.last = 0.0

    def tick(self) -> None:
        """An update is complete."""
        self.updates += 1
        self.last = time.perf_counter()
        if self.updates == 1:
            self.first = self.last

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.updates * self.steps_per_update

    @property
    def steps_per_second(self) -> float | None:
        """None before the second update."""
        return None if self.updates < 2 else (self.updates - 1) * self.steps_per_update / (self.last - self.first)


def is_logged(update: int, num_updates: int) -> bool:
    """About `LOG_LINES` updates of a run, the last one among them."""
    return (update + 1) % max(1, num_updates // LOG_LINES) == 0 or update + 1 == num_updates


def log(name: str, curve: LearningCurve, clock: Clock) -> None:
    """One line about an arm on its way."""
    print(
        f"{name:>4}  {clock.steps:>9,} steps  mean return {number(curve.final):>6}"
        f"  {speed(clock.steps_per_second)} steps/s",
        flush=True,
    )


def number(value: float | None) -> str:
    """A return, or a dash before any episode has ended."""
    return "-" if value is None else f"{value:.1f}"


def speed(steps_per_second: float | None) -> str:
    """A rate, or a dash where there is none yet."""
    return "-" if steps_per_second is None else f"{steps_per_second:,.0f}"


def arguments(description: str) -> argparse.ArgumentParser:
    """The command line that the examples share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--arm", choices=[*ARMS, "both"], default="both", help="what to train")
    parser.add_argument("--total-timesteps", type=int, default=500_000, help="environment steps per arm")
    parser.add_argument("--num-envs", type=int, default=16, help="environments side by side")
    parser.add_argument("--num-steps", type=int, default=128, help="length of a window")
    parser.add_argument(
        "--envs-per-minibatch",
        type=int,
        default=PPOConfig.envs_per_minibatch,
        help="whole windows in a minibatch of the arm with memory",
    )
    parser.add_argument(
        "--batch-size", type=int, default=PPOConfig.batch_size, help="transitions in a minibatch of the other arm"
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--flicker-prob", type=float, default=0.5, help="share of blank frames")
    parser.add_argument(
        "--window-start",
        choices=["cold", "stored"],
        default="cold",
        help="memory at a window's start: empty, or carried on",
    )
    return parser


def main(parser: argparse.ArgumentParser, args: argparse.Namespace, burst_len: float | None = None) -> None:
    """Train the arms that were asked for, then print their `final` and `best`, and the contrast."""
    names = list(ARMS) if args.arm == "both" else [args.arm]

    def make_env() -> FlickeringCartPole:
        return FlickeringCartPole(args.flicker_prob, burst_len)

    try:
        config = TrainConfig(
            total_timesteps=args.total_timesteps,
            num_envs=args.num_envs,
            num_steps=args.num_steps,
            window_start=args.window_start,
            ppo=PPOConfig(envs_per_minibatch=args.envs_per_minibatch, batch_size=args.batch_size),
        )
        for name in names:  # a size that does not divide is refused before anything is trained
            config.rows_per_minibatch(PRESETS[name])
        results = {name: train_arm(name, make_env, config, args.seed) for name in names}
    except ValueError as error:  # a setting out of range: the message says which, and the remedy
        parser.error(str(error))
    bursts = "independent blanks" if burst_len is None else f"blank runs of {burst_len:g} frames on average"
    print(f"\nFlickering cart-pole, {args.flicker_prob:.0%} blank, {bursts}, seed {args.seed}:")
    for name, (curve, rate) in results.items():
        print(f"{name:>4}  final {number(curve.final)}  best {number(curve.best)}  ({speed(rate)} steps/s)")
    if len(results) == 2:
        print(contrast(results["lstm"][0].final, results["mlp"][0].final))


def contrast(lstm: float | None, mlp: float | None) -> str:
    """What one seed says about memory."""
    if lstm is None or mlp is None:
        return "An arm finished no episode: raise --total-timesteps."
    return (
        f"Memory makes a difference of {lstm - mlp:+.1f} in final return on this seed;"
        " `thrust compare` asks several seeds."
    )
