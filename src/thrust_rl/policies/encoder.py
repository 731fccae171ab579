"""The encoder: every part of an observation as features, and an arm's layers on top."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from thrust_rl.config import ArmConfig, require
from thrust_rl.envs.spaces import ActionMask, Choices, Image, ObsSpec, Part
from thrust_rl.maths.initializers import RELU_GAIN
from thrust_rl.policies.layers import CHOICE_FEATURES, IMAGE_FEATURES, ChoiceReader, Dense, ImageReader
from thrust_rl.types import Key


class Encoder(eqx.Module):
    """Parts read and put side by side, then layers of an arm's widths, each with its activation.

    Without layers, and with a vector for an observation, the observation is passed through.
    """

    images: tuple[ImageReader, ...]  # one for each image, in the order of the parts
    tables: tuple[ChoiceReader, ...]  # and one for each part of many choices
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
        keys = jax.random.split(key, max(1, len(arm.encoder_sizes)))
        images = [part for part in spec.parts if isinstance(part, Image)]
        tables = [part for part in spec.parts if isinstance(part, Choices) and part.is_looked_up]
        reader_keys = iter([jax.random.fold_in(key, len(keys) + i) for i in range(len(images) + len(tables))])
        self.spec = spec
        self.images = tuple(ImageReader(part, key=next(reader_keys)) for part in images)
        self.tables = tuple(ChoiceReader(part, key=next(reader_keys)) for part in tables)
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
        images, tables = iter(self.images), iter(self.tables)
        read = []
        for part, value in zip(self.spec.parts, self.spec.leaves(obs), strict=True):
            match part:
                case ActionMask():
                    continue
                case Image():
                    read.append(next(images)(value))
                case Choices(is_looked_up=True):
                    read.append(next(tables)(value))
                case _:
                    read.append(_flat(part, value))
        return read[0] if len(read) == 1 else jnp.concatenate(read, axis=-1)


def _flat(part: Part, value: Array) -> Float[Array, "*axes features"]:
    """A part without layers of its own as one axis of features."""
    axes = value.shape[: value.ndim - len(part.shape)]
    if isinstance(part, Choices):
        return _one_hots(value.reshape(*axes, -1), part.sizes * part.frames)
    return value if len(part.shape) == 1 else value.reshape(*axes, -1)


def _one_hots(values: Int[Array, "*axes value"], sizes: tuple[int, ...]) -> Float[Array, "*axes alternative"]:
    """One-hots of different lengths, one after the other."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    alternative = np.concatenate([np.arange(size) for size in sizes])
    return (values[..., which] == alternative).astype(jnp.float32)


def _read_width(spec: ObsSpec) -> int:
    return sum(_features(part) for part in spec.parts)


def _features(part: Part) -> int:
    """How many a part is read as."""
    match part:
        case ActionMask():
            return 0
        case Image():
            return IMAGE_FEATURES
        case Choices():
            return part.frames * (CHOICE_FEATURES * len(part.sizes) if part.is_looked_up else sum(part.sizes))
    return math.prod(part.shape)
