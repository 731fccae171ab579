"""Settings of the policies that loops written by hand are made of."""

import dataclasses

from thrust_rl import arrays
from thrust_rl.config import ActivationName, ArmConfig
from thrust_rl.envs.checks import checked_seed


@dataclasses.dataclass(frozen=True)
class MLPConfig:
    """A policy without memory; the defaults are those of the packaged arm `mlp`."""

    num_layers: int = 2
    """Hidden layers."""
    hidden_dim: int = 128
    """Width of each of them."""
    activation: ActivationName = "relu"
    """What follows each of them: relu or tanh."""
    orthogonal_init: bool = True
    """Orthogonal weights; else uniform ones of the same variance."""
    seed: int = 0
    """Of the parameters and of the actions drawn."""

    def __post_init__(self) -> None:
        """Check every field."""
        checked_seed(self.seed)
        _ = self.arm

    @property
    def arm(self) -> ArmConfig:
        """The same as data for `build_policy` and for packaged training."""
        width, depth = arrays.positive("hidden_dim", self.hidden_dim), arrays.positive("num_layers", self.num_layers)
        return ArmConfig(
            "mlp",
            encoder_sizes=(width,) * depth,
            activation=self.activation,
            orthogonal_init=self.orthogonal_init,
            learning_rate=3e-4,
        )


@dataclasses.dataclass(frozen=True)
class LSTMConfig:
    """A policy with an LSTM and no encoder; the defaults are those of the packaged arm `lstm`."""

    hidden_dim: int = 64
    """Width of the memory."""
    seed: int = 0
    """Of the parameters."""

    def __post_init__(self) -> None:
        """Check every field."""
        checked_seed(self.seed)
        _ = self.arm

    @property
    def arm(self) -> ArmConfig:
        """The same as data for `build_policy` and for packaged training."""
        width = arrays.positive("hidden_dim", self.hidden_dim)
        return ArmConfig("lstm", cell="lstm", hidden_dim=width, learning_rate=1.5e-3)
