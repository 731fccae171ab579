"""Results are merged where they were made alike; where not, the first setting that differs is named."""

import dataclasses

import pytest

from comparisons_for_tests import LSTM, MLP, comparison
from thrust_rl.config import ConfigError, TrainConfig
from thrust_rl.experiment.jobs import EvalConfig
from thrust_rl.experiment.merge import merged

EARLY = {"lstm": dict(enumerate(LSTM[:3])), "mlp": dict(enumerate(MLP[:3]))}
LATE = {"lstm": {i: LSTM[i] for i in (3, 4, 5)}, "mlp": {i: MLP[i] for i in (3, 4, 5)}}


def test_seeds_are_united_and_the_verdict_is_computed_anew():
    early, late = comparison(EARLY), comparison(LATE, seeds=(3, 4, 5))
    assert early.sentence.startswith("No verdict")
    both = merged([late, early], ["late", "early"])
    whole = comparison({"lstm": LSTM, "mlp": MLP})
    assert (both.seeds, both.status) == ((0, 1, 2, 3, 4, 5), "complete")
    assert both.sentences == whole.sentences
    assert [arm.recording["seed"] for arm in both.arms] == [0, 0]


def test_arms_are_united_too():
    both = merged([comparison({"lstm": LSTM}), comparison({"mlp": MLP, "lstm": LSTM})], ["a", "b"])
    assert [arm.name for arm in both.arms] == ["lstm", "mlp"]
    assert both.sentence.startswith("Memory helps")


def test_an_interrupted_result_is_completed_by_another():
    part = comparison({"lstm": LSTM[:2], "mlp": MLP}, status="interrupted", seeds=range(6))
    rest = comparison({"lstm": {i: LSTM[i] for i in range(2, 6)}}, status="complete", seeds=range(6))
    assert merged([part], ["a"]).status == "interrupted"
    assert merged([part, rest], ["a", "b"]).sentence.startswith("Memory helps")


OTHERS = {
    "config.ppo.gamma is 0.99 in the first and 0.9 in the second": dict(
        config=TrainConfig(ppo=dataclasses.replace(TrainConfig().ppo, gamma=0.9))
    ),
    "evaluation.episodes is 100 in the first and 7 in the second": dict(evaluation=EvalConfig(7)),
    "min_effect is 0.05 in the first and 0.1 in the second": dict(min_effect=0.1),
}


@pytest.mark.parametrize(("said", "changes"), OTHERS.items())
def test_other_settings_are_refused_and_named(said, changes):
    early, late = comparison(EARLY), dataclasses.replace(comparison(LATE), **changes)
    with pytest.raises(ConfigError, match=f"^one and two cannot be merged: {said}"):
        merged([early, late], ["one", "two"])


def test_another_task_or_another_arm_of_the_same_name_is_refused():
    with pytest.raises(
        ConfigError, match="tasks.FlickeringCartPole-v0 is present in the first and absent in the second"
    ):
        merged([comparison(EARLY), comparison(LATE, tasks=("MaskedCartPole-v0",))], ["a", "b"])
    wide = dataclasses.replace(comparison(EARLY).arm("mlp").arm, encoder_sizes=(7,))
    with pytest.raises(
        ConfigError, match=r"arms.mlp.encoder_sizes is \[128, 128\] in the first and \[7\] in the second"
    ):
        merged([comparison({"mlp": MLP}), comparison({wide: MLP})], ["a", "b"])


def test_two_results_of_the_same_run_are_refused():
    with pytest.raises(ConfigError, match="mlp seed 0 has two different results"):
        merged([comparison({"mlp": [1.0]}), comparison({"mlp": [2.0]})], ["a", "b"])
    assert merged([comparison({"mlp": [1.0]})] * 2, ["a", "b"]).seeds == (0,)
