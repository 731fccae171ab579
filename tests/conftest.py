"""Every test runs the library with its annotations checked: shapes, dtypes and types, at each call."""

import functools
import gc
import os
import pathlib
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import beartype
import jax
import jaxtyping
import pytest
from hypothesis import settings

# PEP 484: an int is acceptable where a float is asked for.
_checked = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Type-check a function's calls; an argument meets a `Protocol` when it has the protocol's members."""
    for hint in getattr(function, "__annotations__", {}).values():
        if isinstance(hint, type) and getattr(hint, "_is_protocol", False):
            typing.runtime_checkable(hint)
    return _checked(function)


if any(name.split(".")[0] == "thrust_rl" for name in sys.modules):
    raise RuntimeError("thrust_rl was imported before its annotations could be checked")
# jaxtyping finds a checker only by its import path, which a conftest does not have.
sys.modules["thrust_rl_annotations"] = types.ModuleType("thrust_rl_annotations")
sys.modules["thrust_rl_annotations"].check = check
jaxtyping.install_import_hook("thrust_rl", "thrust_rl_annotations.check")

# Same examples on every run, and no time limit on one that has to compile.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("repeatable")


def pytest_configure(config):
    """Where tests run in several processes, these and all that they start compile at the lowest level: twice as fast.

    All alike, since a last bit may depend on it, and some tests compare processes.
    """
    if getattr(config.option, "numprocesses", None):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()


MAPS, MOST_MAPS = pathlib.Path("/proc/self/maps"), 30_000  # Linux kills a process that asks for more than 65,530


@pytest.fixture(autouse=True, scope="module")
def compiled_code_is_dropped_in_time():
    """Every compiled function takes a few maps of memory, and one process runs half of all tests."""
    yield
    if MAPS.exists() and len(MAPS.read_bytes().splitlines()) > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def unchecked():
    """What a user meets, who has no checker: a wrong value gets as far as the library's own validation."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def walk() -> Callable[..., Any]:
    """`walk(env, streams, policy, num_steps)` steps every stream under auto-restart.

    `policy(physics_state, key)` is an action. Returns the first states and frames, then the states, results and
    frames after each step, leaves `[env, time, ...]`; the states are those after a restart.
    """
    return _walk


# Compiling is what these tests spend their time on: compile each walk once, and without optimizing it.
@functools.partial(
    jax.jit,
    static_argnames=("env", "policy", "num_steps"),
    compiler_options={"xla_backend_optimization_level": 0},
)
def _walk(env, streams, policy, num_steps):
    from thrust_rl.envs.core import step_and_restart
    from thrust_rl.maths.keys import Purpose, purpose_key, step_key

    def one(stream):
        def body(state, t):
            key = step_key(stream, t)
            action = policy(state.physics, purpose_key(key, Purpose.ACTION))
            state, result, frame = step_and_restart(env, key, state, action)
            return state, (state, result, frame)

        first = env.init(step_key(stream, 0))
        return first, jax.lax.scan(body, first[0], jax.numpy.arange(1, num_steps + 1))[1]

    return jax.vmap(one)(streams)
