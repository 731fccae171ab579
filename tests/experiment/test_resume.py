"""A comparison whose process is killed goes on where it stopped, and ends with what an undisturbed one gives."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

THRUST = [sys.executable, "-c", "from thrust_rl.cli import main; main()"]
TINY = ["--total-timesteps", "2048", "--num-envs", "4", "--num-steps", "32", "--eval-episodes", "5"]
COMPARE = ["compare", "FlickeringCartPole-v0", "--seeds", "2", "--workers", "1", *TINY]
TIMES = ("steps_per_second", "seconds_compile", "seconds_run", "seconds")
MARK = "THRUST_TEST_RESUME"


def start(folder, cache, out):
    cached = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    cached["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # compiling is what this test spends its time on
    environment = {**os.environ, **cached, MARK: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [*THRUST, *COMPARE, "--out", out],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def running():
    """Processes of this test; zombies have no environment left."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={os.getpid()}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def without_times(data):
    if isinstance(data, dict):
        return {key: without_times(value) for key, value in data.items() if key not in TIMES}
    return [without_times(value) for value in data] if isinstance(data, list) else data


@pytest.mark.slow
def test_killed_after_the_first_run_it_goes_on_and_gives_what_an_undisturbed_one_gives(tmp_path):
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to look for processes")
    out = tmp_path / "killed"
    killed = start(tmp_path, tmp_path / "cache", "killed")
    assert killed.stdout.readline().startswith("4 runs on 1 worker, written to killed")
    assert "seed 0: finished after" in killed.stdout.readline()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    deadline = time.monotonic() + 20
    while running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running() == [], "workers leave when their parent is gone"
    kept = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*.json") if path.name != "plan.json"}
    assert 1 <= len(kept) < 4 and not (out / "result.json").exists()

    resumed, whole = (start(tmp_path, tmp_path / "cache", name) for name in ("killed", "whole"))
    said = [process.communicate()[0] for process in (resumed, whole)]
    assert [resumed.returncode, whole.returncode] == [0, 0], said
    assert f"{len(kept)} of 4 runs had finished before and are not run again" in said[0]
    assert said[0].count("finished after") == 4 - len(kept) and said[1].count("finished after") == 4
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items()), "what was kept is not run again"
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("killed", "whole")]
    assert results[0]["status"] == "complete"
    assert results[0]["tasks"][0]["conditions"][0]["arms"]["lstm"]["seeds"][1]["curve_mean_return"] != []
    assert without_times(results[0]) == without_times(results[1])
