"""The examples run as programs, and what they print is what packaged training gives."""

import dataclasses
import importlib
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from thrust_rl.config import PPOConfig, TrainConfig
from thrust_rl.envs.registry import make
from thrust_rl.envs.stateful import FlickeringCartPole
from thrust_rl.training.train import train

ROOT = pathlib.Path(__file__).parents[2]
SEED = 3
CONFIG = TrainConfig(total_timesteps=6_144, num_envs=4, num_steps=32)  # long enough for memory to make a difference
BUDGET = ["--total-timesteps", "6144", "--num-envs", "4", "--num-steps", "32", "--seed", str(SEED)]


def run(script, *options):
    """The example's exit status and what it printed."""
    python_path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / script), *options],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": python_path},
        timeout=300,
    )


def printed_results(output):
    """`{arm: (final, best)}` from the last lines."""
    line = re.compile(r"^ *(\w+)  final (\S+)  best (\S+)  \(", re.MULTILINE)
    return {arm: (final, best) for arm, final, best in line.findall(output)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arm", "window_start", "options", "env_params"),
    [
        ("flickering_cartpole.py", "both", "cold", ["--flicker-prob", "0.3"], {"flicker_prob": 0.3}),
        ("burst_flickering_cartpole.py", "lstm", "stored", ["--burst-len", "3"], {"burst_len": 3.0}),
    ],
)
def test_an_example_gives_what_packaged_training_gives(script, arm, window_start, options, env_params):
    done = run(script, *BUDGET, "--arm", arm, "--window-start", window_start, *options)
    assert done.returncode == 0, done.stderr
    arms = ["lstm", "mlp"] if arm == "both" else [arm]
    config = dataclasses.replace(CONFIG, window_start=window_start)
    env = make("FlickeringCartPole-v0", **env_params)
    curves = {name: train(env, name, config, seeds=[SEED])[0].curve for name in arms}
    expected = {name: (f"{curve.final:.1f}", f"{curve.best:.1f}") for name, curve in curves.items()}
    assert printed_results(done.stdout) == expected
    for name, curve in curves.items():  # the log lines are points of the same curve
        points = {f"{steps:,}": f"{point:.1f}" for steps, point in zip(curve.steps, curve.mean_return, strict=True)}
        logged = dict(re.findall(rf"^ *{name} +([\d,]+) steps  mean return +(\S+)", done.stdout, re.MULTILINE))
        assert len(logged) >= 10 and logged.items() <= points.items()
    contrast = re.search(r"difference of (\S+) in final return", done.stdout)
    assert (contrast is not None) == (arm == "both")
    if contrast:
        assert contrast[1] == f"{curves['lstm'].final - curves['mlp'].final:+.1f}"


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["lstm", "mlp"])
def test_the_learning_rate_falls_linearly_to_a_twentieth_and_stays_there(arm, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    loop = importlib.import_module("hand_written_loop")
    rates = []

    def remember(trainer, buffer):
        rates.append(trainer.learning_rate)

    monkeypatch.setattr(loop.RecurrentPPOTrainer if arm == "lstm" else loop.PPOTrainer, "train_step", remember)
    config = TrainConfig(total_timesteps=50 * 4, num_envs=2, num_steps=2, ppo=PPOConfig(learning_rate=0.01))
    loop.train_arm(arm, FlickeringCartPole, config, SEED)
    np.testing.assert_allclose(rates, 0.01 * np.maximum(1 - np.arange(50) / 50, 0.05), rtol=1e-5)


def tiny(num_envs, num_steps):
    """One update."""
    sizes = {"num-envs": num_envs, "num-steps": num_steps, "total-timesteps": num_envs * num_steps}
    return [word for name, size in sizes.items() for word in (f"--{name}", str(size))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options", "message", "remedy"),
    [
        (
            "flickering_cartpole.py",
            ["--arm", "lstm", *tiny(6, 2)],
            "num_envs is 6, which envs_per_minibatch 4 does not divide: set envs_per_minibatch to 3",
            ["--envs-per-minibatch", "3"],
        ),
        (
            "flickering_cartpole.py",
            ["--arm", "mlp", *tiny(4, 3)],
            "is 12, which batch_size 128 does not divide: set batch_size to 12",
            ["--batch-size", "12"],
        ),
        (
            "burst_flickering_cartpole.py",
            ["--arm", "mlp", "--flicker-prob", "0.9", *tiny(4, 32)],
            "raise burst_len to at least 9",
            ["--burst-len", "9"],
        ),
    ],
)
def test_a_setting_out_of_range_is_explained_and_the_remedy_is_a_flag(script, options, message, remedy):
    done = run(script, *options)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
    done = run(script, *options, *remedy)
    assert done.returncode == 0, done.stderr


def test_both_arms_are_checked_before_either_is_trained():
    done = run("flickering_cartpole.py", *tiny(4, 3))
    assert done.returncode == 2 and "batch_size 128 does not divide" in done.stderr
    assert done.stdout == ""
