"""Two copies of one arm are told apart in at most 5 % of comparisons, and a real effect is seen, on a small scale."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from comparisons_for_tests import LSTM, MLP, comparison

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
COMPARISONS = 200
ALLOWED = 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / COMPARISONS)  # binomial error


def script(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def calibration():
    return script("calibration")


@pytest.fixture(scope="module")
def draws(calibration):
    return calibration.populations()


@pytest.mark.parametrize("num_seeds", [5, 10])
def test_two_copies_of_an_arm_are_seldom_told_apart(calibration, draws, num_seeds):
    claimed = {}
    for name, draw in draws.items():
        found = calibration.rates(draw, num_seeds=num_seeds, shift=0.0, comparisons=COMPARISONS)
        assert sum(found.values()) == pytest.approx(1.0)
        claimed[name] = found.get("helps", 0.0) + found.get("hurts", 0.0)
    assert max(claimed.values()) <= ALLOWED, claimed
    assert sum(claimed.values()) > 0  # and it is a test that can be failed


def test_an_effect_twice_as_large_as_the_smallest_of_interest_is_seen(calibration, draws):
    draw, shift = draws["normal, sd 30"], 2 * calibration.DELTA
    few, many = (calibration.rates(draw, num_seeds=n, shift=shift, comparisons=COMPARISONS) for n in (5, 10))
    assert 0.25 < few["helps"] < 0.75
    assert many["helps"] > 0.85
    assert "hurts" not in {**few, **many}


def test_the_recorded_returns_are_what_training_gives(draws):
    """Values with a ceiling at 500, and low outliers where the task is easy."""
    recorded = [draw(np.random.default_rng(0), 1_000) for name, draw in draws.items() if name.endswith(("lstm", "mlp"))]
    assert len(recorded) >= 4
    assert all(pool.min() >= 0 and pool.max() <= 500 for pool in recorded)
    assert any(np.median(pool) == 500 and pool.min() < 475 for pool in recorded)


def test_what_is_recorded_is_what_verdicts_are_decided_on_and_not_the_end_of_training():
    recording, made = script("record_scores"), comparison({"lstm": LSTM, "mlp": MLP}, final=77.0)
    found = recording.scores({"CartPole": made})
    assert found == {"CartPole lstm": list(LSTM), "CartPole mlp": list(MLP)}
    assert "100 fresh evaluation episodes" in recording.about(made) and "seeds 0 to 5" in recording.about(made)
    broken = comparison({"lstm": LSTM[:2], "mlp": MLP}, status="interrupted", seeds=range(6))
    with pytest.raises(ValueError, match="CartPole is interrupted: run this again"):
        recording.scores({"CartPole": broken})


def test_every_pool_is_one_that_the_recording_writes(draws):
    names = {f"{study} {arm}" for study in script("record_scores").STUDIES for arm in ("lstm", "mlp")}
    assert names == {name for name in draws if name.endswith(("lstm", "mlp"))}


def test_the_interval_that_decides_misses_less_often_than_a_bootstrap(calibration, draws):
    draw = draws["normal, sd 30"]
    found = calibration.misses(draw, draw, num_seeds=10, comparisons=COMPARISONS)
    assert found["BCa"] > 0.07
    assert found["decision"] <= ALLOWED
