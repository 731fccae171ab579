"""gymnax 0.0.9, whose step says one `done` for both kinds of ends: the transitions of gymnax 1.0."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gymnax_rollouts_for_tests as of_this

OLDER = Path(sys.prefix) / "older"  # beside the release that is installed, `make test` puts this one


@pytest.fixture(scope="module")
def older():
    if not (OLDER / "gymnax").exists():
        pytest.skip(f"gymnax 0.0.9 is not in {OLDER}: `make test` puts it there")
    path = os.pathsep.join([str(OLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, of_this.__file__], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", of_this.ACTIONS)
def test_transitions_are_those_of_the_newer_release(older, name):
    """F10: an end at the limit is a truncation, unless the pole fell at that very step."""
    assert older["version"] == "0.0.9"
    mine, theirs = older["rollouts"][name], of_this.rollouts()[name]
    for one, other in zip(mine, theirs, strict=True):  # compiled with other settings, so not to the last bit
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    _, _, terminated, truncated, _ = mine
    assert sum(truncated) >= 1 and (sum(terminated) >= 5) == (name == "CartPole-v1")
