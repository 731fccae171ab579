"""Evaluation returns of one condition as SVG: one point per seed and arm, pairs joined, their difference beside."""

from thrust_rl.experiment.report.data import Arm, Condition, ends_of
from thrust_rl.experiment.report.pairs import Effect
from thrust_rl.experiment.report.style import ArmStyle
from thrust_rl.experiment.report.svg import (
    Scale,
    compact,
    element,
    fitted,
    label,
    marker,
    number,
    path,
    picture,
    y_axis,
)
from thrust_rl.experiment.verdict import decimals

SIZE = (440.0, 300.0)
LEFT, RIGHT, TOP, BOTTOM = 50.0, 428.0, 26.0, 252.0
SPLIT, PANEL = 268.0, (312.0, 392.0)  # where the arms end, and where the difference stands
CHARACTER = 7.0  # pixels, of a label
SLANTED = 13  # characters of a slanted label


def evaluation_svg(
    condition: Condition, effect: Effect | None, looks: dict[str, ArmStyle], *, min_effect: float | None, name: str
) -> str | None:
    """None where nothing was evaluated."""
    arms = [arm for arm in condition.arms if arm.scores]
    if not arms:
        return None
    right = SPLIT if effect else RIGHT
    y = fitted(_all_values(arms), BOTTOM, TOP + 4)
    width = (right - LEFT) / len(arms)
    crowded = max(len(arm.name) for arm in arms) * CHARACTER > width
    places = {arm.name: LEFT + width * (i + 0.5) for i, arm in enumerate(arms)}
    parts = [
        y_axis(y, LEFT, right),
        label("evaluation return, one point per seed", (2, 14), class_="name"),
        element("line", x1=LEFT, x2=right, y1=BOTTOM, y2=BOTTOM, class_="axis"),
        _slopes(arms, places, y),
        *(_arm(arm, looks[arm.name], places, y, width, crowded) for arm in arms),
    ]
    if effect:
        parts.append(_difference(effect, min_effect))
    title = f"Evaluation returns on {condition.title}"
    size = (SIZE[0], SIZE[1] + 14) if crowded else SIZE
    return picture(size, title, _description(arms, effect), *parts, name=name)


def _all_values(arms: list[Arm]) -> list[float]:
    """Every score, and the ends of every mean's interval."""
    values = [score for arm in arms for score in arm.scores.values()]
    for arm in arms:
        values += interval_of(arm) or ()
    return values


def interval_of(arm: Arm) -> tuple[float, float] | None:
    """Of the arm's mean score."""
    return ends_of(arm.summary["mean"], num_seeds=arm.summary["num_seeds"]) if arm.summary else None


def evaluation_note(condition: Condition, effect: Effect | None, min_effect: float | None) -> str:
    """What is drawn, for a caption."""
    arms = [arm for arm in condition.arms if arm.scores]
    said = ["A line joins the arms of one seed."] if len(arms) > 1 else []
    said.append("Dash: mean." if not any(map(interval_of, arms)) else "Dash and bar: mean and its 95 % interval.")
    if effect:
        bar = f"diamond and bar: mean and {effect.percent} interval" if effect.ends else "diamond: mean"
        said.append(f"Right: {effect.first} minus {effect.second}, one circle per seed; {bar}.")
        said += ["Shaded: ± the smallest effect of interest."] if min_effect else []
    return " ".join(said)


def _slopes(arms: list[Arm], places: dict[str, float], y: Scale) -> str:
    """One line per seed through every arm that has it."""
    scores = {arm.name: arm.scores for arm in arms}
    lines = []
    for seed in sorted({seed for each in scores.values() for seed in each}):
        points = [(places[name], y(each[seed])) for name, each in scores.items() if seed in each]
        if len(points) > 1:
            lines.append(element("path", element("title", f"seed {seed}"), d=path(points), class_="slope"))
    return "".join(lines)


def _arm(arm: Arm, look: ArmStyle, places: dict[str, float], y: Scale, width: float, crowded: bool) -> str:
    x = places[arm.name]
    first = x == min(places.values())
    parts = [marker(look.marker, (x, y(score)), 4, class_="dot") for score in arm.scores.values()]
    gap = min(16.0, 0.3 * width)
    ends, aside, half = interval_of(arm), x + (-gap if first else gap), 0.4 * gap
    if ends:
        parts.append(element("line", x1=aside, x2=aside, y1=y(ends[0]), y2=y(ends[1]), class_="interval"))
    if arm.summary:
        at = y(arm.summary["mean"]["value"])
        parts.append(element("line", x1=aside - half, x2=aside + half, y1=at, y2=at, class_="interval"))
    parts.append(_name(arm.name, x, crowded=crowded))
    return element("g", *parts, class_=look.css)


def _name(name: str, x: float, *, crowded: bool) -> str:
    """Under the axis; slanted and shortened where names would meet. The legend has them in full."""
    if not crowded:
        return label(name, (x, BOTTOM + 18), text_anchor="middle")
    shown = name if len(name) <= SLANTED else f"{name[:4]}…{name[5 - SLANTED :]}"
    turned = f"rotate(-32 {number(x + 4)} {number(BOTTOM + 16)})"
    return label(shown, (x + 4, BOTTOM + 16), text_anchor="end", transform=turned, class_="small")


def _difference(effect: Effect, min_effect: float | None) -> str:
    """Zero, the smallest effect of interest, every seed's difference, their mean and its interval."""
    low, high = effect.ends or (effect.mean, effect.mean)
    limits = (min_effect, -min_effect) if min_effect is not None else ()
    y = fitted([0.0, low, high, *limits, *effect.differences.values()], BOTTOM, TOP + 4)
    start, end = PANEL
    middle = (start + end) / 2
    parts = []
    if min_effect is not None:
        top, bottom = y(min_effect), y(-min_effect)
        parts.append(element("rect", x=start, y=top, width=end - start, height=bottom - top, class_="delta"))
    for tick in y.ticks():
        parts.append(element("line", x1=end, x2=end + 4, y1=y(tick), y2=y(tick), class_="axis"))
        parts.append(label(compact(tick), (end + 7, y(tick) + 4)))
    parts.append(element("line", x1=end, x2=end, y1=TOP, y2=BOTTOM, class_="axis"))
    parts.append(element("line", x1=start, x2=end, y1=y(0.0), y2=y(0.0), class_="zero"))
    for value in effect.differences.values():
        parts.append(element("circle", cx=middle - 16, cy=y(value), r=3, class_="pair"))
    if effect.ends:
        parts.append(element("line", x1=middle + 10, x2=middle + 10, y1=y(low), y2=y(high), class_="result"))
    parts.append(marker("diamond", (middle + 10, y(effect.mean)), 5, class_="result"))
    parts.append(label("difference", (middle, BOTTOM + 18), text_anchor="middle"))
    return "".join(parts)


def _description(arms: list[Arm], effect: Effect | None) -> str:
    said = []
    for arm in arms:
        scores = list(arm.scores.values())
        mean = sum(scores) / len(scores)
        said.append(f"{arm.name}: {len(scores)} seeds from {min(scores):.4g} to {max(scores):.4g}, mean {mean:.4g}.")
    if effect:
        digits = decimals(abs(effect.mean) / 20)
        interval = (
            f", {effect.percent} interval {effect.ends[0]:+z.{digits}f} to {effect.ends[1]:+z.{digits}f}"
            if effect.ends
            else ""
        )
        said.append(f"{effect.first} minus {effect.second}: {effect.mean:+z.{digits}f}{interval}.")
    return " ".join(said)
