"""What a comparison says follows from its scores: the pair, the verdict, the twin, all tasks, and what is missing."""

import dataclasses

import pytest

from comparisons_for_tests import LSTM, MLP, comparison
from thrust_rl.config import ArmConfig, TrainConfig, arm_from
from thrust_rl.experiment.analysis import verdict_pair
from thrust_rl.experiment.jobs import EvalConfig


def arms(*names):
    return [arm_from(name) for name in names]


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (("lstm", "mlp"), ("lstm", "mlp")),
        (("mlp", "gru", "lstm"), ("gru", "mlp")),
        (("lstm", "lstm-reset", "framestack:4"), ("lstm", "framestack:4")),
        (("lstm", "gru", "framestack:4", "lstm-reset", "mlp+action", "mlp"), ("lstm", "mlp+action")),
        (("lstm-reset", "lstm"), ("lstm", "lstm-reset")),
        (("lstm", "gru"), None),
        (("mlp", "lstm-reset"), None),
    ],
)
def test_the_pair_is_the_first_arm_that_remembers_and_the_first_that_does_not(names, pair):
    assert verdict_pair(arms(*names)) == pair


def test_the_verdict_is_about_evaluation_scores_and_not_about_training_returns():
    said = comparison({"lstm": LSTM, "mlp": MLP}, final=77.0)
    assert said.sentence.startswith("Memory helps after 500,000 steps: lstm minus mlp is +302.3 (95 % interval")
    assert said.analysis.tasks[0].verdict.min_effect == 25.0
    said = comparison({"lstm": MLP, "mlp": LSTM})
    assert said.sentence.startswith("Memory hurts after 500,000 steps: lstm minus mlp is -302.3")
    equal = comparison({"lstm": LSTM, "mlp": tuple(score - (-1) ** i for i, score in enumerate(LSTM))})
    assert equal.sentence.startswith("Memory does not help")


def test_the_smallest_effect_of_interest_decides():
    small = comparison({"lstm": tuple(score + 40.0 + i for i, score in enumerate(MLP)), "mlp": MLP})
    assert small.sentence.startswith("Memory helps")
    large = dataclasses.replace(small, min_effect=0.2)
    assert large.sentence.startswith("Memory does not help")
    assert "Smallest effect of interest: 20 % of the environment's return range, 0 to 500" in " ".join(large.sentences)


def test_with_few_seeds_it_says_who_leads_and_withholds_the_verdict():
    assert comparison({"lstm": LSTM[:2], "mlp": MLP[:2]}).sentence == (
        "No verdict: 2 seeds are too few to tell, give at least 5; so far lstm minus mlp is +286.5."
    )


def test_interrupted_there_is_no_verdict():
    said = comparison({"lstm": LSTM, "mlp": MLP}, status="interrupted")
    assert said.sentence.startswith("Interrupted: no verdict")
    assert said.analysis.tasks[0].verdict is None
    assert comparison({"lstm": (), "mlp": ()}, status="interrupted", seeds=(0, 1)).sentence.startswith("Interrupted")


def test_the_gap_to_the_same_network_without_memory_is_told_apart():
    said = comparison({"lstm": LSTM, "mlp": MLP, "lstm-reset": tuple(score + 5.0 for score in MLP)})
    assert [(one.about, one.contrast.first, one.contrast.second) for one in said.analysis.tasks[0].contrasts] == [
        ("verdict", "lstm", "mlp"),
        ("memory alone", "lstm", "lstm-reset"),
        ("other", "mlp", "lstm-reset"),
    ]
    [alone] = [sentence for sentence in said.sentences if sentence.startswith("Memory alone")]
    assert "lstm minus lstm-reset is +297.3" in alone


def test_the_twin_gives_three_quantities_with_a_sentence_each():
    said = comparison({"lstm": LSTM, "mlp": MLP}, twin={"lstm": (490.0,) * 6, "mlp": (500.0,) * 6})
    effects = said.analysis.tasks[0].twin_effects
    assert (effects.twin.mean, round(effects.due_to_hiding.mean, 1)) == (-10.0, 312.3)
    assert set(effects.sentences) <= set(said.sentences)


def test_several_tasks_are_decided_together_and_aggregated():
    scores = {"lstm": (*LSTM, 462.0, 470.0), "mlp": (*MLP, 160.0, 171.0)}  # six seeds are too few for two tasks
    said = comparison(scores, tasks=("FlickeringCartPole-v0", "MaskedCartPole-v0"))
    assert said.sentences[0].startswith("FlickeringCartPole-v0: Memory helps")
    assert said.sentences[1].startswith("MaskedCartPole-v0: Memory helps")
    alone = comparison(scores).analysis.tasks[0].verdict
    assert said.analysis.tasks[0].verdict.p_value == 2 * alone.p_value, "Holm's correction"
    assert said.analysis.aggregate.tasks == ("FlickeringCartPole-v0", "MaskedCartPole-v0")
    [over] = [sentence for sentence in said.sentences if sentence.startswith("Over 2 tasks")]
    assert "lstm minus mlp is +0.6" in over
    assert comparison(scores).analysis.aggregate is None


@pytest.mark.parametrize(("few", "seeds"), [(4, "4 seeds are"), (1, "1 seed is")])
def test_under_five_seeds_the_aggregate_is_withheld_as_a_verdict_is(few, seeds):
    tasks = ("FlickeringCartPole-v0", "MaskedCartPole-v0")
    [over] = [
        sentence
        for sentence in comparison({"lstm": LSTM[:few], "mlp": MLP[:few]}, tasks=tasks).sentences
        if sentence.startswith("Over 2 tasks")
    ]
    assert "interval" not in over and over.endswith(
        f"{seeds} too few to tell how much of it is chance, give at least 5."
    )
    five = comparison({"lstm": LSTM[:5], "mlp": MLP[:5]}, tasks=tasks)
    assert any(sentence.startswith("Over 2 tasks") and "95 % interval" in sentence for sentence in five.sentences)


def test_what_was_fixed_beforehand_is_said_in_full():
    made = comparison({"lstm": LSTM, "mlp": MLP}, seeds=(0, 1, 2, 3, 4, 5))
    first, effect, rule = made.sentences[-3:]
    assert first == (
        "Fixed beforehand: lstm against mlp; seeds 0 to 5; 500,000 environment steps each;"
        " score: mean return of 100 evaluation episodes with actions drawn."
    )
    assert "5 % of the environment's return range, 0 to 500, known beforehand; that is 25." in effect
    assert rule.startswith("Decision rule: the 95 % interval of the mean difference") and "under 5 seeds" in rule
    assert "Holm" not in rule
    other = dataclasses.replace(
        made, config=TrainConfig(total_timesteps=4096), evaluation=EvalConfig(7), min_effect=0.2
    )
    changed = other.sentences[-3:]
    assert "4,096 environment steps" in changed[0] and "7 evaluation episodes" in changed[0] and "20 %" in changed[1]


def test_several_tasks_have_their_own_smallest_effects_and_one_seen_in_the_data_is_called_so():
    said = comparison({"lstm": LSTM, "mlp": MLP}, tasks=("FlickeringCartPole-v0", "LunarLander-v3")).sentences
    [effect] = [sentence for sentence in said if sentence.startswith("Smallest effect")]
    assert "25 on FlickeringCartPole-v0, 23.05 on LunarLander-v3" in effect
    assert "the scale of LunarLander-v3 comes from the data and was not fixed beforehand" in effect
    assert "Over 2 tasks, helps and hurts also take a p-value of at most 0.05 after Holm's correction" in said[-1]
    assert "97.5 % interval" in said[-1]


def test_arms_are_compared_on_the_seeds_that_both_have():
    said = comparison({"lstm": LSTM, "mlp": {seed: score for seed, score in enumerate(MLP) if seed != 2}})
    verdict = said.analysis.tasks[0].verdict
    assert verdict.num_seeds == 5
    assert verdict.effect == pytest.approx(
        sum(a - b for i, (a, b) in enumerate(zip(LSTM, MLP, strict=True)) if i != 2) / 5
    )


def test_without_a_pair_nothing_is_said_about_memory():
    assert comparison({"mlp": MLP}).sentence.startswith("mlp reached a mean evaluation return of 158.7")
    two = comparison({"mlp": MLP, "framestack:4": LSTM})
    assert two.sentence.startswith("No verdict about memory") and "mlp minus framestack:4 is -302.3" in two.sentence
    apart = comparison({"lstm": {0: 1.0}, "mlp": {1: 2.0}})
    assert apart.sentence.startswith("No verdict: the arms have no seed in common")


def cut(made, sampled, greedy):
    """The same comparison, with so many episodes of lstm cut in every seed."""

    def with_cuts(seed):
        counts = {"sampled": sampled, "greedy": greedy}
        return dataclasses.replace(
            seed, evaluation={way: {**seed.evaluation[way], "cut": count} for way, count in counts.items()}
        )

    [task] = made.tasks
    [condition] = task.conditions
    lstm, *others = condition.arms
    lstm = dataclasses.replace(lstm, seeds=tuple(map(with_cuts, lstm.seeds)))
    condition = dataclasses.replace(condition, arms=(lstm, *others))
    return dataclasses.replace(made, tasks=(dataclasses.replace(task, conditions=(condition,)),))


@pytest.mark.parametrize(
    ("sampled", "greedy", "said"),
    [
        (2, 0, ": 12 of 600 evaluation episodes of lstm on {}. Its score is of the cut episodes"),
        (0, 1, ": 6 of 600 greedy evaluation episodes of lstm on {}. Its greedy return is of the cut episodes"),
        (
            100,
            1,
            ": 600 of 600 evaluation episodes and 6 of 600 greedy evaluation episodes of lstm on {}."
            " Its score and greedy return are of the cut episodes",
        ),
        (0, 0, None),
    ],
)
def test_every_arm_whose_episodes_were_cut_is_told_with_where_and_how_many(sampled, greedy, said):
    made = cut(comparison({"lstm": LSTM, "mlp": MLP}), sampled, greedy)
    made = dataclasses.replace(made, evaluation=EvalConfig(max_steps=4321))
    found = [sentence for sentence in made.sentences if "Cut after" in sentence]
    where = "Cut after 4,321 steps, without having ended"
    ending = "; --eval-steps sets where."
    assert found == ([where + said.format("FlickeringCartPole-v0") + ending] if said else [])


def test_inputs_and_replaced_environments_are_told():
    fed = ArmConfig("own", previous_action=True).with_inputs()
    said = " ".join(comparison({"lstm": LSTM, fed: MLP}, restarts=1).sentences)
    assert "Fed with their previous action or reward, a memory channel of its own: own+action." in said
    assert "lstm and own+action are not fed the same: their difference is not the memory's alone." in said
    assert "12 environments failed and were replaced" in said
    plain = " ".join(comparison({"lstm": LSTM, "mlp": MLP}).sentences)
    assert "Fed with" not in plain and "replaced" not in plain and "not fed the same" not in plain
    alike = " ".join(comparison({"lstm+action": LSTM, fed: MLP}).sentences)
    assert "Fed with" in alike and "not fed the same" not in alike
