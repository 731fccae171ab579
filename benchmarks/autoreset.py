"""How far does acting where a reset takes a step lie from acting in separate environments? For docs/decisions/0015.

    python benchmarks/autoreset.py

A policy that has not learned yet, or that separate environments trained for a while, acts in separate environments and
in a vector environment in the NEXT_STEP mode of which it is not known that it can be told to reset between two steps,
under the same weights and the same seed. Their transitions are laid side by side, environment by environment, up to the
first action that comes out differently: from there on they live in different episodes. No clock is read, so the table
is the same on a busy machine.

transitions: share of the steps in NEXT_STEP that are no resets. 1st, 6th, largest: difference of a standardized number
(of every frame the one that differs most; median of the first and of the sixth 128 transitions, and the largest of
all). target: largest difference of a value target, beside their standard deviation, in episodes that end in their
window in both. action: environments in which an action came out differently.
"""

import argparse
import functools
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from thrust_rl import HostTask, TrainConfig, VectorTask, arm_from, train
from thrust_rl.maths.moments import Moments
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.advantages import rollout_advantages
from thrust_rl.rollout.hosted import HostCollector
from thrust_rl.training.loop import initial_learner

NUM_ENVS, NUM_STEPS, WINDOWS = 16, 128, 6
MORE_WINDOWS = 2  # of NEXT_STEP, whose windows hold fewer transitions


class Timed(gymnasium.Env):
    """Shows a lot and the time; an episode takes one of two numbers of steps, drawn anew for each or once for all."""

    def __init__(self, lengths: tuple[int, int], *, once: bool) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 1000.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.lengths, self.once = lengths, once

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self.once:
            self.length = self.lengths[self.np_random.integers(2)]
        self.lot, self.time = self.np_random.uniform(), 0
        return self._obs(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self._obs(), float(action), self.time == self.length, False, {}

    def _obs(self) -> Any:
        return np.array([self.lot, self.time], np.float32)


def in_step(build: Any, num_envs: int) -> VectorWrapper:
    """In a wrapper, as anybody's vector of which it is not known that it can be told to reset between two steps."""
    return VectorWrapper(SyncVectorEnv([build] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP))


ENVIRONMENTS = {
    "`CartPole-v1`": functools.partial(gymnasium.make, "CartPole-v1"),
    "Episodes of 3 or 4 steps, by lot": functools.partial(Timed, (3, 4), once=False),
    "Environments of 3 steps, others of 30": functools.partial(Timed, (3, 30), once=True),
}
TASKS = {
    name: (
        HostTask(name, build),
        VectorTask(name, functools.partial(in_step, build)),
    )
    for name, build in ENVIRONMENTS.items()
}


class Case(NamedTuple):
    """A row."""

    env: str
    arm: str
    is_trained: bool
    window_start: str
    moments: str  # "run", from nothing or from where training left them; or "held", there


CARTPOLE, BY_LOT, MIXED = ENVIRONMENTS
CASES = (
    Case(CARTPOLE, "mlp", False, "stored", "run"),
    Case(BY_LOT, "mlp", False, "stored", "run"),
    Case(MIXED, "mlp", False, "stored", "run"),
    Case(CARTPOLE, "lstm", False, "cold", "run"),
    Case(CARTPOLE, "mlp", True, "stored", "run"),
    Case(CARTPOLE, "mlp", True, "stored", "held"),
    Case(CARTPOLE, "lstm", True, "stored", "run"),
    Case(CARTPOLE, "lstm", True, "stored", "held"),
    Case(CARTPOLE, "lstm", True, "cold", "run"),
    Case(CARTPOLE, "lstm", True, "cold", "held"),
)


class Life(NamedTuple):
    """What one environment lived through, resets left out; leaves `[transition, ...]`."""

    obs: Any
    action: Any
    over: Any
    target: Any  # NaN where the window ends before the episode: then it depends on where that is


class Gap(NamedTuple):
    """Between two lives, up to the first action that differs."""

    standardized: Any  # of every frame, in the coordinate that differs most
    target: Any  # of every frame whose episode ended in both windows
    targets: Any  # themselves
    differs: bool  # an action did


@functools.cache
def trained(arm: str, window_start: str, steps: int) -> Any:
    """Weights and moments that so many steps in separate environments leave."""
    config = TrainConfig(steps, NUM_ENVS, NUM_STEPS, window_start)
    [result] = train(TASKS[CARTPOLE][0], arm, config)
    return result.state.learner.policy, result.state.moments


targets_of = jax.jit(lambda rollout: rollout_advantages(rollout, gamma=0.99, gae_lambda=0.95).value_target)


def lives(task: HostTask | VectorTask, case: Case, seed: int, steps: int, windows: int) -> tuple[list[Life], float]:
    """Of all environments in so many windows, and the share of steps that were transitions."""
    config = TrainConfig(NUM_ENVS * NUM_STEPS, NUM_ENVS, NUM_STEPS, case.window_start)
    what = Task.of(task, arm_from(case.arm))
    policy, moments = first(what, config, jax.random.key(seed)).policy, None
    if case.is_trained:
        policy, moments = trained(case.arm, case.window_start, steps)
    if case.moments == "held":
        moments = Moments(moments.mean, moments.var, np.float32(1e12))
    envs = task.start(NUM_ENVS)
    try:
        collector = HostCollector(envs, what, policy, config, seed=seed, moments=moments)
        rollouts = [jax.tree.map(np.asarray, collector.collect(policy).rollout) for _ in range(windows)]
    finally:
        envs.close()
    pieces = [windows_of(rollout) for rollout in rollouts]
    mine = [Life(*map(np.concatenate, zip(*(piece[env] for piece in pieces), strict=True))) for env in range(NUM_ENVS)]
    return mine, sum(len(life.over) for life in mine) / (NUM_ENVS * NUM_STEPS * windows)


first = jax.jit(initial_learner, static_argnums=(0, 1))


def windows_of(rollout: Any) -> list[Life]:
    """What every environment lived through in a window."""
    over, target = rollout.terminated | rollout.truncated, np.asarray(targets_of(rollout))
    ends_here = np.logical_or.accumulate(over[:, ::-1], axis=1)[:, ::-1]
    target = np.where(ends_here, target, np.nan)
    valid = np.ones_like(over) if isinstance(rollout.valid, tuple) else rollout.valid
    every = Life(rollout.obs, rollout.action, over, target)
    return [Life(*(leaf[env][valid[env]] for leaf in every)) for env in range(NUM_ENVS)]


def gap(mine: Life, theirs: Life) -> Gap:
    """Lay two lives side by side."""
    length = min(WINDOWS * NUM_STEPS, len(mine.over), len(theirs.over))
    mine, theirs = (Life(*(leaf[:length] for leaf in life)) for life in (mine, theirs))
    other = np.flatnonzero(mine.action != theirs.action)
    until = int(other[0]) if len(other) else length
    ended = np.logical_or.accumulate(mine.over[:until][::-1])[::-1]  # before the first action that differs
    both = ended & np.isfinite(mine.target[:until]) & np.isfinite(theirs.target[:until])
    return Gap(
        standardized=np.abs(mine.obs - theirs.obs)[: until + 1].max(axis=1),
        target=np.abs(mine.target - theirs.target)[:until][both],
        targets=theirs.target[:until][both],
        differs=len(other) > 0,
    )


def row(case: Case, seeds: int, steps: int) -> str:
    """Measure a case."""
    separate, vector = TASKS[case.env]
    gaps, share = [], 1.0
    for seed in range(seeds):
        theirs, _ = lives(separate, case, seed, steps, WINDOWS)
        mine, share = lives(vector, case, seed, steps, WINDOWS + MORE_WINDOWS)
        gaps += [gap(*both) for both in zip(mine, theirs, strict=True)]
    in_first, in_last = (
        np.concatenate([g.standardized[w * NUM_STEPS : (w + 1) * NUM_STEPS] for g in gaps]) for w in (0, WINDOWS - 1)
    )
    targets, spread = (np.concatenate(columns) for columns in zip(*((g.target, g.targets) for g in gaps), strict=True))
    cells = [
        case.env,
        f"`{case.arm}`, {'trained' if case.is_trained else 'initial'}",
        case.window_start if case.arm == "lstm" else "either",
        case.moments,
        f"{share:.0%}" if share < 0.99 else "> 99%",
        number(np.median(in_first)),
        number(np.median(in_last)) if len(in_last) else "–",
        number(max(g.standardized.max() for g in gaps)),
        f"{number(targets.max())} of {np.std(spread):.2f}",
        f"{sum(g.differs for g in gaps)} of {len(gaps)}",
    ]
    return f"| {' | '.join(cells)} |"


def number(value: float) -> str:
    """Of two digits; what rounding alone makes is 0."""
    return "0" if value < 1e-5 else f"{value:.1g}" if value < 0.01 else f"{value:.2f}"


def main() -> None:
    """Print a row for every case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="of 16 environments each")
    parser.add_argument("--steps", type=int, default=20_480, help="of the training of a trained policy")
    arguments = parser.parse_args()
    columns = "environment policy windows moments transitions 1st 6th largest target action".split()
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for case in CASES:
        print(row(case, arguments.seeds, arguments.steps), flush=True)


if __name__ == "__main__":
    main()
