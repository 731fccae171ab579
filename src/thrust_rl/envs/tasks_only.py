"""What people hand over where a task is asked for, or a name: what is neither is refused, with what to give instead."""

from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.targets import takes_num_envs
from thrust_rl.envs.task import CompiledTask, HostTask, VectorTask

TASKS = (FunctionalEnv, HostTask, VectorTask, CompiledTask)
BUILT = "an environment that is built already"


def require_task(env: Any) -> None:
    """What is trained or played in is an environment of the library or a task, which builds its own.

    Raises:
        TypeError: it is something else.

    Example:
        >>> require_task("CartPole-v1")
        Traceback (most recent call last):
            ...
        TypeError: env is 'CartPole-v1': a task is expected; give make("CartPole-v1")
    """
    if isinstance(env, TASKS):
        return
    expected = f"env is {_said(env)}: a task is expected"
    if isinstance(env, str):
        raise TypeError(f'{expected}; give make("{env}")')
    if not _builds(env):
        raise TypeError(f'{expected}; give make("CartPole-v1"), or HostTask(name, make_env)')
    named = f'make("{_id(env)}"), or ' if _id(env) else ""
    raise TypeError(f"{expected}, which builds its environments itself; give {named}{_task(env)}")


def require_name(name: Any, function: str) -> None:
    """What is built by name is a text.

    Args:
        name: what was given.
        function: that asks for it, for the message.

    Raises:
        TypeError: it is something else.

    Example:
        >>> require_name(3, "make")
        Traceback (most recent call last):
            ...
        TypeError: env is 3: make takes names of environments; give make("CartPole-v1"), or "their_module:Env"
    """
    if isinstance(name, str):
        return
    why = ", since worker processes build them" if function == "compare" else ""
    given = f"env is {_said(name)}: {function} takes names of environments{why}"
    if isinstance(name, TASKS):
        raise TypeError(f"{given}; {_name_of(name, function)}")
    if not _builds(name):
        raise TypeError(f'{given}; give {function}("CartPole-v1"), or "their_module:Env"')
    if _id(name):
        raise TypeError(f'{given}; give {function}("{_id(name)}")')
    put = f'put what builds it in a module and give {function}("{_target(name)}")'
    raise TypeError(f"{given}; {put}; train and evaluate also take {_task(name)}")


def _said(given: Any) -> str:
    """What came."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if isinstance(given, gymnasium.Env | VectorEnv):
        return f"a {type(given).__name__}, {BUILT}"
    if isinstance(given, TASKS):
        return f"the {type(given).__name__} {given.name}"
    return "a function" if callable(given) else repr(given)[:80]


def _builds(given: Any) -> bool:
    """Whether it is an environment, or may build one."""
    return callable(given) or isinstance(given, gymnasium.Env | VectorEnv)


def _id(given: Any) -> str:
    """Under which Gymnasium built it; empty where it did not."""
    spec = given.spec if isinstance(given, gymnasium.Env) else None
    return "" if spec is None else spec.id


def _task(given: Any) -> str:
    """The task that builds it, as code."""
    build = _builder(given)
    name = "mine" if build.startswith("make_") else build.lower()
    if isinstance(given, VectorEnv) or takes_num_envs(given):
        return f'VectorTask("{name}", {build}), where {build}(num_envs) builds them'
    where = "" if callable(given) or build != "make_env" else ", where make_env() builds one"
    return f'HostTask("{_id(given) or name}", {build}){where}'


def _builder(given: Any) -> str:
    """What builds it, as code: a class or function by its name; of wrappers, vectors and the nameless nobody knows."""
    if isinstance(given, VectorEnv):
        return "make_vector"
    owner = type(given) if isinstance(given, gymnasium.Env) else given
    name = str(getattr(owner, "__name__", ""))
    wrapped = isinstance(given, gymnasium.Wrapper)
    return name if name.isidentifier() and not wrapped else "make_env"


def _target(given: Any) -> str:
    """Where `module:callable` finds what builds it."""
    owner, build = type(given) if isinstance(given, gymnasium.Env) else given, _builder(given)
    module = getattr(owner, "__module__", "__main__")
    there = getattr(owner, "__qualname__", "") == build and module != "__main__"
    return f"{module if there else 'their_module'}:{build}"


def _name_of(task: Any, function: str) -> str:
    """What to give where a name is asked for, and a task came."""
    if function == "make":
        return "this is made already: give it to train"
    maker = getattr(task, "make_env", None) or getattr(task, "make_vector", None)
    if maker is None or hasattr(maker, "target"):  # built by name
        return f'give {function}("{task.name.partition("|")[0]}")'
    return f'put what builds it in a module and give {function}("{_target(maker)}")'
