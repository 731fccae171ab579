"""Effects under each other on one axis, and the performance profile over several tasks, as SVG."""

from collections.abc import Mapping, Sequence
from typing import Any

from thrust_rl.experiment.report.pairs import Effect
from thrust_rl.experiment.report.style import ArmStyle
from thrust_rl.experiment.report.svg import (
    Scale,
    area,
    element,
    fitted,
    label,
    marker,
    path,
    picture,
    x_axis,
    y_axis,
)

WIDTH, ROW = 440.0, 60.0


def effects_svg(effects: Sequence[Effect], *, min_effect: float | None, name: str) -> str | None:
    """One row per effect: every seed's difference, the mean and its interval, against 0 and ± the smallest effect."""
    if not effects:
        return None
    ends = [end for effect in effects for end in (effect.ends or (effect.mean, effect.mean))]
    every = [value for effect in effects for value in effect.differences.values()]
    limits = [min_effect, -min_effect] if min_effect is not None else []
    x = fitted([0.0, *ends, *limits, *every], 16.0, WIDTH - 16.0, margin=0.04)
    bottom = 10 + ROW * len(effects)
    parts = []
    if min_effect is not None:
        low, high = x(-min_effect), x(min_effect)
        parts.append(element("rect", x=low, y=6, width=high - low, height=bottom - 6, class_="delta"))
    parts.append(x_axis(x, 6, bottom, grid=True, count=5))
    parts.append(element("line", x1=x(0.0), x2=x(0.0), y1=6, y2=bottom, class_="zero"))
    parts += [_row(effect, x, 10 + ROW * i) for i, effect in enumerate(effects)]
    parts.append(label("difference in evaluation return", (WIDTH - 16, bottom + 36), text_anchor="end", class_="name"))
    said = " ".join(f"{effect.title}: {effect.mean:+.4g}." for effect in effects)
    return picture((WIDTH, bottom + 44), "Effects with their intervals", said, *parts, name=name)


def _row(effect: Effect, x: Scale, top: float) -> str:
    at = top + 32
    parts = [label(effect.title, (x.start + 2, top + 14), class_="name halo")]
    parts += [element("circle", cx=x(value), cy=at + 13, r=3, class_="pair") for value in effect.differences.values()]
    if effect.ends:
        low, high = (x(end) for end in effect.ends)
        parts.append(element("line", x1=low, x2=high, y1=at, y2=at, class_="result"))
        parts += [element("line", x1=end, x2=end, y1=at - 5, y2=at + 5, class_="result") for end in (low, high)]
    parts.append(marker("diamond", (x(effect.mean), at), 5.5, class_="result"))
    return element("g", *parts)


def profile_svg(aggregate: Mapping[str, Any], looks: dict[str, ArmStyle], *, name: str) -> str:
    """Share of runs above each normalized score, one line and one band per arm."""
    x, y = Scale(0.0, 1.0, 50.0, WIDTH - 16), Scale(0.0, 1.0, 252.0, 30.0)
    xs = [x(value) for value in aggregate["thresholds"]]
    drawn = []
    for profile in aggregate["profiles"]:
        look = looks[profile["name"]]
        lows, line, highs = ([y(value) for value in profile[key]] for key in ("low", "above", "high"))
        points = list(zip(xs, line, strict=True))
        marks = [marker(look.marker, point, 4, class_="dot") for point in points[5 + 4 * (look.index % 3) :: 16]]
        shade = element("path", d=area(xs, lows, highs), class_="band")
        line_ = element("path", d=path(points), class_="mean", stroke_dasharray=look.dash)
        drawn.append(element("g", shade, line_, *marks, class_=look.css))
    return picture(
        (WIDTH, 300.0),
        "Performance profile",
        f"Share of runs above each normalized score, over {', '.join(aggregate['tasks'])}.",
        y_axis(y, 50.0, WIDTH - 16),
        x_axis(x, 30.0, 252.0),
        label("share of runs above", (2, 16), class_="name"),
        label("normalized score", (WIDTH - 16, 290), class_="name", text_anchor="end"),
        *drawn,
        name=name,
    )
