"""The replay's pictures in their first frame: the cart-pole, and the observation as strips over time."""

import itertools
import math

from thrust_rl.envs.cartpole import HALF_LENGTH, POSITION_LIMIT
from thrust_rl.experiment.report.replay import COORDINATES, Episode
from thrust_rl.experiment.report.svg import compact, element, label, number, picture

SCENE = (360.0, 150.0)
METRE = SCENE[0] / (2 * POSITION_LIMIT + 0.6)  # pixels; the script reads it from the picture
TRACK = 124.0
AXLE = TRACK - 20
STRIP, NAME, LEFT = 44.0, 14.0, 6.0  # pixels: a strip, the part above it that names it, the margin
WIDTH = 360.0


def hatch() -> str:
    """The pattern of what was blank, once per page. Pale on purpose: frames change many times a second."""
    lines = element("path", d="M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4", class_="hatch-line")
    paper = element("rect", width=8, height=8, class_="hatch-paper")
    pattern = element("pattern", paper, lines, id="hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    return element("svg", element("defs", pattern), width=0, height=0, class_="defs", aria_hidden="true")


def scene_svg(episode: Episode, *, name: str) -> str:
    """A cart-pole; the script moves `.cart`, turns `.pole` and marks the picture blank."""
    x, angle = episode.state[0] if episode.state else (0.0, 0.0)
    ends = [SCENE[0] / 2 + sign * POSITION_LIMIT * METRE for sign in (-1, 1)]
    track = element("path", d=f"M{number(ends[0])},{TRACK} H{number(ends[1])}", class_="axis")
    stops = "".join(element("path", d=f"M{number(end)},{TRACK - 6} v12", class_="axis") for end in ends)
    pole = element("line", x1=0, y1=0, x2=0, y2=-2 * HALF_LENGTH * METRE, class_="pole")
    turned = element("g", pole, class_="turn", transform=f"rotate({math.degrees(angle):.2f})")
    cart = element("rect", x=-22, y=0, width=44, height=20, rx=3, class_="body")
    push = element("path", d="M26,10 h16 m-6,-5 l6,5 l-6,5", class_="push")
    axle = element("circle", r=3, class_="axle")
    place = f"translate({SCENE[0] / 2 + x * METRE:.2f} {number(AXLE)})"
    moving = element("g", cart, turned, axle, push, class_="cart", transform=place)
    blank = " is-blank" if episode.blank[0] else ""
    return element(
        "div",
        picture(
            SCENE,
            f"Cart-pole as {episode.arm} controls it",
            "Hatched where the frame was blank for the agent; the true state is then drawn faintly.",
            element("rect", width=SCENE[0], height=SCENE[1], class_="paper"),
            element("rect", width=SCENE[0], height=SCENE[1], class_="blank"),
            track + stops,
            moving,
            name=name,
        ),
        class_=f"scene{blank}",
        data_metre=f"{METRE:.4f}",
        data_middle=number(SCENE[0] / 2),
        data_axle=number(AXLE),
    )


def strips_svg(episode: Episode, *, frames: int, name: str) -> str:
    """One strip per coordinate of the observation over `frames` steps, blanks hatched, with a cursor to move."""
    obs = episode.obs or ((),) * episode.frames
    count = max(min(len(obs[0]), COORDINATES), 1)
    height = STRIP * count
    step = (WIDTH - 2 * LEFT) / max(frames, 1)
    lines = "".join(
        _strip(episode, [each[i] if i < len(each) else math.nan for each in obs], i, step) for i in range(count)
    )
    blanks = element("path", d=_blank_path(episode, step, height), class_="blank-runs") if any(episode.blank) else ""
    over = LEFT + step * episode.frames
    ended = element("line", x1=over, x2=over, y1=0, y2=height, class_="over") if episode.frames < frames else ""
    cursor = element(
        "line", x1=LEFT, x2=LEFT, y1=0, y2=height, class_="cursor", data_left=LEFT, data_step=f"{step:.6f}"
    )
    seen = sum(not each for each in episode.blank)
    return picture(
        (WIDTH, height),
        f"What {episode.arm} observed",
        f"{episode.frames} frames, {seen} of them seen and {episode.frames - seen} blank; {count} coordinates.",
        blanks,
        lines,
        ended,
        cursor,
        name=name,
    )


def _strip(episode: Episode, values: list[float], coordinate: int, step: float) -> str:
    top = coordinate * STRIP
    seen = [v for v, blank in zip(values, episode.blank, strict=True) if not blank and math.isfinite(v)]
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    scale = (STRIP - NAME - 8) / ((high - low) or 1.0)
    parts = [element("line", x1=LEFT, x2=WIDTH - LEFT, y1=top + STRIP - 0.5, y2=top + STRIP - 0.5, class_="grid")]
    drawn, joined = [], False
    for i, (value, blank) in enumerate(zip(values, episode.blank, strict=True)):
        if blank or not math.isfinite(value):
            joined = False
            continue
        at = f"{number(LEFT + step * (i + 0.5))},{number(top + STRIP - 4 - (value - low) * scale)}"
        drawn.append(f"L{at}" if joined else f"M{at}h0")
        joined = True
    if drawn:
        parts.append(element("path", d="".join(drawn), class_="seen"))
    name = f"o{coordinate + 1}" + (
        f": {compact(float(f'{low:.2g}'))} to {compact(float(f'{high:.2g}'))}" if seen else ""
    )
    parts.append(label(name, (LEFT, top + 11), class_="small"))
    return "".join(parts)


def _blank_path(episode: Episode, step: float, height: float) -> str:
    """Every run of blanks, once per strip, below the strip's name."""
    runs, at = [], 0
    for blank, run in itertools.groupby(episode.blank):
        length = len(list(run))
        if blank:
            runs.append((LEFT + step * at, step * length))
        at += length
    tops = [STRIP * i + NAME for i in range(round(height / STRIP))]
    tall = number(STRIP - NAME)
    return "".join(f"M{x:.2f},{number(top)}h{wide:.2f}v{tall}h-{wide:.2f}z" for top in tops for x, wide in runs)
