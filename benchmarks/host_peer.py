"""Host throughput beside a peer: recurrent PPO on Gymnasium's CartPole-v1, whole training, steps per second.

The peer is sb3-contrib's RecurrentPPO, in a virtual environment of its own:

    python3 -m venv PEER && PEER/bin/pip install sb3-contrib==2.9.2
    python benchmarks/host_peer.py --peer-python PEER/bin/python

Every measurement is a process of its own that trains once to warm up and once against the clock, and prints one JSON
line. The cases take turns for several rounds, so that whatever else the machine does meets all of them. How much that
was shows in the load average, and in steps per second of processor time, which depends less on it.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple


@dataclasses.dataclass(frozen=True)
class Settings:
    """What every side trains: the same work, in the words of this library."""

    env_id: str = "CartPole-v1"
    num_envs: int = 16
    num_steps: int = 128
    hidden_dim: int = 64
    envs_per_minibatch: int = 4
    n_epochs: int = 4
    total_timesteps: int = 40_960
    seed: int = 0


class Case(NamedTuple):
    """One row of the table."""

    side: str
    name: str
    python: str
    options: dict[str, Any]  # keyword arguments of the side's measuring function


class Timing(NamedTuple):
    """What a training took."""

    steps: int
    seconds: float
    cpu_seconds: float  # of all threads


def timed(train: Callable[[], int]) -> Timing:
    """Run `train`, which gives the number of environment steps it took."""
    seconds, cpu_seconds = time.perf_counter(), time.process_time()
    steps = train()
    return Timing(steps, time.perf_counter() - seconds, time.process_time() - cpu_seconds)


def train_peer(settings: Settings, *, shared_lstm: bool) -> int:
    """Train sb3-contrib's RecurrentPPO on a CPU; give the number of environment steps.

    Linear heads on the LSTM, as ours, and no `Monitor` around the environments, which would cost it time. By its
    default actor and critic have an LSTM each; with `shared_lstm` one serves both, as ours does.
    """
    import gymnasium
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    policy = {"lstm_hidden_size": settings.hidden_dim, "n_lstm_layers": 1, "net_arch": []}
    policy |= {"shared_lstm": shared_lstm, "enable_critic_lstm": not shared_lstm}
    model = RecurrentPPO(
        "MlpLstmPolicy",
        DummyVecEnv([lambda: gymnasium.make(settings.env_id)] * settings.num_envs),
        n_steps=settings.num_steps,
        batch_size=settings.envs_per_minibatch * settings.num_steps,
        n_epochs=settings.n_epochs,
        policy_kwargs=policy,
        seed=settings.seed,
        device="cpu",
    )
    return model.learn(settings.total_timesteps).num_timesteps


def measure_peer(settings: Settings, *, threads: int | None, shared_lstm: bool) -> Timing:
    """Time the peer with so many PyTorch threads, or with its default, after two windows to warm up."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    warm_up = dataclasses.replace(settings, total_timesteps=2 * settings.num_envs * settings.num_steps)
    train_peer(warm_up, shared_lstm=shared_lstm)
    return timed(lambda: train_peer(settings, shared_lstm=shared_lstm))


def train_thrust(settings: Settings) -> int:
    """Train our LSTM arm on the same environments, stepped by the host; give the number of environment steps."""
    from thrust_rl import PPOConfig, TrainConfig, make, train

    ppo = PPOConfig(n_epochs=settings.n_epochs, envs_per_minibatch=settings.envs_per_minibatch)
    config = TrainConfig(settings.total_timesteps, settings.num_envs, settings.num_steps, "stored", ppo)
    env = make(f"gymnasium:{settings.env_id}")
    return sum(result.steps for result in train(env, "lstm", config, seeds=(settings.seed,)))


def measure_thrust(settings: Settings) -> Timing:
    """Time ours; the same training before it compiles everything, as the peer's first windows warm it up."""
    train_thrust(settings)
    return timed(lambda: train_thrust(settings))


MEASURES: dict[str, Callable[..., Timing]] = {"peer": measure_peer, "thrust": measure_thrust}
DISTRIBUTIONS = {
    "peer": ("sb3-contrib", "stable-baselines3", "torch", "gymnasium"),
    "thrust": ("thrust-rl", "jax", "gymnasium"),
}


def cases_of(peer_python: str) -> list[Case]:
    """Ours, and the peer with one LSTM or two and PyTorch with its default threads, one and two: its best counts."""
    return [
        Case(side="thrust", name="thrust-rl", python=sys.executable, options={}),
    ] + [
        Case(
            side="peer",
            name=f"sb3-contrib, {'one LSTM' if shared else 'two LSTMs'}, threads: {threads or 'default'}",
            python=peer_python,
            options={"threads": threads, "shared_lstm": shared},
        )
        for shared in (True, False)
        for threads in (None, 1, 2)
    ]


def run_case(case: Case, settings: Settings) -> float:
    """Measure in a fresh process; its last line is the result."""
    work = {"side": case.side, "options": case.options, "settings": dataclasses.asdict(settings)}
    printed = subprocess.run(
        [case.python, __file__, "--measure", json.dumps(work)], capture_output=True, text=True, timeout=1800
    )
    if printed.returncode != 0:
        sys.exit(f"{case.name} failed:\n{printed.stderr}")
    line = printed.stdout.splitlines()[-1]
    print(f"{case.name}: {line}", file=sys.stderr, flush=True)
    return json.loads(line)["steps_per_second"]


def measure(work: dict[str, Any]) -> None:
    """What a measuring process does: one side, one JSON line."""
    timing = MEASURES[work["side"]](Settings(**work["settings"]), **work["options"])
    rates = {
        "steps_per_second": round(timing.steps / timing.seconds, 1),
        "steps_per_cpu_second": round(timing.steps / timing.cpu_seconds, 1),
        "load": round(os.getloadavg()[0], 2),
    }
    versions = {name: metadata.version(name) for name in DISTRIBUTIONS[work["side"]]}
    print(json.dumps(rates | {"versions": versions} | work))


def table(rates: dict[str, list[float]], baseline: str) -> str:
    """Median and range of every case, and the ratio of its median to the baseline's."""
    reference = statistics.median(rates[baseline])
    lines = ["| case | steps/s | range | ratio |", "|---|---|---|---|"]
    for name, found in rates.items():
        median = statistics.median(found)
        lines.append(f"| {name} | {median:,.0f} | {min(found):,.0f} to {max(found):,.0f} | {median / reference:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure every case in turn, round after round, and compare each with the peer's best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", metavar="PATH", help="interpreter of the environment that has sb3-contrib")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--total-timesteps", type=int, default=Settings.total_timesteps)
    parser.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.measure)
    if not arguments.peer_python:
        parser.error("--peer-python is required")
    settings, cases = Settings(total_timesteps=arguments.total_timesteps), cases_of(arguments.peer_python)
    rates: dict[str, list[float]] = {case.name: [] for case in cases}
    for _ in range(arguments.rounds):
        for case in cases:
            rates[case.name].append(run_case(case, settings))
    print(settings)
    peers = [case.name for case in cases if case.side == "peer"]
    print(table(rates, baseline=max(peers, key=lambda name: statistics.median(rates[name]))))


if __name__ == "__main__":
    main()
