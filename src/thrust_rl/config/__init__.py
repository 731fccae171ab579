"""Configuration: frozen dataclasses whose field docstrings are the documentation and the CLI help."""

from thrust_rl.config.arms import ARMS, FRAMESTACK, INPUTS, ActivationName, ArmConfig, arm_from
from thrust_rl.config.rules import ConfigError, nearest, require, require_divides
from thrust_rl.config.training import PPOConfig, TrainConfig, from_dict

__all__ = [
    "ARMS",
    "FRAMESTACK",
    "INPUTS",
    "ActivationName",
    "ArmConfig",
    "ConfigError",
    "PPOConfig",
    "TrainConfig",
    "arm_from",
    "from_dict",
    "nearest",
    "require",
    "require_divides",
]
