"""Arms of a comparison as data: what each is built of, the presets, and how a name says which."""

import dataclasses
from typing import Literal, get_args

from thrust_rl.config.rules import (
    ConfigError,
    nearest,
    plain,
    require,
    require_at_least,
    require_count,
    require_flag,
    store_plain,
)

CellName = Literal["none", "lstm", "gru"]
ActivationName = Literal["relu", "tanh"]

CELLS = get_args(CellName)
MAX_NAME = 80  # characters of an arm's name
INPUTS = ("action", "reward")
FRAMESTACK = "framestack"


def _require_name(name: object) -> None:
    """Check that `name` can stand in a table, in a legend and on one line of a terminal."""
    ok = isinstance(name, str) and name.strip() != "" and name.isprintable() and len(name) <= MAX_NAME
    rule = f"an arm needs a name of 1 to {MAX_NAME} printable characters on one line, not all blank"
    require(ok, f"name is {name!r}: {rule}")


@dataclasses.dataclass(frozen=True)
class ArmConfig:
    """One arm of a comparison: encoder → memory cell → heads, as data.

    Example:
        >>> ArmConfig("wide", cell="lstm", hidden_dim=128).encoder_sizes
        ()
    """

    name: str
    """What tables, plots and files call this arm; a comparison adds +action and +reward where it is fed these."""
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
        store_plain(self)
        _require_name(self.name)
        require(self.cell in CELLS, f"cell is {self.cell!r}: it must be one of {', '.join(CELLS)}")
        known = ("relu", "tanh")
        require(self.activation in known, f"activation is {self.activation!r}: it must be 'relu' or 'tanh'")
        require_count("hidden_dim", self.hidden_dim)
        require_count("frame_stack", self.frame_stack)
        require_at_least("learning_rate", self.learning_rate, 0.0, strict=True)
        sizes = self.encoder_sizes
        listed = isinstance(sizes, tuple | list)
        require(listed, f"encoder_sizes is {sizes!r}: it must be a tuple of widths, such as (64, 64)")
        object.__setattr__(self, "encoder_sizes", tuple(map(plain, sizes)))
        for width in self.encoder_sizes:
            require_count("encoder_sizes", width)
        for name in ("orthogonal_init", "reset_memory", "previous_action", "previous_reward"):
            require_flag(name, getattr(self, name))

    @property
    def has_memory(self) -> bool:
        """Whether the arm has a cell; minibatches are then whole windows."""
        return self.cell != "none"

    @property
    def asks_for_inputs(self) -> bool:
        """Whether the arm is fed more than the present frame."""
        return self.previous_action or self.previous_reward or self.frame_stack > 1

    def with_inputs(self, *, previous_action: bool = False, previous_reward: bool = False) -> "ArmConfig":
        """The arm with inputs added; its name shows all it has, for they are a memory channel that no table may hide.

        Example:
            >>> ARMS["lstm"].with_inputs(previous_action=True).name
            'lstm+action'
        """
        action, reward = self.previous_action or previous_action, self.previous_reward or previous_reward
        shown = self.name.split("+")[1:]
        fed = [name for name, is_fed in zip(INPUTS, (action, reward), strict=True) if is_fed and name not in shown]
        return dataclasses.replace(
            self,
            name="+".join([self.name, *fed]),
            previous_action=action,
            previous_reward=reward,
        )


ARMS: dict[str, ArmConfig] = {
    "lstm": ArmConfig("lstm", cell="lstm", hidden_dim=64, learning_rate=1.5e-3),
    "gru": ArmConfig("gru", cell="gru", hidden_dim=64, learning_rate=1.5e-3),
    "lstm-reset": ArmConfig("lstm-reset", cell="lstm", hidden_dim=64, learning_rate=1.5e-3, reset_memory=True),
    "mlp": ArmConfig("mlp", encoder_sizes=(128, 128), learning_rate=3e-4),
}


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
