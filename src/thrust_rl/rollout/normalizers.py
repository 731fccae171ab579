"""Running moments as objects: shells over the pure functions that packaged training normalizes with.

Rewards need no object: multiply them by `PPOConfig.reward_scale` before they go into a buffer. That constant keeps
values of order 1; returns are reported in raw units.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from thrust_rl import arrays
from thrust_rl.maths.moments import Moments, initial_moments, merge
from thrust_rl.rollout.normalize import is_blank, observe_and_standardize, standardize_visible


class ObsNormalizer:
    """Standardizes observations by running mean and deviation; blanked (all-zero) frames pass through uncounted.

    Args:
        obs_dim: length of an observation.

    Example:
        >>> import numpy as np
        >>> normalizer = ObsNormalizer(1)
        >>> normalizer.normalize(np.array([[1.0], [0.0], [3.0]])).ravel().tolist(), normalizer.count
        ([-1.0, 0.0, 1.0], 2)
    """

    def __init__(self, obs_dim: int) -> None:
        self.obs_dim = arrays.positive("obs_dim", obs_dim)
        self.moments: Moments = initial_moments((self.obs_dim,))

    def normalize(self, obs: Any, *, update: bool = True) -> Float[np.ndarray, "env obs"]:
        """(obs − mean) / std, clipped to ±10.

        Args:
            obs: raw frames `[env, obs]`. Pass every frame that the policy acts on once, all environments together.
            update: take the visible frames into the moments first. Give False for frames that are only looked at, such
                as the final observation of a truncated episode.
        """
        obs = arrays.floats("obs", obs, (None, self.obs_dim), "env obs")
        if not update:
            return np.array(_standardize(self.moments, obs))
        self.moments, seen = _observe(self.moments, obs)
        return np.array(seen)

    @property
    def mean(self) -> NDArray[np.float32]:
        """Of the visible frames counted so far, `[obs]`."""
        return np.array(self.moments.mean)

    @property
    def var(self) -> NDArray[np.float32]:
        """Population variance of the visible frames counted so far, `[obs]`."""
        return np.array(self.moments.var)

    @property
    def count(self) -> int:
        """Visible frames counted so far."""
        return int(self.moments.count)


class RunningMeanStd:
    """Mean and population variance of everything it was given, zeros included.

    Args:
        shape: of one row.

    Example:
        >>> import numpy as np
        >>> moments = RunningMeanStd((2,))
        >>> moments.update(np.array([[1.0, 5.0], [3.0, 5.0]]))
        >>> moments.mean.tolist(), moments.var.tolist(), moments.count
        ([2.0, 5.0], [1.0, 0.0], 2)
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.shape = tuple(arrays.positive("shape", length) for length in shape)
        self.moments: Moments = initial_moments(self.shape)

    def update(self, batch: Any) -> None:
        """Take in rows `[row, *shape]`."""
        axes = " ".join(["row", *(f"axis_{i}" for i in range(len(self.shape)))])
        batch = arrays.floats("batch", batch, (None, *self.shape), axes)
        self.moments = _merge_all(self.moments, batch)

    @property
    def mean(self) -> NDArray[np.float32]:
        """Of all rows so far; zeros before the first."""
        return np.array(self.moments.mean)

    @property
    def var(self) -> NDArray[np.float32]:
        """Population variance of all rows so far; zeros before the first."""
        return np.array(self.moments.var)

    @property
    def count(self) -> int:
        """Rows so far."""
        return int(self.moments.count)


_observe = jax.jit(lambda moments, obs: observe_and_standardize(moments, obs, is_blank(obs)))
_standardize = jax.jit(lambda moments, obs: standardize_visible(moments, obs, is_blank(obs)))


@jax.jit
def _merge_all(moments: Moments, batch: Float[Array, "row *obs"]) -> Moments:
    return merge(moments, batch, jax.numpy.ones(len(batch), bool))
