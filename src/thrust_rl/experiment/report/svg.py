"""Just enough SVG for plots: elements, a linear scale with round ticks, axes, lines, bands and markers."""

import dataclasses
import html
import math
from collections.abc import Iterable, Sequence

Point = tuple[float, float]

MARKERS = ("circle", "square", "triangle", "diamond", "cross", "plus", "down")
DASHES = ("", "7 4", "2 3", "9 3 2 3")


def element(tag: str, *children: str, **attributes: str | float | None) -> str:
    """One element. Children are markup; attribute values are escaped, and `stroke_width` means `stroke-width`."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(number(value), quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{given}>{''.join(children)}</{tag}>" if children else f"<{tag}{given}/>"


def number(value: str | float) -> str:
    """A coordinate with one decimal, without a trailing zero; text as it is."""
    if isinstance(value, str):
        return value
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def label(text: str, at: Point, **attributes: str | float | None) -> str:
    """Text at a point, escaped."""
    return element("text", html.escape(text), x=at[0], y=at[1], **attributes)


def picture(size: tuple[float, float], title: str, description: str, *children: str, name: str) -> str:
    """An SVG that scales with its column and tells a screen reader what it shows. `name` is unique on the page."""
    head = element("title", html.escape(title), id=f"{name}-title")
    text = element("desc", html.escape(description), id=f"{name}-desc")
    labelled = f"{name}-title {name}-desc"
    box = f"0 0 {number(size[0])} {number(size[1])}"
    return element("svg", head, text, *children, viewBox=box, role="img", aria_labelledby=labelled, class_="plot")


@dataclasses.dataclass(frozen=True)
class Scale:
    """Data to pixels, linearly."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value is drawn."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values inside the range."""
        return ticks(self.low, self.high, count)


def fitted(values: Iterable[float], start: float, end: float, *, margin: float = 0.06) -> Scale:
    """A scale that holds all the values and a little more; any range at all if there are none."""
    known = [value for value in values if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if low == high:
        low, high = low - (abs(low) * 0.1 or 1.0), high + (abs(high) * 0.1 or 1.0)
    spare = (high - low) * margin
    return Scale(low - spare, high + spare, start, end)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` multiples of 1, 2 or 5 times a power of ten.

    Example:
        >>> ticks(0.0, 480.0)
        [0.0, 100.0, 200.0, 300.0, 400.0]
    """
    rough = (high - low) / max(count, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    digits = max(-math.floor(math.log10(step)), 0) + 1
    return [round(i * step, digits) + 0.0 for i in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def compact(value: float) -> str:
    """A tick's number: thousands as k, millions as M.

    Example:
        >>> compact(250_000), compact(1_500_000), compact(-0.5), compact(40.0)
        ('250k', '1.5M', '−0.5', '40')
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if suffix == "k" else size)
            return f"{scaled:g}{suffix}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def y_axis(scale: Scale, left: float, right: float, *, count: int = 5) -> str:
    """Grid lines with numbers on the left."""
    parts = []
    for tick in scale.ticks(count):
        y = scale(tick)
        parts.append(element("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        parts.append(label(compact(tick), (left - 6, y + 4), text_anchor="end"))
    return "".join(parts)


def x_axis(scale: Scale, top: float, bottom: float, *, count: int = 5, grid: bool = False) -> str:
    """A line with ticks and numbers below, and grid lines if wanted."""
    parts = [element("line", x1=scale.start, x2=scale.end, y1=bottom, y2=bottom, class_="axis")]
    for tick in scale.ticks(count):
        x = scale(tick)
        if grid:
            parts.append(element("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"))
        parts.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis"))
        parts.append(label(compact(tick), (x, bottom + 18), text_anchor="middle"))
    return "".join(parts)


def path(points: Iterable[Point], *, closed: bool = False) -> str:
    """The `d` of a line through the points."""
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in points) + ("Z" if closed else "")


def area(xs: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> str:
    """The `d` of the area between two lines."""
    there = list(zip(xs, highs, strict=True))
    back = list(zip(xs, lows, strict=True))[::-1]
    return path([*there, *back], closed=True)


def marker(shape: str, at: Point, size: float = 4.0, **attributes: str | float | None) -> str:
    """A mark that differs from the others in black and white too."""
    (x, y), s = at, size
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=s, **attributes)
    outlines = {
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "triangle": [(0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
        "down": [(0, 1.2), (1.1, -0.9), (-1.1, -0.9)],
        "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
        "plus": _cross([(-0.35, -1.2), (0.35, -1.2), (0.35, -0.35), (1.2, -0.35), (1.2, 0.35), (0.35, 0.35)]),
        "cross": _cross([(-0.6, -1.1), (0, -0.5), (0.6, -1.1), (1.1, -0.6), (0.5, 0), (1.1, 0.6)]),
    }
    return element("path", d=path([(x + s * a, y + s * b) for a, b in outlines[shape]], closed=True), **attributes)


def _cross(half: list[Point]) -> list[Point]:
    """A shape of twelve corners from its first six: the others lie opposite."""
    return half + [(-a, -b) for a, b in half]
