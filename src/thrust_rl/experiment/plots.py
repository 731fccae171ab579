"""Learning curves as a picture."""

import os
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from thrust_rl.experiment.comparison import ArmResult, Comparison

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # Okabe & Ito
STYLES = ("-", "--", "-.", ":")  # so that arms differ in black and white too


def plot_curves(comparison: Comparison, path: Path) -> None:
    """One line (mean over seeds) and one band (lowest to highest seed) per arm."""
    figure = Figure(figsize=(8, 4.8), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for index, arm in enumerate(comparison.arms):
        _draw_arm(axes, arm, COLOURS[index % len(COLOURS)], STYLES[index % len(STYLES)])
    axes.set_title(f"{comparison.env}{_params_text(comparison)}", fontsize=11)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("mean return, last ≤100 episodes")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend(frameon=False, loc="upper left")
    temporary = path.with_name(f".{path.name}.part")
    figure.savefig(temporary, format="png")
    os.replace(temporary, path)


def _draw_arm(axes: Axes, arm: ArmResult, colour: str, style: str) -> None:
    curves = [seed for seed in arm.seeds if seed.curve_steps]
    if not curves:
        return
    first = max(seed.curve_steps[0] for seed in curves)
    steps = np.array([step for step in curves[0].curve_steps if step >= first])
    returns = np.stack([np.array(seed.curve_mean_return[-len(steps) :]) for seed in curves])
    label = f"{arm.arm.name} ({len(curves)} seed{'s' if len(curves) > 1 else ''}, {arm.params:,} parameters)"
    axes.plot(steps, returns.mean(axis=0), style, color=colour, label=label, linewidth=1.8)
    axes.fill_between(steps, returns.min(axis=0), returns.max(axis=0), color=colour, alpha=0.18, linewidth=0)


def _params_text(comparison: Comparison) -> str:
    given = {name: value for name, value in comparison.env_params.items() if value is not None}
    return f" ({', '.join(f'{name}={value}' for name, value in given.items())})" if given else ""
