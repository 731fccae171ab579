"""The sentence names a winner only where there is one, and result.json is whole."""

import dataclasses
import json
import re

import pytest

import thrust_rl
from thrust_rl.config import ARMS, ArmConfig, TrainConfig
from thrust_rl.experiment.comparison import SCHEMA_VERSION, ArmResult, Comparison, versions, write_json
from thrust_rl.experiment.jobs import Job, SeedResult, mean_of


def seed_result(seed, final, best=None, params=7):
    best = final if best is None else best
    curve = () if final is None else (final,)
    return SeedResult(seed, params, final, best, (128,) * len(curve), curve, len(curve), 128, 1000.0, 0.5, 0.25)


def comparison(finals, *, status="complete", num_seeds=None):
    """`finals`: final returns by arm, in the order of the seeds."""
    arms = tuple(
        ArmResult(ArmConfig(name), 3e-4, tuple(seed_result(i, final) for i, final in enumerate(values)))
        for name, values in finals.items()
    )
    seeds = tuple(range(num_seeds or max(map(len, finals.values()))))
    return Comparison("CartPole-v1", {"integrator": "euler"}, TrainConfig(), seeds, arms, status)


def test_the_arm_that_is_ahead_on_every_seed_won():
    sentence = comparison({"mlp": [10.0, 20.0, 30.0], "lstm": [40.0, 50.5, 60.0]}).sentence
    assert sentence == "lstm won against mlp by 30.2: mean final return 50.2 against 20.0, ahead on 3 of 3 seeds."


def test_one_seed_is_spoken_of_as_one():
    assert comparison({"a": [2.0], "b": [1.0]}).sentence.endswith("ahead on 1 of 1 seed.")


@pytest.mark.parametrize("behind", [29.0, 30.0], ids=["behind", "level"])
def test_there_is_no_winner_without_a_lead_on_every_seed(behind):
    sentence = comparison({"a": [100.0, 100.0, behind], "b": [10.0, 20.0, 30.0]}).sentence
    assert sentence.startswith("No clear winner: a leads b by ")
    assert sentence.endswith("but on only 2 of 3 seeds.")
    assert "won" not in sentence


def test_arms_that_are_level_do_not_lead_each_other():
    sentence = comparison({"a": [500.0, 500.0], "b": [500.0, 500.0]}).sentence
    assert sentence == "No clear winner: a and b are level at a mean final return of 500.0."


def test_one_arm_has_nobody_to_win_against():
    assert comparison({"mlp": [10.0, 20.0]}).sentence == "mlp reached a mean final return of 15.0."


def test_of_three_arms_the_best_two_are_compared():
    finals = {"low": [1.0, 1.0], "high": [9.0, 9.0], "middle": [5.0, 5.0]}
    assert comparison(finals).sentence.startswith("high won against middle by 4.0:")
    assert comparison({**finals, "middle": [3.0, 9.5]}).sentence.startswith("No clear winner: high leads middle by 2.8")


@pytest.mark.parametrize("finals", [{"a": [None]}, {"a": [5.0, 5.0], "b": [1.0, None]}, {"a": [None], "b": [None]}])
def test_a_run_without_a_finished_episode_leaves_nothing_to_say(finals):
    sentence = comparison(finals).sentence
    assert sentence.startswith("No episode finished in some runs")
    assert not re.search(r"won|leads|reached", sentence)


@pytest.mark.parametrize("finals", [{"a": [9.0], "b": [1.0]}, {"a": [9.0], "b": []}, {"a": [], "b": []}])
def test_an_interrupted_comparison_names_no_winner(finals):
    sentence = comparison(finals, status="interrupted", num_seeds=3).sentence
    assert sentence.startswith("Interrupted: no winner is named")


def test_a_mean_with_a_missing_value_is_missing():
    assert mean_of([1.0, 2.0]) == 1.5
    assert mean_of([1.0, None]) is None
    assert mean_of([]) is None


def test_an_arm_is_found_by_its_name_and_averages_its_seeds():
    found = comparison({"a": [1.0, 2.0], "b": [5.0, 7.0]}).arm("b")
    assert (found.final, found.best, found.params) == (6.0, 6.0, 7)
    empty = comparison({"a": []}, num_seeds=1).arm("a")
    assert (empty.final, empty.best, empty.params) == (None, None, None)


@pytest.mark.parametrize("finals", [{"a": [1.0, 2.0], "b": [None, 3.0]}, {"a": [], "b": []}])
def test_the_dictionary_survives_json_with_every_key(finals):
    data = comparison(finals, num_seeds=2).to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["schema"] == "thrust-rl/comparison"
    assert data["schema_version"] == SCHEMA_VERSION == 1
    assert set(data) == {
        *("schema", "schema_version", "status", "environment", "config", "seeds", "arms", "sentence", "versions")
    }
    assert set(data["config"]) == {field.name for field in dataclasses.fields(TrainConfig)}
    for arm in data["arms"].values():
        assert set(arm) == {"params", "config", "mean", "seeds"}
        assert set(arm["config"]) == {field.name for field in dataclasses.fields(ArmConfig)}
        assert set(arm["mean"]) == {"final", "best"}
        for seed in arm["seeds"]:
            assert set(seed) == {
                *("seed", "final", "best", "curve", "episodes"),
                *("steps", "steps_per_second", "seconds_compile", "seconds_run"),
            }


def test_versions_name_python_and_what_decides_the_numbers():
    found = versions()
    assert set(found) == {"python", "thrust-rl", "jax", "jaxlib", "equinox", "optax", "gymnasium", "numpy"}
    assert found["thrust-rl"] == thrust_rl.__version__
    assert "not installed" not in found.values()


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "result.json"
    write_json(path, {"a": 1})
    before = path.read_bytes()
    with pytest.raises(ValueError):
        write_json(path, {"long": list(range(100_000)), "not a number": float("nan")})
    assert path.read_bytes() == before
    with pytest.raises(TypeError):
        write_json(tmp_path / "other.json", {"first": 1, "object": object()})
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_never_sees_half_a_file(tmp_path, monkeypatch):
    """While the new content is being written the old file is still there, whole."""
    path, seen = tmp_path / "result.json", []
    write_json(path, {"a": 1})
    plain = json.dump

    def dump(data, file, **options):
        plain(data, file, **options)
        file.flush()
        seen.append(json.loads(path.read_text()))

    monkeypatch.setattr(json, "dump", dump)
    write_json(path, {"a": 2})
    assert seen == [{"a": 1}]
    assert json.loads(path.read_text()) == {"a": 2}


def test_jobs_and_results_survive_the_way_to_a_worker_and_back():
    config = TrainConfig(num_steps=64, ppo=dataclasses.replace(TrainConfig().ppo, clip_range_vf=None))
    for arm in ARMS.values():
        job = Job("FlickeringCartPole-v0", {"flicker_prob": 0.25, "burst_len": None}, arm, config, (3, 4))
        assert Job.from_dict(json.loads(json.dumps(job.to_dict()))) == job
    for result in (seed_result(1, 0.1 + 0.2), seed_result(2, None)):
        assert SeedResult.from_dict(json.loads(json.dumps(dataclasses.asdict(result)))) == result
