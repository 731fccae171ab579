"""A user's replacement for the scoring of a minibatch, in a form that is compiled once however often it is written."""

import types
from collections.abc import Callable, Hashable
from typing import Any

from jaxtyping import Array

from thrust_rl.policies.actor_critic import ActorCritic
from thrust_rl.types import Memory


class Scoring:
    """An `Evaluate` whose outputs' shapes are checked, equal to every other made of the same code and values.

    A closure written inside a loop is a new object in every turn; compiled programs are found again by equality. Two
    closures are equal here when their code is and everything they captured is. Capturing something that
    cannot be hashed, such as an array, makes every new closure a new program: then write it outside the loop.
    """

    def __init__(self, evaluate: Callable[..., Any]) -> None:
        self._evaluate = evaluate
        self._key = _key(evaluate)

    def __call__(
        self, policy: ActorCritic, obs: Array, actions: Array, episode_starts: Array, memory: Memory
    ) -> tuple[Array, Array, Array]:
        """Call the closure while it is traced.

        Raises:
            ValueError: it gave anything but three arrays of the actions' shape.
        """
        scores = tuple(self._evaluate(policy, obs, actions, episode_starts, memory))
        shapes = [getattr(each, "shape", None) for each in scores]
        if shapes != [actions.shape] * 3:
            raise ValueError(
                f"evaluate gave shapes {shapes}: expected (log_probs, entropy, values), each of shape {actions.shape}"
                " for the axes [row, time]; index or reduce them to that, nothing is broadcast"
            )
        return scores

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scoring) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _key(evaluate: Callable[..., Any]) -> Hashable:
    """What makes two functions the same: code, globals, defaults and captured values; else identity."""
    if not isinstance(evaluate, types.FunctionType):
        return id(evaluate)
    captured = tuple(cell.cell_contents for cell in evaluate.__closure__ or ())
    keywords = tuple(sorted((evaluate.__kwdefaults__ or {}).items()))
    values = (*captured, *(evaluate.__defaults__ or ()), *keywords)
    key = (evaluate.__code__, id(evaluate.__globals__), values, tuple(map(type, values)))
    try:
        hash(key)
    except TypeError:
        return id(evaluate)
    return key
