"""Learning curves, evaluation returns and the performance profile as PNG and SVG, readable in black and white."""

import os
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from thrust_rl.experiment.report.charts import band_note
from thrust_rl.experiment.report.curves import band
from thrust_rl.experiment.report.data import Arm, Condition, HasDict, Result, Task, read
from thrust_rl.experiment.report.evaluation import evaluation_note, interval_of
from thrust_rl.experiment.report.pairs import Effect, effect_on
from thrust_rl.experiment.report.style import ArmStyle, styles
from thrust_rl.experiment.report.svg import compact

CELL = (7.2, 4.3)  # inches, of one condition
SUFFIXES = (".png", ".svg")
GREY, INK, SAND = "#8a8f98", "#16181d", "#e9e3d3"
NAME = 22  # characters of an arm's name under its points
TITLE = 60  # characters of a title
LEGEND = 4  # entries inside the axes; more go beside them
NOTE = 96  # characters of a line under the axes


def write_plots(result: Result, folder: Path) -> list[Path]:
    """Write `curve` and `evaluation`, and `profile` where there are several tasks, each as PNG and SVG."""
    drawn: dict[str, Callable[[Result], Figure]] = {"curve": _curves, "evaluation": _evaluation}
    if result.aggregate:
        drawn["profile"] = _profile
    written = []
    for name, draw in drawn.items():
        figure = draw(result)
        for suffix in SUFFIXES:
            written.append(folder / f"{name}{suffix}")
            _save(figure, written[-1])
    return written


def plot_curves(comparison: HasDict | Mapping[str, Any], path: Path) -> None:
    """One line (mean over seeds) and one band per arm, small multiples for tasks and twins; the suffix is the format.

    The band is the 95 % interval of the mean, or spans the seeds where these are too few for one.
    """
    _save(_curves(read(comparison)), path)


def _save(figure: Figure, path: Path) -> None:
    """Whole or not at all, and the same bytes for the same figure."""
    temporary = path.with_name(f".{path.name}.part")
    form = path.suffix.removeprefix(".")
    metadata = {"Date": None} if form == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "thrust-rl"}):
        figure.savefig(temporary, format=form, metadata=metadata)
    os.replace(temporary, path)


def _curves(result: Result) -> Figure:
    figure, cells = _grid(result)
    looks = styles(result.arm_names)
    for cell, _, condition in cells:
        axes = figure.add_subplot(cell)
        for arm in condition.arms:
            _draw_arm(axes, arm, looks[arm.name])
        axes.set_title(_short(condition.title, TITLE), fontsize=11, loc="left")
        axes.xaxis.set_major_formatter(lambda value, _: compact(value))
        axes.set_xlabel("environment steps")
        axes.set_ylabel("mean return, last ≤100 episodes")
        axes.annotate(band_note(condition), (1, -0.2), xycoords="axes fraction", ha="right", fontsize=7.5, color=GREY)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.lines:
            beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
            axes.legend(frameon=False, **({"fontsize": 9} if len(axes.lines) <= LEGEND else {"fontsize": 7} | beside))
    return figure


def _grid(result: Result) -> tuple[Figure, list[tuple[SubplotSpec, Task, Condition]]]:
    """A row of cells per task, a column per condition."""
    columns, rows = max([len(task.conditions) for task in result.tasks] or [1]), max(len(result.tasks), 1)
    figure = Figure(figsize=(CELL[0] * columns, CELL[1] * rows), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    places = figure.add_gridspec(rows, columns)
    return figure, [
        (places[i, j], task, condition)
        for i, task in enumerate(result.tasks)
        for j, condition in enumerate(task.conditions)
    ]


def _draw_arm(axes: Axes, arm: Arm, look: ArmStyle) -> None:
    mean = band(arm.seeds)
    if mean is None:
        return
    params = "" if arm.params is None else f", {arm.params:,} parameters"
    label = f"{_short(arm.name, 40)} ({mean.num_seeds} seed{'s' if mean.num_seeds > 1 else ''}{params})"
    axes.plot(
        mean.steps,
        mean.mean,
        look.line,
        color=look.colour,
        label=label,
        linewidth=1.8,
        marker=look.point,
        markevery=(0.05 + 0.03 * (look.index % 3), 0.15) if len(mean.steps) > 1 else 1,
        markersize=5,
    )
    axes.fill_between(mean.steps, mean.low, mean.high, color=look.colour, alpha=0.18, linewidth=0)


def _evaluation(result: Result) -> Figure:
    figure, cells = _grid(result)
    looks = styles(result.arm_names)
    for cell, task, condition in cells:
        arms, effect = [arm for arm in condition.arms if arm.scores], effect_on(task, condition)
        parts = cell.subgridspec(1, 2, width_ratios=(3, 1))
        axes = figure.add_subplot(parts[0] if effect else parts[:])
        axes.set_title(_short(condition.title, TITLE), fontsize=11, loc="left")
        axes.set_ylabel("evaluation return")
        axes.spines[["top", "right"]].set_visible(False)
        _draw_points(axes, arms, looks)
        note = textwrap.fill(evaluation_note(condition, effect, task.min_effect), NOTE if effect else 4 * NOTE // 3)
        axes.set_xlabel(_short(note, 500), fontsize=7.5, color=GREY, loc="left")
        if effect:
            _draw_difference(figure.add_subplot(parts[1]), effect, task.min_effect)
    return figure


def _draw_points(axes: Axes, arms: list[Arm], looks: dict[str, ArmStyle]) -> None:
    """Every seed of every arm, seeds joined, and every arm's mean with its interval aside."""
    for seed in sorted({seed for arm in arms for seed in arm.scores}):
        found = [(i, arm.scores[seed]) for i, arm in enumerate(arms) if seed in arm.scores]
        axes.plot([i for i, _ in found], [score for _, score in found], color=GREY, linewidth=0.8, alpha=0.6, zorder=1)
    for i, arm in enumerate(arms):
        look, scores = looks[arm.name], list(arm.scores.values())
        axes.plot([i] * len(scores), scores, look.point, color=look.colour, markersize=6, zorder=2)
        assert arm.summary is not None  # it has scores
        aside, mean, ends = i + (-0.14 if i == 0 else 0.14), arm.summary["mean"]["value"], interval_of(arm)
        axes.plot([aside - 0.05, aside + 0.05], [mean, mean], color=look.colour, linewidth=2)
        if ends:
            axes.plot([aside, aside], ends, color=look.colour, linewidth=2)
    tilt: dict[str, Any] = (
        {"rotation": 20, "ha": "right"} if len(arms) > 4 or any(len(arm.name) > 12 for arm in arms) else {}
    )
    axes.set_xticks(range(len(arms)), [_short(arm.name, NAME) for arm in arms], **tilt)
    axes.set_xlim(-0.5, max(len(arms) - 0.5, 0.5))


def _draw_difference(axes: Axes, effect: Effect, min_effect: float | None) -> None:
    """First minus second by seed, the mean and its interval, zero and ± the smallest effect of interest."""
    if min_effect is not None:
        axes.axhspan(-min_effect, min_effect, color=SAND, linewidth=0, zorder=0)
    axes.axhline(0.0, color=INK, linewidth=1, linestyle="--", zorder=1)
    values = list(effect.differences.values())
    axes.plot([-0.2] * len(values), values, "o", markerfacecolor="none", markeredgecolor=GREY, markersize=5)
    if effect.ends:
        axes.plot([0.15, 0.15], effect.ends, color=INK, linewidth=2)
    axes.plot([0.15], [effect.mean], "D", color=INK, markersize=7)
    axes.set_xlim(-0.6, 0.6)
    axes.set_xticks([0.0], ["difference"])
    axes.yaxis.tick_right()
    axes.spines[["top", "left"]].set_visible(False)


def _profile(result: Result) -> Figure:
    """Share of runs above each normalized score."""
    assert result.aggregate is not None
    figure = Figure(figsize=CELL, dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes, looks = figure.add_subplot(), styles(result.arm_names)
    levels = np.array(result.aggregate["thresholds"])
    for profile in result.aggregate["profiles"]:
        look = looks[profile["name"]]
        place = (0.05 + 0.03 * (look.index % 3), 0.15)
        style: dict[str, Any] = {
            "color": look.colour,
            "linewidth": 1.8,
            "marker": look.point,
            "markersize": 5,
            "markevery": place,
        }
        axes.plot(levels, profile["above"], look.line, label=_short(profile["name"], 40), **style)
        axes.fill_between(levels, profile["low"], profile["high"], color=look.colour, alpha=0.18, linewidth=0)
    axes.set_title(f"Performance profile over {len(result.aggregate['tasks'])} tasks", fontsize=11)
    axes.set_xlabel("normalized score")
    axes.set_ylabel("share of runs above it")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure


def _short(text: str, length: int) -> str:
    """Names are the user's: none is mathematics, and none pushes the axes out of the picture."""
    cut = text if len(text) <= length else text[: length - 1] + "…"
    return cut.replace("$", r"\$")
