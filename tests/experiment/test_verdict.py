"""The verdict follows from the interval and the smallest effect of interest, and says what it rests on."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from thrust_rl.config import ConfigError
from thrust_rl.experiment.contrast import PairedDifference, paired_difference
from thrust_rl.experiment.family import TaskScores, decide_together, holm
from thrust_rl.experiment.planning import CAP, POWER, MoreSeeds, more_seeds
from thrust_rl.experiment.scale import ReturnScale, return_scale
from thrust_rl.experiment.statistics import ArmScores, Interval
from thrust_rl.experiment.twin import twin_effects
from thrust_rl.experiment.verdict import SECOND_LOOK, Together, decide

CARTPOLE = ReturnScale(0.0, 500.0, "environment")  # δ = 25


def paired(low, high, *, num_seeds=10, p_value=0.5, confidence=0.95):
    """A paired difference with a given interval."""
    return PairedDifference(
        num_seeds=num_seeds,
        mean=(low + high) / 2,
        spread=20.0,
        interval=Interval(low, high, confidence, "by hand"),
        bca=None,
        p_value=p_value,
        p_method="exact",
        ahead=num_seeds - 3,
        level=0,
        notes=("a note",),
    )


def verdict(difference, scale=CARTPOLE, **options):
    return decide(difference, memory="lstm", memoryless="mlp", scale=scale, **options)


def test_the_interval_of_five_seeds_is_labelled_with_what_it_is_worth():
    five = paired_difference(np.array([31.0, 42.0, 35.0, 38.0, 29.0]))
    assert five.interval.confidence == 0.9375 and five.asked == 0.95
    assert "(93.75 % interval +" in verdict(five).sentence
    six = paired_difference(np.array([31.0, 42.0, 35.0, 38.0, 29.0, 40.0]))
    assert six.interval.confidence == 0.95 and "(95 % interval +" in verdict(six).sentence


def test_the_label_of_the_interval_does_not_loosen_the_rule_for_several_tasks():
    five = paired_difference(np.array([31.0, 42.0, 35.0, 38.0, 29.0]))
    together = Together(2, 2 / 2**5, five.interval)
    assert verdict(five, together=together).kind == "cannot tell yet"


# --- the three ways, and the other two


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (30.0, 60.0, "helps"),
        (1.0, 60.0, "helps"),
        (-60.0, -30.0, "hurts"),
        (-60.0, -1.0, "hurts"),
        (-10.0, 10.0, "does not help"),
        (-25.0, 25.0, "does not help"),
        (5.0, 20.0, "does not help"),
        (-20.0, -5.0, "does not help"),
        (0.0, 0.0, "does not help"),
        (-10.0, 60.0, "cannot tell yet"),
        (-60.0, 10.0, "cannot tell yet"),
        (-60.0, 60.0, "cannot tell yet"),
        (0.0, 60.0, "cannot tell yet"),
    ],
)
def test_the_kind_follows_from_where_the_interval_lies(low, high, kind):
    assert verdict(paired(low, high)).kind == kind


@given(st.floats(-100, 100), st.floats(0, 100), st.floats(0.001, 1))
def test_exactly_one_rule_applies_and_swapping_the_arms_swaps_helps_and_hurts(low, width, min_effect):
    forth = verdict(paired(low, low + width), min_effect=min_effect).kind
    back = verdict(paired(-low - width, -low), min_effect=min_effect).kind
    swapped = {"helps": "hurts", "hurts": "helps"}
    assert back == swapped.get(forth, forth)
    if width <= min_effect * 500:
        assert forth != "cannot tell yet"  # an interval no wider than the smallest effect of interest always decides


@pytest.mark.parametrize("num_seeds", [1, 2, 4])
def test_under_five_seeds_there_is_no_verdict(num_seeds):
    result = verdict(paired_difference(np.full(num_seeds, 300.0)))
    assert result.kind == "withheld"
    assert result.more_seeds is None
    seeds = "1 seed is" if num_seeds == 1 else f"{num_seeds} seeds are"
    assert result.sentence == (
        f"No verdict: {seeds} too few to tell, give at least 5; so far lstm minus mlp is +300.0."
    )


def test_five_seeds_that_agree_by_far_are_enough():
    result = verdict(paired_difference(np.array([254.5, 318.6, 334.6, 308.5, 271.1])))
    assert (result.kind, result.p_value) == ("helps", 0.0625)
    assert any("no sign-flip p-value is below 0.0625" in note for note in result.notes)
    assert verdict(paired_difference(np.array([254.5, 318.6, 334.6, 308.5, -1.0]))).kind != "helps"


# --- sentences


def test_the_sentences_say_what_they_rest_on():
    assert verdict(paired(30.0, 60.0, p_value=0.002)).sentence == (
        "Memory helps: lstm minus mlp is +45.0 (95 % interval +30.0 to +60.0; p = 0.002; ahead on 7 of 10 seeds)."
    )
    assert verdict(paired(-60.0, -30.0)).sentence.startswith(
        "Memory hurts: lstm minus mlp is -45.0 (95 % interval -60.0"
    )
    assert verdict(paired(-10.0, 12.0)).sentence == (
        "Memory does not help: lstm minus mlp is +1.0 (95 % interval -10.0 to +12.0; p = 0.5; ahead on 7 of 10 seeds),"
        " within ±25.0, the smallest effect of interest."
    )


@pytest.mark.parametrize(("low", "high"), [(1.0, 60.0), (-60.0, -1.0)])
def test_an_effect_that_may_be_too_small_to_matter_is_called_so(low, high):
    assert verdict(paired(low, high)).sentence.endswith(
        ", though perhaps by less than 25.0, the smallest effect of interest."
    )
    assert "perhaps" not in verdict(paired(25.0, 60.0)).sentence


def test_a_difference_that_excludes_0_but_is_small_is_called_both():
    assert verdict(paired(5.0, 20.0)).sentence.endswith(
        "; the interval excludes 0, but what it holds is too small to matter."
    )
    assert "excludes 0" not in verdict(paired(-5.0, 20.0)).sentence


@pytest.mark.parametrize(
    ("low", "high", "excluded"), [(-10.0, 60.0, "loss"), (-60.0, 10.0, "gain"), (-60.0, 60.0, None)]
)
def test_an_open_verdict_says_what_is_excluded_all_the_same_and_what_a_second_look_costs(low, high, excluded):
    result = verdict(paired(low, high))
    found = re.findall(r"excludes a (\w+) of 25\.0 or more", result.sentence)
    assert found == ([excluded] if excluded else [])
    assert result.sentence.startswith("Cannot tell yet whether memory helps: lstm minus mlp")
    assert result.sentence.endswith(f"; {result.more_seeds.describe()}.")
    assert result.notes == ("a note", SECOND_LOOK)


@pytest.mark.parametrize(("size", "shown"), [(1e4, "+9000 "), (500.0, "+450.0 "), (1.0, "+0.9000 ")])
def test_numbers_are_shown_to_the_precision_of_the_scale(size, shown):
    result = verdict(paired(0.8 * size, size), ReturnScale(0.0, size, "environment"))
    assert shown in result.sentence


def test_a_verdict_survives_json():
    for difference in (paired(-60.0, 60.0), paired(30.0, 60.0), paired_difference(np.array([1.0]))):
        result = verdict(difference)
        data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert data["kind"] == result.kind
        assert data["min_effect"] == 25.0
        assert data["scale"] == {"low": 0.0, "high": 500.0, "source": "environment"}
        assert data["notes"] == list(result.notes)


# --- the scale


def test_a_known_range_is_the_scale_and_else_the_largest_mean():
    arms = [ArmScores("lstm", (0, 1), (-900.0, -1100.0)), ArmScores("mlp", (0, 1), (300.0, 500.0))]
    assert return_scale(arms, bounds=(-200, 300)) == ReturnScale(-200.0, 300.0, "environment")
    assert return_scale(arms) == ReturnScale(0.0, 1000.0, "observed")
    assert "0 to 500, known beforehand" in CARTPOLE.describe()


def test_a_scale_from_the_data_is_labelled_where_the_smallest_effect_is_named_and_not_again_in_a_note():
    observed = ReturnScale(0.0, 457.4, "observed")
    assert observed.describe().startswith("457.4, the largest absolute mean of an arm")
    assert "was not fixed beforehand" in observed.describe()
    assert verdict(paired(30.0, 60.0), observed).notes == ("a note",)


def test_where_every_return_is_zero_memory_does_not_help():
    scale = return_scale([ArmScores("lstm", (0, 1), (0.0, 0.0))])
    result = verdict(paired_difference(np.zeros(6)), scale)
    assert (result.kind, result.min_effect) == ("does not help", 0.0)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, float("inf"))])
def test_a_range_that_is_none_is_refused(bounds):
    with pytest.raises(ConfigError, match="return range is"):
        return_scale([], bounds=bounds)


@pytest.mark.parametrize("min_effect", [0.0, -0.1, 1.5, float("nan")])
def test_a_smallest_effect_that_is_no_share_is_refused(min_effect):
    with pytest.raises(ConfigError, match=r"min_effect is .*: it is a share of the return scale"):
        verdict(paired(1.0, 2.0), min_effect=min_effect)


def test_no_scale_without_arms_or_bounds():
    with pytest.raises(ConfigError, match="no arm and no return range"):
        return_scale([])


# --- more seeds


@pytest.mark.parametrize(("mean", "spread"), [(5.0, 40.0), (0.0, 60.0), (2.0, 33.0), (-30.0, 90.0)])
def test_so_many_seeds_are_the_fewest_that_decide(mean, spread):
    found = more_seeds(10, mean=mean, spread=spread, min_effect=25.0)

    def half(total, room=0.0):
        return (student.ppf(0.975, total - 1) + room) * spread / np.sqrt(total)

    target = max(abs(mean), 25.0 - abs(mean))
    for missing, enough in ((found.at_most, half), (found.likely, lambda n: half(n, 0.8416212))):
        limit = 12.5 if enough is half else target
        if missing < 100:  # not rounded
            assert enough(10 + missing) <= limit < enough(10 + missing - 1)
        else:
            assert enough(10 + missing) <= limit < enough(10 + missing - 10)
    assert found.likely <= found.at_most


def test_numbers_of_seeds_are_rounded_up_to_two_digits_and_capped():
    assert more_seeds(10, mean=0.0, spread=100.0, min_effect=25.0).at_most % 10 == 0
    assert more_seeds(10, mean=0.0, spread=1e4, min_effect=25.0) == MoreSeeds(CAP, CAP)
    assert more_seeds(10, mean=400.0, spread=1e3, min_effect=1.0).at_most == CAP
    assert MoreSeeds(CAP, CAP).describe() == "more than 1,000 more seeds needed"
    assert MoreSeeds(40, CAP).describe().endswith("if the mean stays what it is, more than 1,000 whatever it is")
    assert MoreSeeds(1, 1).describe() == "about 1 more seed needed"


def test_there_are_at_least_as_many_as_the_exact_test_needs():
    assert more_seeds(5, mean=300.0, spread=1.0, min_effect=25.0, confidence=0.99).likely == 3  # 8: 2 / 2^8 <= 0.01


def test_where_no_mean_is_easy_to_decide_both_numbers_are_the_same():
    found = more_seeds(10, mean=12.5, spread=33.0, min_effect=25.0)
    assert found.likely == found.at_most
    assert found.describe() == f"about {found.at_most} more seeds needed"


def test_the_seeds_that_are_likely_to_decide_do_in_about_that_many_cases():
    generator = np.random.default_rng(0)
    total = 5 + more_seeds(5, mean=30.0, spread=32.0, min_effect=25.0).likely
    assert 8 < total < 15
    decided = [
        verdict(paired_difference(generator.normal(30.0, 32.0, total), resamples=1)).kind == "helps" for _ in range(300)
    ]
    assert POWER - 0.08 < np.mean(decided) < POWER + 0.08


# --- several tasks


def test_holms_p_values_are_those_of_the_definition():
    p_values = np.array([0.04, 0.001, 0.03, 0.2])
    np.testing.assert_allclose(holm(p_values), [0.09, 0.004, 0.09, 0.2])
    np.testing.assert_array_equal(holm(np.array([0.7])), [0.7])
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_lies_between_no_correction_and_bonferronis(p_values):
    p = np.array(p_values)
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1.0, len(p) * p + 1e-12)).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def task(name, by_seed, scale=CARTPOLE):
    seeds = tuple(range(len(by_seed)))
    lstm = ArmScores("lstm", seeds, tuple(300.0 + np.array(by_seed)))
    return TaskScores(name, (lstm, ArmScores("mlp", seeds, (300.0,) * len(seeds))), scale)


CLEAR = [40.0, 45.0, 38.0, 52.0, 44.0, 41.0, 47.0]
WEAK = [60.0, 5.0, 38.0, 22.0, -4.0, 81.0, 7.0]  # p = 0.03
NOTHING = [60.0, -50.0, -38.0, 22.0, -44.0, 81.0, 17.0]
SMALL = [3.0, -2.0, 1.0, 0.0, 2.0, -3.0, 1.0]


def together(*by_seed):
    tasks = [task(str(i), each) for i, each in enumerate(by_seed)]
    return [verdict.kind for verdict in decide_together(tasks, memory="lstm", memoryless="mlp").values()]


def test_one_task_is_decided_as_if_alone():
    (alone,) = decide_together([task("A", WEAK)], memory="lstm", memoryless="mlp").values()
    assert alone == verdict(paired_difference(np.array(WEAK)))
    assert alone.kind == "helps"


def test_a_weak_effect_does_not_survive_the_correction_and_a_clear_one_does():
    assert together(CLEAR, NOTHING) == ["helps", "cannot tell yet"]
    assert together(WEAK, NOTHING) == ["cannot tell yet", "cannot tell yet"]
    assert together(CLEAR, WEAK) == ["helps", "helps"]  # Holm: the second is only held against itself
    assert together(CLEAR, WEAK, NOTHING) == ["helps", "cannot tell yet", "cannot tell yet"]


def test_no_effect_is_claimed_from_the_simultaneous_interval():
    just = [20.0, -20.0, 22.0, -14.0, 25.0, -18.0, 6.0]
    alone, stricter = (paired_difference(np.array(just), confidence=c).interval for c in (0.95, 1 - 0.05 / 3))
    assert alone.within(25.0)
    assert not stricter.within(25.0)
    assert together(just) == ["does not help"]
    assert together(just, SMALL, SMALL) == ["cannot tell yet", "does not help", "does not help"]
    judged = decide_together([task("A", SMALL), task("B", CLEAR), task("C", CLEAR)], memory="lstm", memoryless="mlp")[
        "A"
    ]
    assert judged.interval.confidence == pytest.approx(1 - 0.05 / 3)
    assert "98.33 % interval" in judged.sentence
    assert "over 3 tasks" in judged.sentence


def test_five_seeds_cannot_show_an_effect_on_two_tasks():
    verdicts = decide_together([task("A", CLEAR[:5]), task("B", CLEAR[:5])], memory="lstm", memoryless="mlp")
    assert {each.kind for each in verdicts.values()} == {"cannot tell yet"}
    assert verdicts["A"].more_seeds.likely == 2  # 7: 2 / 2^7 <= 0.025


def test_a_shown_direction_that_is_not_shown_large_helps_perhaps():
    result = decide(
        paired(1.0, 24.0),
        memory="lstm",
        memoryless="mlp",
        scale=CARTPOLE,
        together=Together(2, 0.04, Interval(-1.0, 26.0, 0.975, "by hand")),
    )
    assert result.kind == "helps"
    assert "perhaps by less than 25.0" in result.sentence
    assert "p = 0.04 over 2 tasks" in result.sentence


def test_two_copies_on_three_tasks_are_seldom_told_apart_on_any():
    generator = np.random.default_rng(0)
    false = 0
    for _ in range(100):
        tasks = [task(name, generator.normal(0.0, 60.0, 8)) for name in "ABC"]
        verdicts = decide_together(tasks, memory="lstm", memoryless="mlp").values()
        false += any(each.kind in ("helps", "hurts") for each in verdicts)
    assert false / 100 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_tasks_that_cannot_be_decided_together_are_refused():
    with pytest.raises(ConfigError, match="no task to decide"):
        decide_together([], memory="lstm", memoryless="mlp")
    with pytest.raises(ConfigError, match="tasks are A, A: each may come once"):
        decide_together([task("A", CLEAR)] * 2, memory="lstm", memoryless="mlp")
    with pytest.raises(ConfigError, match="A has no scores of 'gru': it has lstm, mlp"):
        decide_together([task("A", CLEAR)], memory="gru", memoryless="mlp")
    with pytest.raises(ConfigError, match="arms of A are lstm, lstm"):
        TaskScores("A", (task("A", CLEAR).arms[0],) * 2, CARTPOLE)


# --- the twin


def scores(name, values, seeds=None):
    return ArmScores(name, seeds or tuple(range(len(values))), tuple(map(float, values)))


LSTM, MLP = scores("lstm", [420, 480, 470, 456, 448, 461]), scores("mlp", [168, 169, 139, 148, 177, 160])
TWIN_LSTM, TWIN_MLP = scores("lstm", [500, 500, 492, 500, 500, 498]), scores("mlp", [500, 470, 500, 500, 500, 500])


def test_the_part_due_to_hiding_is_the_difference_of_the_differences_seed_by_seed():
    effects = twin_effects((LSTM, MLP), (TWIN_LSTM, TWIN_MLP), min_effect=25.0)
    on_task, on_twin = LSTM.values - MLP.values, TWIN_LSTM.values - TWIN_MLP.values
    assert effects.task == paired_difference(on_task)
    assert effects.twin == paired_difference(on_twin)
    assert effects.due_to_hiding == paired_difference(on_task - on_twin)
    json.dumps(effects.to_dict(), allow_nan=False)


def test_the_seeds_of_the_twin_are_matched_whatever_their_order():
    backwards = [ArmScores(arm.name, arm.seeds[::-1], arm.scores[::-1]) for arm in (TWIN_LSTM, TWIN_MLP)]
    first = twin_effects((LSTM, MLP), (TWIN_LSTM, TWIN_MLP), min_effect=25.0)
    assert twin_effects((LSTM, MLP), tuple(backwards), min_effect=25.0) == first


def test_the_three_sentences_say_what_each_number_means_and_whether_its_sign_is_known():
    task_says, twin_says, rest_says = twin_effects((LSTM, MLP), (TWIN_LSTM, TWIN_MLP), min_effect=25.0).sentences
    assert task_says.startswith("On the task, lstm scores +295.7 (95 % interval +")
    assert "its sign is open" not in task_says
    assert twin_says.startswith("On its twin, where nothing is hidden, it scores +3.3 (95 % interval -")
    assert "so its sign is open" in twin_says
    assert rest_says.endswith("is the part of the effect that is due to what the observation hides.")


def test_on_a_twin_that_may_hide_something_no_sentence_says_that_nothing_is_hidden():
    lacks = "the observation model mask:1"
    _, twin_says, rest_says = twin_effects((LSTM, MLP), (TWIN_LSTM, TWIN_MLP), min_effect=25.0, without=lacks).sentences
    assert twin_says.startswith("On its twin, without the observation model mask:1, it scores +3.3")
    assert "nothing" not in twin_says
    assert rest_says.endswith("is the part of the effect that is due to the observation model mask:1.")


def test_with_too_few_seeds_the_sentences_give_no_interval():
    few = [scores(arm.name, arm.scores[:3]) for arm in (LSTM, MLP, TWIN_LSTM, TWIN_MLP)]
    sentences = twin_effects(tuple(few[:2]), tuple(few[2:]), min_effect=25.0).sentences
    assert all("too few seeds for an interval" in sentence for sentence in sentences)


def test_a_twin_with_other_seeds_or_arms_is_refused():
    later = [scores(arm.name, arm.scores, tuple(range(1, 7))) for arm in (TWIN_LSTM, TWIN_MLP)]
    with pytest.raises(ConfigError, match=r"seeds are \[0, 1, 2, 3, 4, 5\] on the task and \[1, 2, 3, 4, 5, 6\]"):
        twin_effects((LSTM, MLP), tuple(later), min_effect=25.0)
    with pytest.raises(ConfigError, match=r"arms are \['lstm', 'mlp'\] on the task and \['mlp', 'lstm'\]"):
        twin_effects((LSTM, MLP), (TWIN_MLP, TWIN_LSTM), min_effect=25.0)
