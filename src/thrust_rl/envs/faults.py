"""What is wrong with what an environment gave: checks that name the environment, the step and the fault."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import ConfigError
from thrust_rl.envs.mask_faults import flat_mask, misfit, without_alternative
from thrust_rl.envs.spaces import ActionMask, Choices, Image, Numbers, ObsSpec, Part, Switches, obs_spec

SAID_CHARACTERS = 1000  # of an exception's message
TOLERANCE = 1e-5  # float32 bounds against float64 numbers
MAX_SHOWN = 16  # numbers of an observation, in a message
NOT_FINITE = "it gave an observation that is not finite: {}"
OUTSIDE = "it gave an observation outside its space: {}"


class EnvError(RuntimeError):
    """An environment failed; the message says which, at which of its steps, and how."""


def env_error(index: int, step: int, fault: str) -> EnvError:
    """Environment `index` failed at its `step`, counted over all its episodes."""
    return EnvError(f"environment {index} at step {step}: {fault}")


class Bounds(NamedTuple):
    """The lowest and the highest value a part of an observation may have; both finite."""

    low: NDArray[Any]
    high: NDArray[Any]

    def hold(self, values: NDArray[Any]) -> bool:
        """No value is outside, and none is NaN."""
        return bool(((values >= self.low) & (values <= self.high)).all())


class Fault(Exception):
    """What is wrong, said by who does not know when; `index`: of the environment, if that is known."""

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


def fault_of(error: BaseException) -> str:
    """What is wrong, from what was raised on the way of an observation from an environment into an array; one line."""
    try:
        said = " ".join(str(error).split())[:SAID_CHARACTERS]
    except Exception:  # noqa: BLE001  # an exception of somebody's own
        said = "(its message cannot be read)"
    old = "; step() must return observation, reward, terminated, truncated and info: this one follows Gym's older rules"
    raised = f"it raised {type(error).__name__}: {said}"
    return said if isinstance(error, Fault | ConfigError) else raised + (old if "(expected 5, got 4)" in raised else "")


def taken_frame(spec: ObsSpec, obs: Any) -> list[NDArray[Any]]:
    """An observation as the arrays of the spec; `faulty_rows` looks at the numbers in them.

    Raises:
        Fault: a key is missing, a shape differs, or a number cannot be stored.
    """
    try:
        values = [obs] if len(spec.parts) == 1 and spec.is_array else spec.leaves(obs)
    except ValueError as error:
        raise Fault(f"its observation has another structure than its observation_space: {error}") from None
    return [taken_part(part, value) for part, value in zip(spec.parts, values, strict=True)]


def taken_part(part: Part, value: Any) -> NDArray[Any]:
    """One part of an observation as it is stored.

    Raises:
        Fault: the shape differs, or a number would become another one on the way into the part's own type.
    """
    if isinstance(part, ActionMask):
        return _taken_mask(part, value)
    given = np.asarray(value)
    if given.shape != _given(part):
        raise Fault(
            f"it gave an observation of shape {given.shape}: its space says {_given(part)};"
            " fix the environment or its observation_space"
        )
    if given.dtype != part.dtype and isinstance(part, Image | Choices):
        require_kept(given, part.dtype)
    return part.take(given)


def _taken_mask(part: ActionMask, value: Any) -> NDArray[Any]:
    given = flat_mask(value)
    fault = misfit(part, given)
    if fault is not None:
        raise Fault(fault)
    return part.take(given)


def require_kept(given: NDArray[Any], dtype: Any) -> None:
    """A cast to bytes or whole numbers would lose nothing: 300 is no byte, 0.7 no choice, NaN neither.

    Raises:
        Fault: it would.
    """
    lost = _lost(given, dtype)
    if not (lost.any() if lost.ndim else lost):  # the second is the quicker for a single number
        return
    finite = np.isfinite(given)
    if not finite.all():
        raise Fault(NOT_FINITE.format(_shown(given, ~finite)))
    kind = f"{np.dtype(dtype)}; no cast can mend that: fix the environment or its observation_space"
    raise Fault(f"{OUTSIDE.format(_shown(given, lost))}, which is no {kind}")


def _lost(given: NDArray[Any], dtype: Any) -> NDArray[np.bool_]:
    """Which numbers a cast would change."""
    if given.dtype.kind in "iub":
        return np.asarray(given.astype(dtype) != given)
    finite = np.isfinite(given)
    with np.errstate(invalid="ignore"):
        return np.asarray(~finite | (given.astype(dtype) != given))


def faulty_rows(
    spec: ObsSpec, bounds: Sequence[Bounds | None], parts: Sequence[NDArray[Any]], over: NDArray[np.bool_]
) -> dict[int, str]:
    """What is wrong with frames of several environments, by row.

    Args:
        spec: what is expected.
        bounds: the lowest and highest value of every part; None where they are not checked.
        parts: the arrays of the frames, `[env, ...]`.
        over: which frames end an episode: nobody acts on them.
    """
    faults: dict[int, str] = {}
    for part, limits, values in zip(spec.parts, bounds, parts, strict=True):
        # The usual case, in the fewest operations: this runs at every step.
        if isinstance(part, Numbers | Image) and limits is not None and limits.hold(values):
            continue
        for wrong, fault in _doubts(part, limits, values, over):
            if wrong.any():
                rows = np.flatnonzero(wrong.reshape(len(values), -1).any(axis=1)).tolist()
                faults = {**{i: fault.format(_shown(values[i], wrong[i])) for i in rows}, **faults}
    return faults


def _doubts(
    part: Part, limits: Bounds | None, values: NDArray[Any], over: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Which numbers are wrong, and in which way."""
    if isinstance(part, ActionMask):
        yield from without_alternative(part, values, over)
        return
    if values.dtype.kind == "f":
        yield ~np.isfinite(values), NOT_FINITE
    if isinstance(part, Choices):
        sizes = np.array(part.sizes).reshape(part.shape)
        yield (values < 0) | (values >= sizes), f"{OUTSIDE} (counted from 0)"
    elif limits is not None:
        outside = (values < limits.low) | (values > limits.high)
        no_bit = (values != 0) & (values != 1) if isinstance(part, Switches) else False
        yield (
            outside | no_bit,
            f"{OUTSIDE}; fix its observation_space, or let such observations pass with --allow-out-of-range",
        )


def _shown(values: Any, wrong: Any) -> Any:
    """The observation, or of a large one some numbers that are wrong."""
    return values.tolist() if values.size <= MAX_SHOWN else values[wrong][:MAX_SHOWN].tolist()


def bounds_of(space: gymnasium.spaces.Space[Any]) -> list[Bounds | None]:
    """The bounds of every part of a space, with some tolerance; None for parts that have none.

    In the order of `obs_spec(space).parts`.
    """
    return jax.tree.leaves(_bounds(space), is_leaf=lambda leaf: leaf is None or isinstance(leaf, Bounds))


def _bounds(space: gymnasium.spaces.Space[Any]) -> Any:
    match space:
        case gymnasium.spaces.Dict():
            return {name: _bounds(inner) for name, inner in space.spaces.items()}
        case gymnasium.spaces.Tuple():
            return tuple(map(_bounds, space.spaces))
        case gymnasium.spaces.MultiBinary():
            return Bounds(np.zeros(space.shape, np.float32), np.ones(space.shape, np.float32))
        case gymnasium.spaces.Box() if space.dtype == np.uint8:
            return _byte_bounds(space)
        case gymnasium.spaces.Box():
            low, high = space.low.astype(np.float64), space.high.astype(np.float64)
            slack = [np.where(np.isfinite(bound), TOLERANCE * (1 + np.abs(bound)), 0) for bound in (low, high)]
            most = np.finfo(np.float32).max
            low, high = np.clip(low - slack[0], -most, most), np.clip(high + slack[1], -most, most)
            return Bounds(low.astype(np.float32), high.astype(np.float32))
    return None


def _byte_bounds(space: gymnasium.spaces.Box) -> Bounds | None:
    """Laid out as what is stored; an image whose pixels may be any byte needs none."""
    [part] = obs_spec(space).parts
    if isinstance(part, Image) and (space.low == 0).all() and (space.high == np.iinfo(np.uint8).max).all():
        return None
    return Bounds(part.take(space.low), part.take(space.high))


def _given(part: Part) -> tuple[int, ...]:
    """The shape in which the environment gives the part."""
    if not isinstance(part, Image):
        return part.shape
    if part.channels_first:
        return (part.shape[-1], *part.shape[:-1])
    return part.shape[:-1] if part.flat else part.shape


def one_number(reward: Any) -> float:
    """A reward as a float.

    Raises:
        Fault: it is anything but one number.
    """
    try:
        return float(reward)
    except (TypeError, ValueError):
        raise Fault(f"its reward is {reward!r}: every step must give one number") from None
