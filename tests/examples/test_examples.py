"""The examples run as programs, and what they print is what packaged training gives."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from thrust_rl.config import TrainConfig
from thrust_rl.envs.registry import make
from thrust_rl.training.train import train

ROOT = pathlib.Path(__file__).parents[2]
SEED = 3
CONFIG = TrainConfig(total_timesteps=1_536, num_envs=4, num_steps=64, window_start="stored")
BUDGET = ["--total-timesteps", "1536", "--num-envs", "4", "--num-steps", "64", "--seed", str(SEED)]


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
    ("script", "arm", "options", "env_params"),
    [
        ("flickering_cartpole.py", "mlp", ["--flicker-prob", "0.3"], {"flicker_prob": 0.3}),
        ("burst_flickering_cartpole.py", "lstm", ["--burst-len", "3"], {"burst_len": 3.0}),
    ],
)
def test_an_example_gives_what_packaged_training_gives(script, arm, options, env_params):
    done = run(script, *BUDGET, "--arm", arm, "--window-start", "stored", *options)
    assert done.returncode == 0, done.stderr
    [result] = train(make("FlickeringCartPole-v0", **env_params), arm, CONFIG, seeds=[SEED])
    curve = result.curve
    assert printed_results(done.stdout) == {arm: (f"{curve.final:.1f}", f"{curve.best:.1f}")}
    # The log lines are points of the same curve.
    logged = re.findall(r"([\d,]+) steps  mean return +(\S+)", done.stdout)
    expected = {f"{steps:,}": f"{point:.1f}" for steps, point in zip(curve.steps, curve.mean_return, strict=True)}
    assert len(logged) == CONFIG.num_updates and dict(logged) == expected


@pytest.mark.slow
def test_both_arms_end_with_the_contrast():
    done = run("flickering_cartpole.py", *BUDGET, "--total-timesteps", "512")
    assert done.returncode == 0, done.stderr
    finals = {arm: float(final) for arm, (final, _) in printed_results(done.stdout).items()}
    assert list(finals) == ["lstm", "mlp"]
    difference = float(re.search(r"difference of (\S+) in final return", done.stdout)[1])
    assert difference == pytest.approx(finals["lstm"] - finals["mlp"], abs=0.11)  # of rounded numbers


@pytest.mark.parametrize(
    ("script", "options", "message"),
    [
        ("flickering_cartpole.py", ["--num-envs", "6"], "envs_per_minibatch 4 does not divide"),
        ("burst_flickering_cartpole.py", ["--flicker-prob", "0.9"], "raise burst_len to at least 9"),
    ],
)
def test_a_setting_out_of_range_is_explained_without_a_traceback(script, options, message):
    done = run(script, *options)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
