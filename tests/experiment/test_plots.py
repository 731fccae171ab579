"""The plots show every arm that has something to show, and are pictures even when none has."""

import matplotlib.image
import numpy as np
import pytest
from matplotlib.axes import Axes

from results_for_tests import comparison
from thrust_rl.config import ArmConfig
from thrust_rl.experiment.plots import plot_curves, write_plots
from thrust_rl.experiment.report.data import read

CURVE = ([128, 256, 384, 512], [10.0, 20.0, 30.0, 40.0])
LATE = ([384, 512], [50.0, 60.0])
NO_CURVE = ([], [])


def with_curves(curves, status="complete"):
    """`curves`: per arm, per seed, steps and mean returns."""
    arms = [ArmConfig(name) for name in curves]
    finished = {name: len(seeds) for name, seeds in curves.items()}
    data = comparison(arms=arms, seeds=2, finished=finished, status=status, recorded=False, points=0).to_dict()
    [condition] = data["tasks"][0]["conditions"]
    for name, seeds in curves.items():
        for seed, (steps, returns) in zip(condition["arms"][name]["seeds"], seeds, strict=True):
            seed |= {"curve_steps": list(steps), "curve_mean_return": list(returns)}
    return data


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


def test_the_line_is_the_mean_and_the_band_spans_few_seeds_where_all_have_a_value(tmp_path, drawn):
    plot_curves(with_curves({"lstm": [CURVE, LATE]}), tmp_path / "curve.png")
    [((steps, mean, _), options)] = drawn["plot"]
    [((_, low, high), _)] = drawn["fill_between"]
    assert steps.tolist() == [384, 512]
    assert mean.tolist() == [40.0, 50.0]
    assert (low.tolist(), high.tolist()) == ([30.0, 40.0], [50.0, 60.0])
    assert options["label"] == "lstm (2 seeds, 17,859 parameters)"


def test_the_band_of_many_seeds_is_students_interval_of_the_mean(tmp_path, drawn):
    made = comparison(arms=("lstm",), seeds=6, points=3, recorded=False)
    plot_curves(made, tmp_path / "curve.png")
    [((_, low, high), _)] = drawn["fill_between"]
    returns = np.array([seed.curve_mean_return for seed in made.arms[0].seeds])
    half = 2.5705818366 * returns.std(axis=0, ddof=1) / np.sqrt(6)  # t of 5 degrees of freedom at 97.5 %
    assert low == pytest.approx(returns.mean(axis=0) - half) and high == pytest.approx(returns.mean(axis=0) + half)


@pytest.mark.parametrize(
    "curves",
    [
        {"lstm": [CURVE, LATE], "mlp": [CURVE, CURVE]},
        {"lstm": [([512], [40.0])]},
        {"lstm": [NO_CURVE, CURVE], "mlp": []},
        {"lstm": [NO_CURVE], "mlp": [NO_CURVE]},
        {"lstm": [], "mlp": []},
        {f"arm{i}": [CURVE] for i in range(13)},
        {"$x^2$ " + "long " * 14: [CURVE]},
    ],
    ids=["two arms", "one point", "partly none", "no episode", "no seed", "many arms", "long, no mathematics"],
)
def test_the_file_is_a_picture(tmp_path, curves):
    path = tmp_path / "curve.png"
    plot_curves(with_curves(curves, status="interrupted"), path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = matplotlib.image.imread(path)
    assert pixels.shape[0] > 300 and pixels.shape[1] > 500
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 2
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


def test_arms_differ_in_colour_in_stroke_and_in_marker(tmp_path, drawn):
    plot_curves(with_curves({f"arm{i}": [CURVE] for i in range(4)}), tmp_path / "curve.png")
    assert len({options["color"] for _, options in drawn["plot"]}) == 4
    assert len({args[2] for args, _ in drawn["plot"]}) == 4
    assert len({options["marker"] for _, options in drawn["plot"]}) == 4


def test_a_picture_replaces_the_one_before(tmp_path):
    path = tmp_path / "curve.png"
    plot_curves(with_curves({"lstm": [CURVE]}), path)
    before = path.read_bytes()
    plot_curves(with_curves({"lstm": [LATE]}), path)
    assert path.read_bytes() != before


def test_evaluation_shows_every_score_the_pairs_and_their_difference(tmp_path, drawn):
    made = comparison(seeds=5, points=0, recorded=False)
    write_plots(read(made), tmp_path)
    found = [(list(args[0]), list(args[1])) for args, _ in drawn["plot"]]
    lstm, mlp = ([seed.score for seed in arm.seeds] for arm in made.arms)
    assert ([0] * 5, lstm) in found and ([1] * 5, mlp) in found
    assert all(([0, 1], list(pair)) in found for pair in zip(lstm, mlp, strict=True))
    [contrast] = made.analysis.tasks[0].contrasts
    paired = contrast.contrast.paired
    assert ([0.15, 0.15], [paired.interval.low, paired.interval.high]) in found
    assert ([0.15], [paired.mean]) in found
    assert any(values == pytest.approx(np.subtract(lstm, mlp)) for _, values in found if len(values) == 5)


def test_tasks_and_twins_are_small_multiples_with_a_profile(tmp_path):
    one = comparison(envs=("CartPole-v1",), seeds=2, points=5, recorded=False)
    many = comparison(envs=("FlickeringCartPole-v0", "MaskedCartPole-v0"), seeds=2, points=5, recorded=False, twin=True)
    sizes = []
    for made, name in ((one, "one"), (many, "many")):
        (tmp_path / name).mkdir()
        written = write_plots(read(made), tmp_path / name)
        assert all(path.read_text().startswith("<?xml") for path in written if path.suffix == ".svg")
        assert all("<dc:date>" not in path.read_text() for path in written if path.suffix == ".svg")
        sizes.append(matplotlib.image.imread(written[0]).shape[:2])
        assert [path.name for path in written][4:] == (["profile.png", "profile.svg"] if made is many else [])
    assert sizes[1] == (2 * sizes[0][0], 2 * sizes[0][1])
