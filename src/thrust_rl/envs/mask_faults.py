"""Action masks as environments give them: their forms, and what is wrong with one."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrust_rl.envs.spaces import MASK_KEY, ActionMask

MISSING = "its info has no action_mask, but that of the first reset had one: report it at every reset and step"
UNEXPECTED = (
    "its info has an action_mask, and that of its first reset had none: report it at every reset and step, or never"
)


def flat_mask(mask: Any) -> NDArray[Any]:
    """A mask as one array: Gymnasium's own form over several choices is a tuple of an array for each.

    Example:
        >>> flat_mask((np.array([1, 0]), np.array([0, 1, 1]))).tolist()
        [1, 0, 0, 1, 1]
    """
    if isinstance(mask, tuple | list) and any(np.ndim(part) for part in mask):
        return np.concatenate([np.ravel(flat_mask(part)) for part in mask])
    return np.asarray(mask)


def reported_masks(info: dict[str, Any], num_envs: int) -> list[Any]:
    """The masks in the info of a vector environment, one by one; None where there is none.

    They come as one array, as a sequence of masks, or choice by choice: as a tuple of arrays `[env, alternative]`.
    """
    masks = info.get(MASK_KEY)
    if masks is None:
        return [None] * num_envs
    if isinstance(masks, tuple) and all(np.ndim(choice) == 2 for choice in masks):
        masks = np.concatenate(masks, axis=-1)
    there = info.get(f"_{MASK_KEY}", np.ones(len(masks), bool))
    return [mask if is_there else None for mask, is_there in zip(masks, there, strict=False)]  # counted later


def misfit(part: ActionMask, given: NDArray[Any]) -> str | None:
    """What keeps a flat mask from being stored; None where nothing does."""
    expected = f"it must be {part.shape[0]} numbers or booleans, one for every alternative{_sum(part.sizes)}"
    if given.dtype.kind not in "biuf":
        return f"its action mask has dtype {given.dtype}: {expected}"
    if given.shape != part.shape:
        return f"its action mask has shape {given.shape}: {expected}"
    if not np.isfinite(given).all():
        return f"its action mask is not finite: {given.tolist()}"
    return None


def without_alternative(
    part: ActionMask, masks: NDArray[np.bool_], over: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """In which frames a choice has no alternative left, and what to say of it, choice by choice.

    Args:
        part: says how many alternatives the choices have.
        masks: of several environments, `[env, alternative]`.
        over: which frames end an episode: nobody acts on them.
    """
    if len(part.sizes) < 2:  # nearly always, and at every step
        yield ~masks.any(axis=-1) & ~over, "its action mask allows no action: allow one, or end the episode"
        return
    firsts = [0, *itertools.accumulate(part.sizes[:-1])]
    left = np.logical_or.reduceat(masks, firsts, axis=-1) | over[:, None]  # [env, choice]
    for i in np.flatnonzero(~left.all(axis=0)).tolist():
        places = f"places {firsts[i]} to {firsts[i] + part.sizes[i] - 1} of the mask, counted from 0"
        yield (
            ~left[:, i],
            f"its action mask allows none of the {part.sizes[i]} alternatives of choice {i} ({places}): allow one of"
            " every choice, or end the episode",
        )


def _sum(sizes: tuple[int, ...]) -> str:
    return f" ({' + '.join(map(str, sizes))})" if len(sizes) > 1 else ""
