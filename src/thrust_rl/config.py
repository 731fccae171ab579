"""Configuration: frozen dataclasses whose field docstrings are the documentation and the CLI help."""

import dataclasses
import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any, Literal, get_args

WindowStart = Literal["cold", "stored"]
CellName = Literal["none", "lstm", "gru"]
ActivationName = Literal["relu", "tanh"]

CELLS = get_args(CellName)
MAX_NAME = 80  # characters of an arm's name


class ConfigError(ValueError):
    """A setting breaks a rule; the message says what came, the rule and the remedy."""


def require(condition: bool, message: str) -> None:
    """Raise `ConfigError(message)` unless `condition` holds."""
    if not condition:
        raise ConfigError(message)


def _store_plain(config: Any) -> None:
    """Store numbers and flags as Python's own, whatever sort they came as, such as NumPy's: files hold these alone."""
    for field in dataclasses.fields(config):
        value = _plain(getattr(config, field.name))
        is_float = field.type in (float, float | None) and _is_number(value)
        object.__setattr__(config, field.name, float(value) if is_float else value)


def _plain(value: Any) -> Any:
    """A scalar of NumPy's as Python's own; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _require_number(name: str, value: object) -> None:
    require(_is_number(value), f"{name} is {value!r}: it must be a number")


def _require_range(name: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    _require_number(name, value)
    inside = math.isfinite(value) and (low < value if open_low else low <= value) and value <= high
    bracket = "(" if open_low else "["
    require(inside, f"{name} is {value}: it must lie in {bracket}{low}, {high}]")


def _require_at_least(name: str, value: float, low: float, *, strict: bool = False) -> None:
    """Check that `value` is a finite number at (or, if strict, above) `low`."""
    _require_number(name, value)
    ok = math.isfinite(value) and (value > low if strict else value >= low)
    require(ok, f"{name} is {value}: it must be finite and {'greater than' if strict else 'at least'} {low}")


def _require_count(name: str, value: object) -> None:
    """Check that `value` is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}: it must be a whole number")
    _require_at_least(name, value, 1)


def _require_flag(name: str, value: object) -> None:
    require(isinstance(value, bool), f"{name} is {value!r}: it must be True or False")


def _require_name(name: object) -> None:
    """Check that `name` can stand in a table, in a legend and on one line of a terminal."""
    ok = isinstance(name, str) and name.strip() != "" and name.isprintable() and len(name) <= MAX_NAME
    rule = f"an arm needs a name of 1 to {MAX_NAME} printable characters on one line, not all blank"
    require(ok, f"name is {name!r}: {rule}")


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
        _store_plain(self)
        _require_range("gamma", self.gamma, 0.0, 1.0)
        _require_range("gae_lambda", self.gae_lambda, 0.0, 1.0)
        _require_at_least("clip_range", self.clip_range, 0.0, strict=True)
        _require_at_least("vf_coef", self.vf_coef, 0.0)
        _require_at_least("ent_coef", self.ent_coef, 0.0)
        _require_at_least("max_grad_norm", self.max_grad_norm, 0.0, strict=True)
        _require_at_least("reward_scale", self.reward_scale, 0.0, strict=True)
        for name in ("clip_range_vf", "target_kl", "learning_rate"):
            value = getattr(self, name)
            if value is not None:
                _require_at_least(name, value, 0.0, strict=True)
        for name in ("n_epochs", "envs_per_minibatch", "batch_size"):
            _require_count(name, getattr(self, name))
        for name in ("normalize_advantage", "normalize_obs", "anneal_lr"):
            _require_flag(name, getattr(self, name))


@dataclasses.dataclass(frozen=True)
class ArmConfig:
    """One arm of a comparison: encoder → memory cell → heads, as data.

    Example:
        >>> ArmConfig("wide", cell="lstm", hidden_dim=128).encoder_sizes
        ()
    """

    name: str
    """What tables, plots and files call this arm."""
    cell: CellName = "none"
    """Memory cell: none, lstm or gru."""
    encoder_sizes: tuple[int, ...] = ()
    """Widths of the layers in front of the cell; empty feeds the observation straight in."""
    hidden_dim: int = 64
    """Width of the memory; unused without one."""
    learning_rate: float = 3e-4
    """Initial learning rate of Adam."""
    activation: ActivationName = "relu"
    """What follows every layer of the encoder: relu or tanh."""
    orthogonal_init: bool = True
    """Orthogonal weights in encoder and heads; else uniform ones of the same variance. A cell's are orthogonal."""
    reset_memory: bool = False
    """Empty the memory at every step: the same parameters without memory, a control for what memory is worth."""
    frame_stack: int = 1
    """How many of the last frames are fed, the newest included; zeros before an episode's first."""
    previous_action: bool = False
    """Feed the previous action beside the frame: a memory channel of its own."""
    previous_reward: bool = False
    """Feed the previous reward, scaled, beside the frame: a memory channel of its own."""

    def __post_init__(self) -> None:
        """Check that the arm can be built."""
        _store_plain(self)
        _require_name(self.name)
        require(self.cell in CELLS, f"cell is {self.cell!r}: it must be one of {', '.join(CELLS)}")
        known = ("relu", "tanh")
        require(self.activation in known, f"activation is {self.activation!r}: it must be 'relu' or 'tanh'")
        _require_count("hidden_dim", self.hidden_dim)
        _require_count("frame_stack", self.frame_stack)
        _require_at_least("learning_rate", self.learning_rate, 0.0, strict=True)
        sizes = self.encoder_sizes
        listed = isinstance(sizes, tuple | list)
        require(listed, f"encoder_sizes is {sizes!r}: it must be a tuple of widths, such as (64, 64)")
        object.__setattr__(self, "encoder_sizes", tuple(map(_plain, sizes)))
        for width in self.encoder_sizes:
            _require_count("encoder_sizes", width)
        for name in ("orthogonal_init", "reset_memory", "previous_action", "previous_reward"):
            _require_flag(name, getattr(self, name))

    @property
    def has_memory(self) -> bool:
        """Whether the arm has a cell; minibatches are then whole windows."""
        return self.cell != "none"

    @property
    def asks_for_inputs(self) -> bool:
        """Whether the arm is fed more than the present frame."""
        return self.previous_action or self.previous_reward or self.frame_stack > 1

    def with_inputs(self, *, previous_action: bool = False, previous_reward: bool = False) -> "ArmConfig":
        """The arm with inputs added, which its name shows.

        Example:
            >>> ARMS["lstm"].with_inputs(previous_action=True).name
            'lstm+action'
        """
        action, reward = previous_action and not self.previous_action, previous_reward and not self.previous_reward
        return dataclasses.replace(
            self,
            name=self.name + "+action" * action + "+reward" * reward,
            previous_action=self.previous_action or previous_action,
            previous_reward=self.previous_reward or previous_reward,
        )


ARMS: dict[str, ArmConfig] = {
    "lstm": ArmConfig("lstm", cell="lstm", hidden_dim=64, learning_rate=1.5e-3),
    "gru": ArmConfig("gru", cell="gru", hidden_dim=64, learning_rate=1.5e-3),
    "lstm-reset": ArmConfig("lstm-reset", cell="lstm", hidden_dim=64, learning_rate=1.5e-3, reset_memory=True),
    "mlp": ArmConfig("mlp", encoder_sizes=(128, 128), learning_rate=3e-4),
}


INPUTS = ("action", "reward")
FRAMESTACK = "framestack"


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
        _store_plain(self)
        for name in ("num_envs", "num_steps", "total_timesteps"):
            _require_count(name, getattr(self, name))
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


def require_divides(name: str, size: int, total_name: str, total: int) -> None:
    """Raise `ConfigError`, naming the nearest divisor, unless `size` divides `total`."""
    if total % size:
        near = min((d for d in range(1, total + 1) if total % d == 0), key=lambda d: (abs(d - size), d))
        raise ConfigError(
            f"{total_name} is {total}, which {name} {size} does not divide:"
            f" set {name} to {near}, or change {total_name}"
        )


def arm_from(value: str | ArmConfig) -> ArmConfig:
    """An arm by name, or an `ArmConfig` passed through.

    A name is a preset's or `framestack:K` (the mlp fed with the last K frames), followed by `+action` and `+reward`
    for the inputs it is to get.

    Raises:
        ConfigError: no arm has that name; the nearest one is suggested.

    Example:
        >>> arm_from("framestack:4+action").frame_stack
        4
    """
    if isinstance(value, ArmConfig):
        return value
    base, *inputs = value.split("+")
    for name in inputs:
        require(name in INPUTS, f"arm {value!r} asks for the input {name!r}{nearest(name, INPUTS)}")
    kind, _, argument = base.partition(":")
    if kind == FRAMESTACK:
        arm = _framestack(value, argument)
    elif base in ARMS:
        arm = ARMS[base]
    else:
        raise ConfigError(f"no arm is called {value!r}{nearest(base, (*ARMS, f'{FRAMESTACK}:K'))}")
    return arm.with_inputs(previous_action="action" in inputs, previous_reward="reward" in inputs)


def _framestack(value: str, argument: str) -> ArmConfig:
    ok = argument.isdecimal() and int(argument) >= 2
    require(ok, f"arm is {value!r}: say how many frames are stacked, at least 2, for example {FRAMESTACK}:4")
    return dataclasses.replace(ARMS["mlp"], name=f"{FRAMESTACK}:{int(argument)}", frame_stack=int(argument))


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name was probably meant, and what there is."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    hint = f": did you mean {close[0]!r}?" if close else ""
    return f"{hint} (there are {', '.join(known)})"


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
