"""curve.png shows every arm that has a curve, and is a picture even when none has."""

import dataclasses

import matplotlib.image
import numpy as np
import pytest
from matplotlib.axes import Axes

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.experiment.comparison import ArmResult, Comparison
from thrust_rl.experiment.jobs import SeedResult
from thrust_rl.experiment.plots import plot_curves


def seed_result(seed, steps, returns):
    final, best = (returns[-1], max(returns)) if returns else (None, None)
    return SeedResult(seed, 17539, final, best, tuple(steps), tuple(returns), 3, 512, 1000.0, 0.5, 0.25)


def comparison(curves, status="complete"):
    """`curves`: per arm, per seed, steps and mean returns."""
    arms = tuple(
        ArmResult(ArmConfig(name), 3e-4, tuple(seed_result(i, *curve) for i, curve in enumerate(seeds)))
        for name, seeds in curves.items()
    )
    params = {"flicker_prob": 0.5, "burst_len": None}
    return Comparison("FlickeringCartPole-v0", params, TrainConfig(), (0, 1), arms, status)


@pytest.fixture
def drawn(monkeypatch):
    """What was drawn: lines and bands, in order."""
    found = {"plot": [], "fill_between": []}
    for name, calls in found.items():
        plain = getattr(Axes, name)

        def draw(self, *args, _plain=plain, _calls=calls, **options):
            _calls.append((args, options))
            return _plain(self, *args, **options)

        monkeypatch.setattr(Axes, name, draw)
    return found


CURVE = ([128, 256, 384, 512], [10.0, 20.0, 30.0, 40.0])
LATE = ([384, 512], [50.0, 60.0])
NO_CURVE = ([], [])


def test_the_line_is_the_mean_and_the_band_spans_the_seeds_where_all_have_a_value(tmp_path, drawn):
    plot_curves(comparison({"lstm": [CURVE, LATE]}), tmp_path / "curve.png")
    [((steps, mean, _), options)] = drawn["plot"]
    [((_, low, high), _)] = drawn["fill_between"]
    assert steps.tolist() == [384, 512]
    assert mean.tolist() == [40.0, 50.0]
    assert (low.tolist(), high.tolist()) == ([30.0, 40.0], [50.0, 60.0])
    assert options["label"] == "lstm (2 seeds, 17,539 parameters)"


@pytest.mark.parametrize(
    "curves",
    [
        {"lstm": [CURVE, LATE], "mlp": [CURVE, CURVE]},
        {"lstm": [([512], [40.0])]},
        {"lstm": [NO_CURVE, CURVE], "mlp": []},
        {"lstm": [NO_CURVE], "mlp": [NO_CURVE]},
        {"lstm": [], "mlp": []},
        {f"arm{i}": [CURVE] for i in range(13)},
    ],
    ids=["two arms", "one point", "partly none", "no episode", "no seed", "many arms"],
)
def test_the_file_is_a_picture(tmp_path, curves):
    path = tmp_path / "curve.png"
    plot_curves(comparison(curves, status="interrupted"), path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = matplotlib.image.imread(path)
    assert pixels.shape[0] > 300 and pixels.shape[1] > 500
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 2
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


def test_arms_differ_in_colour_and_in_stroke(tmp_path, drawn):
    plot_curves(comparison({f"arm{i}": [CURVE] for i in range(4)}), tmp_path / "curve.png")
    assert len({options["color"] for _, options in drawn["plot"]}) == 4
    assert len({args[2] for args, _ in drawn["plot"]}) == 4


def test_a_picture_replaces_the_one_before(tmp_path):
    path = tmp_path / "curve.png"
    plot_curves(comparison({"lstm": [CURVE]}), path)
    before = path.read_bytes()
    other = dataclasses.replace(comparison({"lstm": [LATE]}), env="CartPole-v1")
    plot_curves(other, path)
    assert path.read_bytes() != before
