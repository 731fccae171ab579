"""What people hand to an environment, checked: seeds, numbers of environments, actions, options."""

import operator
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import require

SEED_LIMIT = 2**32


def checked_seed(seed: Any) -> int:
    """A seed as an `int`.

    Raises:
        TypeError: it is not an integer.
        ConfigError: it lies outside [0, 2³²), where two seeds would mean the same random numbers.
    """
    number = _integer("seed", seed)
    require(0 <= number < SEED_LIMIT, f"seed is {number}: it must lie in [0, 2**32); take it modulo 2**32")
    return number


def checked_num_envs(num_envs: Any) -> int:
    """A number of environments as an `int`.

    Raises:
        TypeError: it is not an integer.
        ConfigError: it is less than 1.
    """
    number = _integer("num_envs", num_envs)
    require(number >= 1, f"num_envs is {number}: it must be at least 1")
    return number


def checked_index(index: Any, num_envs: int) -> int:
    """The index of one environment as an `int`.

    Raises:
        TypeError: it is not an integer.
        IndexError: there is no such environment; negative indices do not count from the end.
    """
    number = _integer("the environment's index", index)
    if not 0 <= number < num_envs:
        raise IndexError(f"there is no environment {number}: {num_envs} environments have indices 0 to {num_envs - 1}")
    return number


def checked_action(action: Any, space: gymnasium.spaces.Discrete) -> int:
    """One action as an `int`.

    Raises:
        TypeError: it is not one integer.
        ValueError: it lies outside the space.
    """
    array = np.asarray(action)
    low, high = int(space.start), int(space.start + space.n - 1)
    if array.shape != () or array.dtype.kind not in "iu":
        raise TypeError(
            f"action is {action!r} (shape {array.shape}, dtype {array.dtype}): expected one integer in [{low}, {high}];"
            " convert it with int(action), or index one out of a batch"
        )
    number = int(array)
    if not low <= number <= high:
        raise ValueError(f"action is {number}: it must lie in [{low}, {high}]; see action_space")
    return number


def checked_actions(actions: Any, space: gymnasium.spaces.Space[Any], num_envs: int) -> NDArray[Any]:
    """One action per environment, as an array `[env, *action]`.

    Raises:
        TypeError: the dtype is wrong.
        ValueError: the shape is wrong, a number is not finite, or an action lies outside the space.
    """
    array = np.asarray(actions)
    expected = (num_envs, *(space.shape or ()))
    if array.shape != expected:
        raise ValueError(
            f"actions have shape {array.shape}: expected {expected}, one action of {space} for each of {num_envs}"
            " environments; reshape or index them, nothing is broadcast"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        where = np.flatnonzero(~np.isfinite(array.reshape(num_envs, -1)).all(axis=1)).tolist()
        raise ValueError(f"actions of environments {where} are not finite: look for NaN in the policy's outputs")
    if isinstance(space, gymnasium.spaces.Discrete):
        return _checked_discrete(array, space)
    outside = [i for i, action in enumerate(array) if not space.contains(action)]
    if outside:
        first = array[outside[0]]
        raise ValueError(
            f"actions of environments {outside} are outside {space}: the first is {first!r} (dtype {array.dtype});"
            " clip them to the space's bounds and cast them to its dtype"
        )
    return array


def _checked_discrete(array: NDArray[Any], space: gymnasium.spaces.Discrete) -> NDArray[np.int32]:
    low, high = int(space.start), int(space.start + space.n - 1)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"actions have dtype {array.dtype}: expected integers in [{low}, {high}];"
            " cast them with actions.astype(numpy.int32)"
        )
    wrong = (array < low) | (array > high)
    if wrong.any():
        where = np.flatnonzero(wrong).tolist()
        raise ValueError(
            f"actions of environments {where} are {array[wrong].tolist()}: they must lie in [{low}, {high}];"
            " see action_space"
        )
    return array.astype(np.int32)


def refuse_options(options: dict[str, Any] | None) -> None:
    """These environments take no reset options.

    Raises:
        ValueError: options were given.
    """
    if options:
        raise ValueError(f"reset options {options} are unknown: these environments take none; drop them")


def _integer(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r} ({type(value).__name__}): expected an integer") from None
