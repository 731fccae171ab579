"""What importing the library does to the process that imports it."""

import subprocess
import sys

PROGRAM = """
import jax
before = jax.config.values["jax_cpu_enable_async_dispatch"]
import thrust_rl
from jax._src import xla_bridge
print(before, jax.config.values["jax_cpu_enable_async_dispatch"], len(xla_bridge._backends))
"""


def test_importing_sets_how_calls_return_and_computes_nothing():
    """JAX reads the setting when it first computes: an import that computed something would make it void."""
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["True", "False", "0"]
