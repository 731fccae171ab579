"""Results are merged where they were made alike; where not, every setting that differs is named."""

import dataclasses

import pytest

from comparisons_for_tests import LSTM, MLP, comparison, condition
from thrust_rl.config import ConfigError, TrainConfig
from thrust_rl.experiment.command import repeating
from thrust_rl.experiment.comparison import Comparison, TaskResult
from thrust_rl.experiment.jobs import EvalConfig
from thrust_rl.experiment.merge import merged
from thrust_rl.experiment.merge_notes import given_again
from thrust_rl.experiment.verdict import SECOND_LOOK
from thrust_rl.files import write_json

EARLY = {"lstm": dict(enumerate(LSTM[:3])), "mlp": dict(enumerate(MLP[:3]))}
LATE = {"lstm": {i: LSTM[i] for i in (3, 4, 5)}, "mlp": {i: MLP[i] for i in (3, 4, 5)}}


def test_seeds_are_united_and_the_verdict_is_computed_anew():
    early, late = comparison(EARLY), comparison(LATE, seeds=(3, 4, 5))
    assert early.sentence.startswith("No verdict")
    both = merged([late, early], ["late", "early"])
    whole = comparison({"lstm": LSTM, "mlp": MLP})
    assert (both.seeds, both.status) == ((0, 1, 2, 3, 4, 5), "complete")
    assert [said for said in both.sentences if said not in both.notes] == list(whole.sentences)
    assert both.notes[0].startswith("Merged from late, early: deciding again after adding seeds is a second chance")
    assert [arm.recording["seed"] for arm in both.arms] == [0, 0]


def test_arms_are_united_too():
    both = merged([comparison({"lstm": LSTM}), comparison({"mlp": MLP, "lstm": LSTM})], ["a", "b"])
    assert [arm.name for arm in both.arms] == ["lstm", "mlp"]
    assert both.sentence.startswith("Memory helps")


BOTH, MORE = comparison({"lstm": LSTM, "mlp": MLP}), comparison({"gru": LSTM})
STACKED, OTHER = comparison({"lstm": LSTM, "framestack:4": MLP}), comparison({"gru": LSTM, "mlp": MLP})
PARTS = {
    # parts, the pair that was fixed beforehand, and the one that the verdict is about
    "an arm more": ([BOTH, MORE], ("lstm", "mlp"), ("lstm", "mlp")),
    "an arm more, given first": ([MORE, BOTH], ("lstm", "mlp"), ("lstm", "mlp")),
    "a nearer arm more": ([comparison({"mlp": MLP}), STACKED], ("lstm", "framestack:4"), ("lstm", "framestack:4")),
    "the same pair": ([comparison(EARLY), comparison(LATE, seeds=(3, 4, 5))], ("lstm", "mlp"), ("lstm", "mlp")),
    "two pairs": ([BOTH, OTHER], None, ("lstm", "mlp")),
    "no pair": ([comparison({"lstm": LSTM}), comparison({"mlp": MLP})], None, ("lstm", "mlp")),
    "merged from one": ([merged([MORE, BOTH], ["a", "b"]), MORE], ("lstm", "mlp"), ("lstm", "mlp")),
    "merged from none": ([merged([MORE, comparison({"mlp": MLP})], ["a", "b"]), MORE], None, ("gru", "mlp")),
    "merged from two": ([merged([OTHER, BOTH], ["a", "b"]), BOTH], None, ("gru", "mlp")),
}


@pytest.mark.parametrize(("parts", "fixed", "about"), PARTS.values(), ids=list(PARTS))
def test_the_pair_is_that_of_the_parts_and_is_called_fixed_only_where_it_was(tmp_path, parts, fixed, about):
    both = merged(parts, ["one", "two"])
    assert (both.pair, both.analysis.pair) == (fixed, about)
    [said] = [sentence for sentence in both.sentences if sentence.startswith("Fixed beforehand: ")]
    late = f"Chosen when results were merged: {about[0]} against {about[1]}."
    assert (f"{about[0]} against {about[1]}" in said) == (fixed is not None) != (late in both.sentences)
    write_json(tmp_path / "result.json", both.to_dict())
    assert Comparison.load(tmp_path) == both


CLOSE = {"lstm": dict(enumerate((1.0, 90.0, 2.0))), "mlp": dict(enumerate((2.0, 1.0, 80.0)))}
CLOSE_LATE = {arm: {seed + 3: score for seed, score in scores.items()} for arm, scores in CLOSE.items()}
LOOKED = tuple(f"Decided before with seeds {seeds}: {SECOND_LOOK}." for seeds in ("0 to 1", "0 to 2"))


@pytest.mark.parametrize("notes", [(), LOOKED[:1], LOOKED], ids=["none", "one", "two"])
def test_that_a_second_look_is_a_second_chance_to_be_wrong_is_said_once(notes):
    early = dataclasses.replace(comparison(CLOSE), notes=notes)
    both = merged([early, comparison(CLOSE_LATE, seeds=(3, 4, 5))], ["a", "b"])
    again = merged([both, comparison(CLOSE_LATE, seeds=(3, 4))], ["ab", "b"])
    for made in (both, again):
        [verdict] = [task.verdict for task in made.analysis.tasks]
        assert verdict.kind == "cannot tell yet"
        everything = " ".join((*made.sentences, *verdict.notes))
        assert everything.count("second chance to be wrong") == 1
        assert all(note.partition(":")[0] in everything for note in notes)
    alone = dataclasses.replace(both, notes=())
    assert alone.analysis.tasks[0].verdict.notes.count(SECOND_LOOK) == 1


def test_an_interrupted_result_is_completed_by_another():
    part = comparison({"lstm": LSTM[:2], "mlp": MLP}, status="interrupted", seeds=range(6))
    rest = comparison({"lstm": {i: LSTM[i] for i in range(2, 6)}}, status="complete", seeds=range(6))
    assert merged([part], ["a"]).status == "interrupted"
    assert merged([part, rest], ["a", "b"]).sentence.startswith("Memory helps")


OTHERS = {
    "config.ppo.gamma is 0.99 in one and 0.9 in two": dict(
        config=TrainConfig(ppo=dataclasses.replace(TrainConfig().ppo, gamma=0.9))
    ),
    "evaluation.episodes is 100 in one and 7 in two": dict(evaluation=EvalConfig(7)),
    "evaluation.max_steps is 10000 in one and 300 in two": dict(evaluation=EvalConfig(max_steps=300)),
    "min_effect is 0.05 in one and 0.1 in two": dict(min_effect=0.1),
}


@pytest.mark.parametrize(("said", "changes"), OTHERS.items())
def test_other_settings_are_refused_and_named(said, changes):
    early, late = comparison(EARLY), dataclasses.replace(comparison(LATE), **changes)
    with pytest.raises(ConfigError, match=f"^one and two cannot be merged, .* differ: {said}; report"):
        merged([early, late], ["one", "two"])


def test_another_task_or_another_arm_of_the_same_name_is_refused():
    with pytest.raises(
        ConfigError,
        match="tasks.FlickeringCartPole-v0 is present in a and absent in b; tasks.MaskedCartPole-v0 is absent",
    ):
        merged([comparison(EARLY), comparison(LATE, tasks=("MaskedCartPole-v0",))], ["a", "b"])
    wide = dataclasses.replace(comparison(EARLY).arm("mlp").arm, encoder_sizes=(7,))
    with pytest.raises(ConfigError, match=r"arms.mlp.encoder_sizes is \[128, 128\] in a and \[7\] in b"):
        merged([comparison({"mlp": MLP}), comparison({wide: MLP})], ["a", "b"])


def test_two_results_of_the_same_run_are_refused():
    with pytest.raises(ConfigError, match="mlp seed 0 has two different results"):
        merged([comparison({"mlp": [1.0]}), comparison({"mlp": [2.0]})], ["a", "b"])


def test_every_setting_that_differs_is_named_and_not_the_first_alone():
    early = comparison(EARLY)
    ppo = dataclasses.replace(TrainConfig().ppo, gamma=0.9)
    late = dataclasses.replace(comparison(LATE), config=TrainConfig(num_envs=8, ppo=ppo), min_effect=0.1)
    with pytest.raises(ConfigError) as caught:
        merged([early, late, comparison(LATE)], ["a", "b", "c"])
    for said in (
        "num_envs is 16 in a and 8 in b",
        "ppo.gamma is 0.99 in a and 0.9 in b",
        "min_effect is 0.05 in a and",
    ):
        assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_that_is_in_several_results_counts_once_and_a_note_says_so():
    whole = comparison({"lstm": LSTM, "mlp": MLP})
    both = merged([whole, comparison(EARLY)], ["a", "b"])
    assert [arm.seeds for arm in both.arms] == [arm.seeds for arm in whole.arms]
    [said] = [note for note in both.notes if "counted once" in note]
    assert "lstm seeds 0 to 2 on FlickeringCartPole-v0; mlp seeds 0 to 2 on FlickeringCartPole-v0" in said
    assert said in both.sentences
    apart = merged([comparison(EARLY), comparison(LATE, seeds=(3, 4, 5))], ["a", "b"])
    assert not any("counted once" in note for note in apart.notes)


def test_the_same_folder_twice_is_one():
    whole = comparison({"lstm": LSTM, "mlp": MLP})
    assert merged([whole, whole], ["a", "a"]) == whole
    assert given_again(["a", "b", "a"]) == ["a was given 2 times and counts once."]


def test_tasks_are_merged_by_their_name_and_not_by_their_place():
    tasks = ("FlickeringCartPole-v0", "MaskedCartPole-v0")
    early, late = comparison(EARLY, tasks=tasks), comparison(LATE, tasks=tasks, seeds=(3, 4, 5))
    poor = condition({name: {seed: 9.0 for seed in scores} for name, scores in LATE.items()}, env=tasks[0])
    late = dataclasses.replace(late, tasks=(late.tasks[1], TaskResult(tasks[0], (poor,))))
    flicker, mask = merged([early, late], ["a", "b"]).tasks
    assert (flicker.label, mask.label) == tasks
    assert [seed.score for seed in flicker.task.arm("lstm").seeds] == [*LSTM[:3], 9.0, 9.0, 9.0]
    assert [seed.score for seed in mask.task.arm("lstm").seeds] == list(LSTM)


def test_other_versions_are_a_warning_and_all_of_them_are_kept():
    early, late, last = (
        dataclasses.replace(comparison(scores, seeds=seeds), versions={"jax": jax, "numpy": "2.0"})
        for scores, seeds, jax in ((EARLY, (0, 1, 2), "0.10.1"), (LATE, (3, 4, 5), "0.10.2"), (EARLY, (0,), "0.10.1"))
    )
    both = merged([early, late], ["a", "b"])
    assert both.versions == {"jax": "0.10.1 and 0.10.2", "numpy": "2.0"}
    [said] = [sentence for sentence in both.sentences if sentence.startswith("Warning")]
    assert "jax (0.10.1 in a, 0.10.2 in b)" in said and "numpy" not in said
    more = merged([both, last], ["ab", "c"])
    assert more.versions == both.versions and said in more.notes
    assert not any("Warning" in note for note in merged([early, last], ["a", "c"]).notes)


def test_what_is_missing_after_a_merge_is_told():
    both = merged([comparison({"lstm": LSTM, "mlp": MLP}), comparison({"gru": {7: 1.0}}, seeds=(7,))], ["a", "b"])
    [said] = [note for note in both.notes if note.startswith("Not finished")]
    assert "gru seeds 0 to 5" in said and "mlp seed 7 on" in said


def test_the_command_of_a_merge_repeats_every_part_in_its_folder_and_then_merges():
    early, late = (
        dataclasses.replace(comparison(scores, seeds=seeds), command=command)
        for scores, seeds, command in ((EARLY, (0, 1, 2), "thrust x"), (LATE, (3, 4, 5), "thrust y"))
    )
    both = merged([early, late], ["a", "my runs"])
    assert both.command == "thrust x --out a &&\nthrust y --out 'my runs' &&\nthrust report a 'my runs'"
    assert merged([both, early], ["ab", "a"]).command.startswith(f"{both.command} --out ab &&\nthrust x --out a &&")
    assert merged([early, dataclasses.replace(late, command=None)], ["a", "b"]).command is None


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("compare A --seeds 3 --out here --fresh --quiet", "thrust compare A --seeds 3"),
        ("compare --out=here A", "thrust compare A"),
        ("compare --out here A", "thrust compare A"),
        ("compare --arms lstm mlp --out here A", "thrust compare --arms lstm mlp --no-quiet A"),
        ("compare --arms lstm --fresh --seeds 3 A", "thrust compare --arms lstm --seeds 3 A"),
    ],
)
def test_a_command_is_repeated_without_where_it_went(typed, kept):
    assert repeating(typed.split()) == kept
