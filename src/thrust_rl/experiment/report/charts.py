"""The learning curves of one condition as SVG: a mean and a band per arm, every seed's line on demand."""

from thrust_rl.experiment.report.curves import Band, band, thinned
from thrust_rl.experiment.report.data import Arm, Condition
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

SIZE = (440.0, 300.0)
LEFT, RIGHT, TOP, BOTTOM = 50.0, 428.0, 26.0, 252.0


def curves_svg(condition: Condition, looks: dict[str, ArmStyle], *, name: str) -> str | None:
    """None where no arm has a curve."""
    bands = {arm.name: band(arm.seeds) for arm in condition.arms}
    if not any(bands.values()):
        return None
    seeds = [seed for arm in condition.arms for seed in arm.seeds]
    x = fitted((step for seed in seeds for step in (0, *seed.steps[-1:])), LEFT, RIGHT, margin=0.0)
    y = fitted((value for seed in seeds for value in seed.returns), BOTTOM, TOP)
    clip = element("clipPath", element("rect", **_inside()), id=f"{name}-clip")
    drawn = "".join(_arm(arm, bands[arm.name], looks[arm.name], x, y) for arm in condition.arms)
    return picture(
        SIZE,
        f"Learning curves on {condition.title}",
        _description(condition, bands),
        element("defs", clip),
        y_axis(y, LEFT, RIGHT),
        x_axis(x, TOP, BOTTOM),
        label("mean return of the last ≤100 episodes", (2, 14), class_="name"),
        label("environment steps", (RIGHT, BOTTOM + 38), class_="name", text_anchor="end"),
        element("g", drawn, clip_path=f"url(#{name}-clip)"),
        name=name,
    )


def _inside() -> dict[str, float]:
    return {"x": LEFT, "y": TOP - 4, "width": RIGHT - LEFT + 6, "height": BOTTOM - TOP + 8}


def _arm(arm: Arm, mean: Band | None, look: ArmStyle, x: Scale, y: Scale) -> str:
    lines = "".join(
        element("path", element("title", f"seed {seed.seed}"), d=_seed_path(seed.steps, seed.returns, x, y))
        for seed in arm.seeds
        if seed.steps
    )
    parts = [element("g", lines, class_="seeds")] if lines else []
    if mean is not None:
        xs = [x(step) for step in mean.steps.tolist()]
        ys = [y(value) for value in mean.mean.tolist()]
        if mean.num_seeds > 1:
            lows, highs = ([y(value) for value in end.tolist()] for end in (mean.low, mean.high))
            parts.insert(0, element("path", d=area(xs, lows, highs), class_="band"))
        line = list(zip(xs, ys, strict=True))
        parts.append(element("path", d=path(line), class_="mean", stroke_dasharray=look.dash))
        offset = look.index % 3  # so that marks of neighbouring arms do not cover each other
        marks = sorted({min(i, len(line) - 1) for i in thinned(len(line), 7)[1:]})
        parts += [marker(look.marker, line[max(i - 4 * offset, 0)], 4, class_="dot") for i in marks]
    return element("g", *parts, class_=look.css) if parts else ""


def _seed_path(steps: tuple[int, ...], returns: tuple[float, ...], x: Scale, y: Scale) -> str:
    return path((x(steps[i]), y(returns[i])) for i in thinned(len(steps)))


def _description(condition: Condition, bands: dict[str, Band | None]) -> str:
    said = []
    for arm in condition.arms:
        mean = bands[arm.name]
        if mean is None:
            said.append(f"{arm.name}: no curve.")
        else:
            first, last = float(mean.mean[0]), float(mean.mean[-1])
            said.append(f"{arm.name}: from {first:.4g} to {last:.4g} on average over {mean.num_seeds} seeds.")
    return " ".join(said)


def band_note(condition: Condition) -> str:
    """What the band is, for a caption."""
    bands = [found for arm in condition.arms if (found := band(arm.seeds))]
    if not bands or max(each.num_seeds for each in bands) == 1:
        return "One seed: no interval."
    if all(each.is_interval for each in bands):
        return "Line: mean over seeds. Band: 95 % interval of that mean at each point (Student's t)."
    return "Line: mean over seeds. Band: lowest to highest seed, as these are too few for an interval."
