"""How an arm is trained, as data: the budget, the window, and PPO."""

import dataclasses
from typing import Any, Literal

from thrust_rl.config.arms import ArmConfig
from thrust_rl.config.rules import (
    nearest,
    require,
    require_at_least,
    require_count,
    require_divides,
    require_flag,
    require_range,
    store_plain,
)

WindowStart = Literal["cold", "stored"]


@dataclasses.dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimization (Schulman et al. 2017), with the defaults of the flickering study."""

    gamma: float = 0.99
    """Discount factor."""
    gae_lambda: float = 0.95
    """λ of generalized advantage estimation: 0 is the TD error, 1 the Monte-Carlo return."""
    n_epochs: int = 4
    """Passes over each window. Recurrent windows drift off-policy fast: keep it low."""
    clip_range: float = 0.2
    """Clip of the importance ratio around 1."""
    clip_range_vf: float | None = 0.2
    """Clip of the value's move away from the acting value; none disables it."""
    vf_coef: float = 0.5
    """Weight of the value loss."""
    ent_coef: float = 0.01
    """Weight of the entropy bonus."""
    max_grad_norm: float = 0.5
    """Bound on the global norm of the gradient."""
    target_kl: float | None = None
    """Stop an update's remaining steps once the approximate KL passes 1.5 times this; none never stops."""
    normalize_advantage: bool = True
    """Standardize advantages within each minibatch."""
    reward_scale: float = 0.02
    """Rewards are multiplied by this for learning, so that values are of order 1. Reports stay raw."""
    normalize_obs: bool = True
    """Standardize observations by running moments; blanked (all-zero) frames pass through."""
    learning_rate: float | None = None
    """Learning rate of every arm; none leaves each arm its own (lstm 1.5e-3, mlp 3e-4)."""
    anneal_lr: bool = True
    """Lower the learning rate linearly to 5 % of its start over the run."""
    envs_per_minibatch: int = 4
    """Whole environment windows in a minibatch of an arm with memory."""
    batch_size: int = 128
    """Transitions in a minibatch of an arm without memory."""

    def __post_init__(self) -> None:
        """Check every field on its own; `TrainConfig` checks what depends on the window."""
        store_plain(self)
        require_range("gamma", self.gamma, 0.0, 1.0)
        require_range("gae_lambda", self.gae_lambda, 0.0, 1.0)
        require_at_least("clip_range", self.clip_range, 0.0, strict=True)
        require_at_least("vf_coef", self.vf_coef, 0.0)
        require_at_least("ent_coef", self.ent_coef, 0.0)
        require_at_least("max_grad_norm", self.max_grad_norm, 0.0, strict=True)
        require_at_least("reward_scale", self.reward_scale, 0.0, strict=True)
        for name in ("clip_range_vf", "target_kl", "learning_rate"):
            value = getattr(self, name)
            if value is not None:
                require_at_least(name, value, 0.0, strict=True)
        for name in ("n_epochs", "envs_per_minibatch", "batch_size"):
            require_count(name, getattr(self, name))
        for name in ("normalize_advantage", "normalize_obs", "anneal_lr"):
            require_flag(name, getattr(self, name))


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How one arm is trained: the budget, the window, and PPO."""

    total_timesteps: int = 500_000
    """Environment steps per arm and seed, over all environments; whole windows are run."""
    num_envs: int = 16
    """Environments stepped side by side."""
    num_steps: int = 128
    """Steps of each environment that one update learns from (the window)."""
    window_start: WindowStart = "cold"
    """Memory at a window's start: cold (zeros, acting and learning) or stored (carried on)."""
    ppo: PPOConfig = PPOConfig()
    """The learning algorithm."""

    def __post_init__(self) -> None:
        """Check what does not depend on the arm."""
        store_plain(self)
        for name in ("num_envs", "num_steps", "total_timesteps"):
            require_count(name, getattr(self, name))
        require(
            self.window_start in ("cold", "stored"),
            f"window_start is {self.window_start!r}: it must be 'cold' or 'stored'",
        )
        require(
            self.num_updates >= 1,
            f"total_timesteps is {self.total_timesteps}, less than one window of {self.num_envs} environments"
            f" x {self.num_steps} steps: give at least {self.steps_per_update}",
        )

    @property
    def steps_per_update(self) -> int:
        """Environment steps in one window of all environments."""
        return self.num_envs * self.num_steps

    @property
    def num_updates(self) -> int:
        """Whole windows within the budget."""
        return self.total_timesteps // self.steps_per_update

    def rows_per_minibatch(self, arm: ArmConfig) -> int:
        """Rows of one minibatch: windows for an arm with memory, transitions without.

        Raises:
            ConfigError: the window does not divide into whole minibatches.
        """
        if arm.has_memory:
            require_divides("envs_per_minibatch", self.ppo.envs_per_minibatch, "num_envs", self.num_envs)
            return self.ppo.envs_per_minibatch
        size, total = self.ppo.batch_size, self.steps_per_update
        require(
            size > 1 or not self.ppo.normalize_advantage,
            "batch_size is 1: a single advantage cannot be standardized; raise it, or turn normalize_advantage off",
        )
        require_divides("batch_size", size, "num_envs x num_steps", total)
        return size

    def learning_rate(self, arm: ArmConfig) -> float:
        """The arm's initial learning rate, unless the PPO settings override it."""
        return arm.learning_rate if self.ppo.learning_rate is None else self.ppo.learning_rate


def from_dict(cls: type[Any], data: dict[str, Any]) -> Any:
    """Rebuild one of these dataclasses from `dataclasses.asdict` after a trip through JSON.

    Raises:
        ConfigError: there is a field that the class does not have, or a value breaks a rule.
    """
    known = [field.name for field in dataclasses.fields(cls)]
    for name in data:
        require(name in known, f"{cls.__name__} has no field {name!r}{nearest(name, known)}")
    values = dict(data)
    if "ppo" in values:
        values["ppo"] = from_dict(PPOConfig, values["ppo"])
    if "encoder_sizes" in values:
        values["encoder_sizes"] = tuple(values["encoder_sizes"])
    return cls(**values)
