"""Parts of a rollout in NumPy arrays: empty steps, and the values of final observations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrust_rl import arrays
from thrust_rl.types import Rollout


def empty_steps(num_envs: int, num_steps: int, obs_dim: int) -> Rollout:
    """A rollout of zeros, without memory."""
    shape = (num_envs, num_steps)
    return Rollout(
        obs=arrays.zeros((*shape, obs_dim)),
        episode_start=arrays.zeros(shape, bool),
        action=arrays.zeros(shape, np.int32),
        log_prob=arrays.zeros(shape),
        value=arrays.zeros(shape),
        reward=arrays.zeros(shape),
        terminated=arrays.zeros(shape, bool),
        truncated=arrays.zeros(shape, bool),
        bootstrap_value=arrays.zeros(shape),
        memory=(),
    )


def bootstrap_values(final_values: Any, needed: NDArray[np.bool_], first: int) -> NDArray[np.float32]:
    """The final values where they are needed, else zeros; `first` is the index of the first row's environment."""
    if final_values is None:
        values = np.full(needed.shape, np.nan, np.float32)
    else:
        values = arrays.possible_floats("final_values", final_values, needed.shape, "env")
    missing = needed & ~np.isfinite(values)
    if missing.any():
        what = "are missing" if final_values is None else f"are {values[missing].tolist()}"
        raise ValueError(
            f"final_values {what} for environments {(first + np.flatnonzero(missing)).tolist()}, whose episodes were"
            " truncated: give the value of each true final observation (as step() returned it, before any reset),"
            " or the cut would count as a failure"
        )
    return np.where(needed, values, np.float32(0.0))
