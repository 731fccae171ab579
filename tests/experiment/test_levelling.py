"""An arm that was still improving when training stopped is named: such a verdict compares speeds of learning."""

import dataclasses

import numpy as np
import pytest

from comparisons_for_tests import LSTM, MLP, comparison, seed_result
from thrust_rl.config import arm_from
from thrust_rl.experiment.comparison import ArmResult
from thrust_rl.experiment.levelling import NOTHING_YET, levelling_notes, still_improving
from thrust_rl.experiment.report.data import read
from thrust_rl.experiment.report.markdown import report_markdown
from thrust_rl.experiment.report.page import report_html
from thrust_rl.experiment.scale import ReturnScale

CARTPOLE = ReturnScale(0.0, 500.0, "environment")
LEVEL = 160 + 8 * np.sin(np.arange(240) / 9.0)  # as a memoryless arm's curve: it wanders, and ends below its best
SHORT = np.array([21.0, 23.0, 25.0, 34.0])  # 8,192 steps of FlickeringCartPole


def arm(*curves, name="lstm"):
    seeds = tuple(
        dataclasses.replace(
            seed_result(seed, 100.0),
            curve_steps=tuple(range(1, len(curve) + 1)),
            curve_mean_return=tuple(map(float, curve)),
        )
        for seed, curve in enumerate(curves)
    )
    return ArmResult(arm_from(name), 1e-3, 17539, seeds)


@pytest.mark.parametrize(
    ("curves", "rising"),
    [
        ([LEVEL, LEVEL, LEVEL], False),
        ([SHORT, SHORT, SHORT[::-1]], True),  # the highest point is the last one, in most runs
        ([SHORT, SHORT[::-1], SHORT[::-1]], False),
        (
            [np.append(np.linspace(20, 400, 239), 390.0)] * 3,
            True,
        ),  # 38 a tenth, though the last point is not the highest
        ([np.append(np.linspace(20, 200, 239), 190.0)] * 3, True),  # 18 a tenth, but 45 a quarter
        ([np.append(np.linspace(20, 100, 239), 90.0)] * 3, False),  # 8 a tenth and 20 a quarter: less than δ
        ([np.append(np.linspace(20, 200, 239), 190.0)] + [LEVEL] * 2, False),  # in one run of three
        (
            [np.concatenate([np.full(120, 100.0), np.linspace(100, 200, 60), np.full(60, 200.0)])] * 3,
            False,
        ),  # 50 above the third quarter, but level for all of the last
        (
            [np.concatenate([np.full(24, 450.0), np.full(150, 100.0), np.linspace(200, 440, 66)])] * 3,
            False,
        ),  # above every quarter before, but recovering: the first tenth was there
        ([np.append(LEVEL, [np.nan, np.inf])] * 3, False),
        ([np.concatenate([[np.inf], np.linspace(20, 400, 239), [np.nan]])] * 3, True),  # of what is a number
        ([[np.nan, np.nan], [np.inf, 20.0]], False),
        ([np.linspace(0, 480, 240)] * 3, False),  # nowhere to go
        ([np.full(240, 160.0)] * 3, False),
        ([np.concatenate([np.full(150, 450.0), np.full(60, 100.0), np.linspace(100, 440, 30)])] * 3, False),  # recovers
        ([[20.0], []], False),
    ],
)
def test_an_arm_was_still_improving_where_its_curves_end_rising(curves, rising):
    assert still_improving(arm(*curves), scale=CARTPOLE, min_effect=25.0) is rising


def test_where_the_highest_return_is_not_known_an_arm_near_its_own_best_may_still_rise():
    observed = ReturnScale(0.0, 34.0, "observed")
    assert still_improving(arm(SHORT, SHORT), scale=observed, min_effect=1.7)


FLAT = 20 + 8 * np.sin(np.arange(240) / 9.0)
FAST = np.append([20.0, 25.0, 80.0], np.full(237, 100.0))  # learned within the first tenth


@pytest.mark.parametrize(
    ("first", "second", "nothing"),
    [
        ([FLAT] * 3, [FLAT] * 3, True),
        ([FLAT] * 3, [FLAT[::-1]] * 3, True),
        ([FLAT] * 3, [LEVEL + 100] * 3, True),  # whatever they pay, they were at it when they began
        ([FLAT] * 3, [np.linspace(20, 60, 240)] * 3, False),  # one arm rose
        ([FLAT] * 3, [FAST] * 3, False),
        ([FLAT] * 3, [FLAT, FLAT, FAST], True),  # in one run of three
        ([FLAT] * 3, [FLAT, FAST, FAST], False),
        ([FLAT] * 3, [np.full(240, 480.0)] * 3, False),  # at the top from the beginning
        ([FLAT] * 3, [[20.0, 20.0, 20.0]] * 3, False),  # too few points to tell
        ([FLAT] * 3, [[]], False),
        ([np.append(np.nan, FLAT)] * 3, [np.append(FLAT, np.inf)] * 3, True),
        ([np.zeros(240)] * 3, [np.zeros(240)] * 3, True),
    ],
)
def test_a_pair_is_told_of_where_neither_arm_rose_above_where_it_began(first, second, nothing):
    notes = levelling_notes([arm(*first), arm(*second, name="mlp")], scale=CARTPOLE, min_effect=25.0)
    assert (NOTHING_YET in notes) is nothing


def test_that_neither_arm_learned_is_told_before_that_one_still_improves():
    notes = levelling_notes([arm(SHORT), arm(SHORT[::-1], name="mlp")], scale=CARTPOLE, min_effect=25.0)
    assert notes[0] == NOTHING_YET and notes[1].startswith("lstm was still improving") and len(notes) == 2


def undertrained():
    made = comparison({"lstm": tuple(score / 10 for score in MLP), "mlp": tuple(score / 10 + 1 for score in MLP)})
    task = made.tasks[0].task
    rising = dataclasses.replace(task.arms[0], seeds=arm(*[SHORT] * 6).seeds)
    seeds = tuple(
        dataclasses.replace(new, evaluation=old.evaluation)
        for new, old in zip(rising.seeds, task.arms[0].seeds, strict=True)
    )
    condition = dataclasses.replace(task, arms=(dataclasses.replace(rising, seeds=seeds), task.arms[1]))
    config = dataclasses.replace(made.config, total_timesteps=8192)
    return dataclasses.replace(
        made, config=config, tasks=(dataclasses.replace(made.tasks[0], conditions=(condition,)),)
    )


def test_the_verdict_names_its_budget_and_the_arm_that_was_still_improving():
    said = undertrained()
    note = "lstm was still improving when training stopped: this compares speed of learning; raise --total-timesteps"
    assert said.sentence.startswith("Memory does not help after 8,192 steps: lstm minus mlp is")
    data = said.to_dict()
    assert data["tasks"][0]["verdict"]["notes"][0] == note
    assert note in report_markdown(read(data), pictures=[])
    assert note in report_html(read(data))


def test_a_verdict_on_curves_that_had_levelled_off_has_no_such_note():
    verdict = comparison({"lstm": LSTM, "mlp": MLP}).analysis.tasks[0].verdict
    assert not [note for note in verdict.notes if "improving" in note]
