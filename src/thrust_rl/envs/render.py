"""Pictures of a cart-pole, as pixels or as text; what the sensor blanked is visibly blank."""

import functools
import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from thrust_rl.config import require
from thrust_rl.envs.cartpole import ANGLE_LIMIT, HALF_LENGTH, POSITION_LIMIT, CartPoleState

RENDER_MODES = ("rgb_array", "ansi")
FRAMES_PER_SECOND = 50  # one per 20 ms of physics

HEIGHT, WIDTH = 400, 600  # pixels
SCALE = WIDTH / (2 * POSITION_LIMIT + 0.6)  # pixels per metre: both ends of the track are in the picture
TRACK_ROW = 300.0
CART_HALF = (26.0, 13.0)  # pixels
POLE_RADIUS, AXLE_RADIUS = 5.0, 3.5
PAPER = (255, 255, 255)
DARK_STRIPE, LIGHT_STRIPE = (196, 196, 202), (222, 222, 226)  # a blank frame's background
STRIPE_PERIOD, STRIPE_WIDTH = 24, 6  # pixels
TRACK, CART, POLE, AXLE = (120, 120, 120), (45, 50, 60), (202, 140, 80), (110, 115, 205)
FAINT = 0.22  # opacity of the true state behind a blank frame

COLUMNS = 49  # of the text picture
POLE_ROWS = 4

Point: TypeAlias = tuple[float, float]  # x to the right and y down, in pixels
Colour: TypeAlias = tuple[int, int, int]


def checked_render_mode(mode: str | None) -> str | None:
    """The mode, if there is such a one.

    Raises:
        ConfigError: there is not.
    """
    require(
        mode is None or mode in RENDER_MODES,
        f"render_mode is {mode!r}: it must be 'rgb_array', 'ansi' or None;"
        " for a window, gymnasium.make(..., render_mode='human') wraps 'rgb_array'",
    )
    return mode


def picture(physics: Any, *, blank: bool, mode: str | None) -> NDArray[np.uint8] | str:
    """Draw a hidden state as the sensor's `blank` says it was seen.

    Raises:
        ValueError: no mode was chosen, or nobody knows how to draw this physics.
    """
    if mode is None:
        raise ValueError("render() without a render_mode: construct the environment with 'rgb_array' or 'ansi'")
    if not isinstance(physics, CartPoleState):
        raise ValueError(f"there is no picture of a {type(physics).__name__}: only cart-poles are drawn")
    position, angle = float(physics.position), float(physics.angle)
    if mode == "ansi":
        return cartpole_text(position, angle, blank=blank)
    return cartpole_pixels(position, angle, blank=blank)


def cartpole_pixels(position: float, angle: float, *, blank: bool = False) -> NDArray[np.uint8]:
    """400 x 600 RGB: track, cart, pole; a blank frame is hatched, with the true state faintly behind.

    Example:
        >>> cartpole_pixels(0.0, 0.1).shape
        (400, 600, 3)
    """
    canvas = _background(blank).copy()
    opacity = FAINT if blank else 1.0
    x = WIDTH / 2 + SCALE * position
    axle = (x, TRACK_ROW - 2 * CART_HALF[1])
    length = 2 * HALF_LENGTH * SCALE
    tip = (axle[0] + length * math.sin(angle), axle[1] - length * math.cos(angle))
    _paint_box(canvas, (x, TRACK_ROW - CART_HALF[1]), CART_HALF, CART, opacity)
    _paint_line(canvas, axle, tip, POLE_RADIUS, POLE, opacity)
    _paint_line(canvas, axle, axle, AXLE_RADIUS, AXLE, opacity)
    return canvas.round().astype(np.uint8)


def cartpole_text(position: float, angle: float, *, blank: bool = False) -> str:
    """Six short lines; a blank frame shows the track and says that it is blank.

    Example:
        >>> print(cartpole_text(0.0, 0.0, blank=True).splitlines()[-1])
        blank frame: nothing was observed
    """
    if blank:
        return "\n".join([""] * POLE_ROWS + ["?" * COLUMNS, "blank frame: nothing was observed"])
    column = round((position / POSITION_LIMIT + 1) / 2 * (COLUMNS - 1))
    column = min(max(column, 1), COLUMNS - 2)
    lean = angle / ANGLE_LIMIT  # drawn wider than it is: at its limit the pole leans one column per row
    glyph = "|" if abs(lean) < 0.25 else ("/" if lean > 0 else "\\")
    rows = []
    for height in range(POLE_ROWS, 0, -1):
        offset = min(max(column + round(lean * height), 0), COLUMNS - 1)
        rows.append(" " * offset + glyph)
    track = "-" * (column - 1) + "[=]" + "-" * (COLUMNS - column - 2)
    return "\n".join([*rows, track, f"position {position:+.2f} m, angle {math.degrees(angle):+.1f} deg"])


@functools.cache
def _background(blank: bool) -> NDArray[np.float32]:
    """Paper, or diagonal stripes where blank, and the track with its two ends. Shared: copy before painting on it."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    stripe = ((x + y) % STRIPE_PERIOD < STRIPE_WIDTH)[..., None]
    paper, dark, light = (np.array(colour, np.float32) for colour in (PAPER, DARK_STRIPE, LIGHT_STRIPE))
    canvas = np.where(stripe, dark, light) if blank else np.broadcast_to(paper, (HEIGHT, WIDTH, 3)).copy()
    left, right = (WIDTH / 2 + sign * SCALE * POSITION_LIMIT for sign in (-1, 1))
    _paint_line(canvas, (left, TRACK_ROW), (right, TRACK_ROW), 1.0, TRACK, 1.0)
    for end in (left, right):
        _paint_line(canvas, (end, TRACK_ROW - 8), (end, TRACK_ROW + 8), 1.0, TRACK, 1.0)
    return canvas


def _paint_line(
    canvas: NDArray[np.float32], start: Point, end: Point, radius: float, colour: Colour, opacity: float
) -> None:
    """A line with round ends, 2 x `radius` wide; a disc if start and end agree."""
    low = (min(start[0], end[0]) - radius, min(start[1], end[1]) - radius)
    high = (max(start[0], end[0]) + radius, max(start[1], end[1]) + radius)
    patch, x, y = _patch(canvas, low, high)
    (x, y), (dx, dy) = (x - start[0], y - start[1]), (end[0] - start[0], end[1] - start[1])
    along = np.clip((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-9), 0.0, 1.0)
    _blend(patch, np.hypot(x - along * dx, y - along * dy) - radius, colour, opacity)


def _paint_box(canvas: NDArray[np.float32], centre: Point, half: Point, colour: Colour, opacity: float) -> None:
    """An upright rectangle."""
    low, high = (centre[0] - half[0], centre[1] - half[1]), (centre[0] + half[0], centre[1] + half[1])
    patch, x, y = _patch(canvas, low, high)
    _blend(patch, np.maximum(np.abs(x - centre[0]) - half[0], np.abs(y - centre[1]) - half[1]), colour, opacity)


def _patch(
    canvas: NDArray[np.float32], low: Point, high: Point
) -> tuple[NDArray[np.float32], NDArray[np.floating], NDArray[np.floating]]:
    """The part of the canvas that a shape within these corners can touch, and its pixels' centres x and y."""
    left, top = max(math.floor(low[0]) - 1, 0), max(math.floor(low[1]) - 1, 0)
    right, bottom = max(math.ceil(high[0]) + 1, left), max(math.ceil(high[1]) + 1, top)
    patch = canvas[top:bottom, left:right]
    return patch, left + 0.5 + np.arange(patch.shape[1])[None, :], top + 0.5 + np.arange(patch.shape[0])[:, None]


def _blend(patch: NDArray[np.float32], distance: NDArray[np.floating], colour: Colour, opacity: float) -> None:
    """Lay a colour over the patch where the signed distance to a shape is negative, with smooth edges."""
    cover = opacity * np.clip(0.5 - distance, 0.0, 1.0)[..., None]
    patch += (cover * (np.array(colour) - patch)).astype(np.float32)
