"""What people hand to an environment, checked: seeds, indices, actions, options, and what builds one."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl import arrays
from thrust_rl.config import require

SEED_LIMIT = 2**32


def checked_seed(seed: Any) -> int:
    """A seed as an `int`.

    Raises:
        TypeError: it is not an integer.
        ConfigError: it lies outside [0, 2³²), where two seeds would mean the same random numbers.
    """
    number = arrays.whole("seed", seed)
    require(0 <= number < SEED_LIMIT, f"seed is {number}: it must lie in [0, 2**32); take it modulo 2**32")
    return number


def built(make_env: Any, *, otherwise: str) -> gymnasium.Env[Any, Any]:
    """One environment from what builds one.

    Args:
        make_env: what was given.
        otherwise: what to do with an environment of another kind, for the message.

    Raises:
        TypeError: it cannot be called, or builds something else.
    """
    if not callable(make_env):
        raise TypeError(
            f"make_env is a {type(make_env).__name__}: pass a function that builds one environment,"
            " such as `lambda: FlickeringCartPole()`"
        )
    env = make_env()
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"make_env built a {type(env).__name__}: expected a gymnasium.Env ({otherwise})")
    return env


def checked_index(index: Any, num_envs: int) -> int:
    """The index of one environment as an `int`.

    Raises:
        TypeError: it is not an integer.
        IndexError: there is no such environment; negative indices do not count from the end.
    """
    number = arrays.whole("the environment's index", index)
    if not 0 <= number < num_envs:
        raise IndexError(f"there is no environment {number}: {num_envs} environments have indices 0 to {num_envs - 1}")
    return number


def checked_action(action: Any, space: gymnasium.Space[Any]) -> NDArray[Any]:
    """One action as an array.

    Raises:
        TypeError: it has another dtype than the space's kind of action.
        ValueError: its shape is wrong, a number is not finite, or it lies outside the space.
    """
    if not isinstance(space, gymnasium.spaces.Discrete):
        return checked_actions(np.asarray(action)[None], space, 1)[0]
    array = np.asarray(action)
    if array.shape != () or array.dtype.kind not in "iu":
        raise TypeError(
            f"action is {action!r} (shape {array.shape}, dtype {array.dtype}): expected one integer of {space};"
            " convert it with int(action), or index one out of a batch"
        )
    return _discrete("action", array, int(space.start), int(space.n))


def checked_actions(actions: Any, space: gymnasium.spaces.Space[Any], num_envs: int) -> NDArray[Any]:
    """One action per environment, as an array `[env, *action]`.

    Raises:
        TypeError: the dtype is wrong.
        ValueError: the shape is wrong, a number is not finite, or an action lies outside the space.
    """
    of_one = space.shape or ()
    array = arrays.shaped("actions", actions, (num_envs, *of_one), " ".join(["env", *["action"] * len(of_one)]))
    arrays.require_finite("actions", array)
    if isinstance(space, gymnasium.spaces.Discrete):
        return _discrete("actions", array, int(space.start), int(space.n))
    outside = [i for i, action in enumerate(array) if not space.contains(action)]
    if outside:
        first = array[outside[0]]
        raise ValueError(
            f"actions of environments {outside} are outside {space}: the first is {first!r} (dtype {array.dtype});"
            " clip them to the space's bounds and cast them to its dtype"
        )
    return array


def refuse_options(options: dict[str, Any] | None) -> None:
    """These environments take no reset options.

    Raises:
        ValueError: options were given.
    """
    if options:
        raise ValueError(f"reset options {options} are unknown: these environments take none; drop them")


def _discrete(name: str, array: NDArray[Any], start: int, n: int) -> NDArray[np.int32]:
    return arrays.integers(name, array, array.shape, "env", low=start, below=start + n)
