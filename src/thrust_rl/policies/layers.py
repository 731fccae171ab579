"""What networks are made of: a dense layer, a small stack of convolutions for images, a table for many choices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, UInt8

from thrust_rl.envs.spaces import Choices, Image
from thrust_rl.maths.initializers import RELU_GAIN, orthogonal, uniform
from thrust_rl.types import Key

CHANNELS = (16, 32, 32)
IMAGE_FEATURES = 128
CHOICE_FEATURES = 64


class Dense(eqx.Module):
    """x W + b on the last axis, zero b and W orthogonal or uniform."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __init__(self, in_dim: int, out_dim: int, *, gain: float, key: Key, is_orthogonal: bool = True) -> None:
        """Draw the weight."""
        draw = orthogonal if is_orthogonal else uniform
        self.weight = draw(key, in_dim, out_dim, gain=gain)
        self.bias = jnp.zeros(out_dim)

    def __call__(self, x: Float[Array, "*axes in"]) -> Float[Array, "*axes out"]:
        """Apply to any number of leading axes."""
        return x @ self.weight + self.bias


class ImageReader(eqx.Module):
    """Three 3 x 3 convolutions of stride 2 and a dense layer, each with ReLU: bytes in, `IMAGE_FEATURES` out."""

    kernels: tuple[Float[Array, "3 3 in out"], ...]
    dense: Dense
    part: Image = eqx.field(static=True)

    def __init__(self, part: Image, *, key: Key) -> None:
        """Draw every layer; stacked frames are channels."""
        keys = jax.random.split(key, len(CHANNELS) + 1)
        height, width, channels = part.shape[-3:]
        depths = (channels * (part.shape[0] if len(part.shape) == 4 else 1), *CHANNELS)
        self.part = part
        self.kernels = tuple(
            orthogonal(k, 9 * a, b, gain=RELU_GAIN).reshape(3, 3, a, b)
            for a, b, k in zip(depths[:-1], depths[1:], keys, strict=False)
        )
        for _ in CHANNELS:
            height, width = -(-height // 2), -(-width // 2)
        self.dense = Dense(height * width * CHANNELS[-1], IMAGE_FEATURES, gain=RELU_GAIN, key=keys[-1])

    def __call__(self, pixels: UInt8[Array, "*axes height width channel"]) -> Float[Array, "*axes features"]:
        """Read any number of leading axes."""
        axes = pixels.shape[: pixels.ndim - len(self.part.shape)]
        x = pixels.reshape(-1, *self.part.shape).astype(jnp.float32) / self.part.high
        if len(self.part.shape) == 4:
            x = jnp.moveaxis(x, 1, 3).reshape(len(x), *self.part.shape[1:3], -1)
        for kernel in self.kernels:
            x = lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x)
        return jax.nn.relu(self.dense(x.reshape(*axes, -1)))


class ChoiceReader(eqx.Module):
    """An embedding: for every value of a frame a table with `CHOICE_FEATURES` for each of its alternatives."""

    table: Float[Array, "alternative features"]  # of all values, one below the other; stacked frames share it
    part: Choices = eqx.field(static=True)

    def __init__(self, part: Choices, *, key: Key) -> None:
        """Draw the table, on the scale of standardized numbers."""
        self.table = jax.random.normal(key, (sum(part.sizes), CHOICE_FEATURES))
        self.part = part

    def __call__(self, values: Int[Array, "*axes_and_shape"]) -> Float[Array, "*axes features"]:
        """Look up, with any number of leading axes."""
        axes = values.shape[: values.ndim - len(self.part.shape)]
        begins = np.tile(np.cumsum((0, *self.part.sizes[:-1])), self.part.frames)
        return self.table[values.reshape(*axes, -1) + begins].reshape(*axes, -1)
