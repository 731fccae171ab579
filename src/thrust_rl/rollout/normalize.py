"""Observation normalizing that passes blanked frames through."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from thrust_rl.envs.spaces import Numbers, ObsSpec
from thrust_rl.maths.moments import Moments, initial_moments, merge, standardize


def is_blank(obs: Float[Array, "env *obs"]) -> Bool[Array, " env"]:
    """Frames that are exactly zero everywhere: what a blanked frame is where nobody says which are."""
    return jnp.all(obs == 0.0, axis=tuple(range(1, obs.ndim)))


def standardize_visible(
    moments: Moments, obs: Float[Array, "env *obs"], blank: Bool[Array, " env"]
) -> Float[Array, "env *obs"]:
    """Standardize the visible frames by the moments as they are; blanked ones stay as they are."""
    standardized = jax.vmap(standardize, in_axes=(None, 0))(moments, obs)
    return jnp.where(jnp.reshape(blank, (-1,) + (1,) * (obs.ndim - 1)), obs, standardized)


def observe_and_standardize(
    moments: Moments, obs: Float[Array, "env *obs"], blank: Bool[Array, " env"]
) -> tuple[Moments, Float[Array, "env *obs"]]:
    """Take arriving frames into the moments, then standardize them; blanked ones neither count nor change.

    Example:
        >>> import jax.numpy as jnp
        >>> from thrust_rl.maths.moments import initial_moments
        >>> frames = jnp.array([[1.0], [0.0], [3.0]])
        >>> moments, seen = observe_and_standardize(initial_moments((1,)), frames, is_blank(frames))
        >>> seen.ravel().tolist(), float(moments.count)
        ([-1.0, 0.0, 1.0], 2.0)
    """
    moments = merge(moments, obs, ~blank)
    return moments, standardize_visible(moments, obs, blank)


def initial_frame_moments(spec: ObsSpec) -> PyTree:
    """Moments of nothing for every part that is standardized, `()` for the others, in the shape of a frame."""
    nothing = [initial_moments(part.shape) if isinstance(part, Numbers) else () for part in spec.parts]
    return spec.treedef.unflatten(nothing)


def observe_frames(spec: ObsSpec, moments: PyTree, obs: PyTree, blank: Bool[Array, " env"]) -> tuple[PyTree, PyTree]:
    """`observe_and_standardize` for the numbers in a frame; its other parts pass."""
    parts = [
        observe_and_standardize(mine, value, blank) if isinstance(part, Numbers) else (mine, value)
        for part, mine, value in zip(spec.parts, spec.leaves(moments), spec.leaves(obs), strict=True)
    ]
    return spec.treedef.unflatten([mine for mine, _ in parts]), spec.treedef.unflatten([value for _, value in parts])


def standardize_frames(spec: ObsSpec, moments: PyTree, obs: PyTree, blank: Bool[Array, " env"]) -> PyTree:
    """`standardize_visible` for the numbers in a frame; its other parts pass."""
    return spec.treedef.unflatten(
        [
            standardize_visible(mine, value, blank) if isinstance(part, Numbers) else value
            for part, mine, value in zip(spec.parts, spec.leaves(moments), spec.leaves(obs), strict=True)
        ]
    )
