"""The encoder: every part of an observation as features, and an arm's layers on top."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from thrust_rl.config import ArmConfig, require
from thrust_rl.envs.spaces import ActionMask, Choices, Image, ObsSpec, Part, width
from thrust_rl.maths.initializers import RELU_GAIN
from thrust_rl.policies.layers import IMAGE_FEATURES, Dense, ImageReader
from thrust_rl.types import Key


class Encoder(eqx.Module):
    """Parts read and put side by side, then layers of an arm's widths, each with its activation.

    Without layers, and with a vector for an observation, the observation is passed through.
    """

    images: tuple[ImageReader, ...]  # one for each image, in the order of the parts
    layers: tuple[Dense, ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)
    spec: ObsSpec = eqx.field(static=True)

    def __init__(self, spec: ObsSpec, arm: ArmConfig, *, key: Key) -> None:
        """Draw every layer.

        Raises:
            ConfigError: there is nothing to read, as where an action mask is all there is.
        """
        require(
            _read_width(spec) > 0,
            f"the observation holds nothing that {arm.name} could read: give the environment an observation with at"
            f" least one number, or the arm an input, as in {arm.name}+action",
        )
        images = [part for part in spec.parts if isinstance(part, Image)]
        keys = jax.random.split(key, max(1, len(arm.encoder_sizes)))
        image_keys = [jax.random.fold_in(key, len(keys) + i) for i in range(len(images))]
        self.spec = spec
        self.images = tuple(ImageReader(part, key=k) for part, k in zip(images, image_keys, strict=True))
        widths = (_read_width(spec), *arm.encoder_sizes)
        self.layers = tuple(
            Dense(a, b, gain=RELU_GAIN, key=k, is_orthogonal=arm.orthogonal_init)
            for a, b, k in zip(widths[:-1], widths[1:], keys, strict=False)
        )
        self.activation = jax.nn.relu if arm.activation == "relu" else jnp.tanh

    @property
    def out_dim(self) -> int:
        """Length of what comes out."""
        return self.layers[-1].bias.shape[0] if self.layers else _read_width(self.spec)

    def __call__(self, obs: PyTree) -> Float[Array, "*axes out"]:
        """Encode; leading axes are kept."""
        x = self._read(obs)
        for layer in self.layers:
            x = self.activation(layer(x))
        return x

    def _read(self, obs: PyTree) -> Float[Array, "*axes features"]:
        images = iter(self.images)
        read = []
        for part, value in zip(self.spec.parts, self.spec.leaves(obs), strict=True):
            if not isinstance(part, ActionMask):
                read.append(next(images)(value) if isinstance(part, Image) else _flat(part, value))
        return read[0] if len(read) == 1 else jnp.concatenate(read, axis=-1)


def _flat(part: Part, value: Array) -> Float[Array, "*axes features"]:
    """A part that is not an image as one axis of features."""
    axes = value.shape[: value.ndim - len(part.shape)]
    if isinstance(part, Choices):
        return _one_hots(value.reshape(*axes, -1), part.sizes)
    return value if len(part.shape) == 1 else value.reshape(*axes, -1)


def _one_hots(values: Int[Array, "*axes value"], sizes: tuple[int, ...]) -> Float[Array, "*axes alternative"]:
    """One-hots of different lengths, one after the other."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    alternative = np.concatenate([np.arange(size) for size in sizes])
    return (values[..., which] == alternative).astype(jnp.float32)


def _read_width(spec: ObsSpec) -> int:
    return sum(IMAGE_FEATURES if isinstance(part, Image) else width(part) for part in spec.parts)
