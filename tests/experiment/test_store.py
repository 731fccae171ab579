"""Finished runs are kept whole; a folder or file made with other settings is refused, and nothing in it is lost."""

import dataclasses
import json

import pytest

from comparisons_for_tests import seed_result
from thrust_rl.config import ConfigError, TrainConfig
from thrust_rl.experiment.plan import Options, jobs_of, plan
from thrust_rl.experiment.store import RunStore, split_jobs

FLICKER = "FlickeringCartPole-v0"
TINY = TrainConfig(total_timesteps=512, num_envs=4, num_steps=32)


def planned(env=FLICKER, **options):
    return plan(env, Options(**{"arms": ["mlp"], "seeds": 2, "config": TINY, **options}))


@pytest.fixture
def kept(tmp_path):
    """A folder with the first of two runs."""
    before = planned()
    store = RunStore(tmp_path, before)
    store.begin()
    store.keep(jobs_of(before)[0], seed_result(0, 12.5, recorded=True))
    return tmp_path


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_finished_run_is_found_again_and_the_rest_is_left(kept):
    jobs = jobs_of(planned())
    [(job, result)], left = split_jobs(jobs, RunStore(kept, planned()))
    assert (job, result) == (jobs[0], seed_result(0, 12.5, recorded=True))
    assert left == [jobs[1]]
    assert split_jobs(jobs, None) == ([], jobs)


OTHERS = {
    "config.ppo.gamma is 0.99 there and 0.9 here": dict(
        config=dataclasses.replace(TINY, ppo=dataclasses.replace(TINY.ppo, gamma=0.9))
    ),
    "evaluation.episodes is 100 there and 5 here": dict(eval_episodes=5),
    "evaluation.max_steps is 10000 there and 300 here": dict(eval_steps=300),
    "first_seed is 0 there and 1 here": dict(seed=1),
    "twin is absent there and present here": dict(twin=True),
    "arms.lstm is absent there and present here": dict(arms=["mlp", "lstm"]),
    "tasks.MaskedCartPole-v0 is absent there and present here": dict(env="MaskedCartPole-v0"),
}


@pytest.mark.parametrize(("said", "changes"), OTHERS.items())
def test_a_folder_made_with_other_settings_is_refused_and_they_are_named(kept, said, changes):
    before = content(kept)
    with pytest.raises(ConfigError, match="give another folder, or --fresh") as caught:
        RunStore(kept, planned(**changes))
    assert said in str(caught.value) and str(kept) in str(caught.value) and "\n" not in str(caught.value)
    assert content(kept) == before


def test_a_folder_from_before_episodes_had_a_most_number_of_steps_goes_on_with_the_default(kept):
    """A run's digest is the one it had then."""
    path, run = kept / "runs" / "plan.json", kept / "runs" / f"{FLICKER}-task-mlp-0.json"
    data = json.loads(path.read_text())
    assert data["settings"]["evaluation"].pop("max_steps") == 10_000
    path.write_text(json.dumps(data))
    assert json.loads(run.read_text())["settings"]["evaluation"] == {"episodes": 100, "seed": 1_000_003}
    assert len(split_jobs(jobs_of(planned()), RunStore(kept, planned()))[0]) == 1
    with pytest.raises(ConfigError, match="evaluation.max_steps is 10000 there and 300 here"):
        RunStore(kept, planned(eval_steps=300))


def test_a_most_number_of_steps_is_part_of_what_decides_a_run(tmp_path):
    other = planned(eval_steps=300)
    store = RunStore(tmp_path, other)
    store.begin()
    store.keep(jobs_of(other)[0], seed_result(0, 12.5))
    assert len(split_jobs(jobs_of(other), store)[0]) == 1
    with pytest.raises(ConfigError, match="max_steps is 300 there and absent here"):
        split_jobs(jobs_of(planned()), store)


def test_a_run_of_before_that_cut_later_is_not_taken_for_one_of_now(kept):
    before, result = planned(), seed_result(1, 12.5)
    long = {way: {**played, "lengths": [100_000] * 100, "cut": 100} for way, played in result.evaluation.items()}
    store = RunStore(kept, before)
    store.keep(jobs_of(before)[1], dataclasses.replace(result, evaluation=long))
    with pytest.raises(ConfigError, match="an evaluation episode of 100000 steps, and eval_steps is 10000: delete it"):
        split_jobs(jobs_of(before), store)


def test_another_version_of_what_decides_the_numbers_is_another_setting(kept):
    newer = dataclasses.replace(planned(), versions={**planned().versions, "jax": "99.0"})
    with pytest.raises(ConfigError, match=r"versions.jax is .* there and '99.0' here"):
        RunStore(kept, newer)


def test_the_number_of_seeds_and_of_processes_changes_no_run(kept):
    more = planned(seeds=7)
    assert len(split_jobs(jobs_of(more), RunStore(kept, more))[0]) == 1


def test_a_result_without_its_runs_is_not_overwritten(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds a result.json without the runs"):
        RunStore(tmp_path, planned())
    RunStore(tmp_path, planned(), fresh=True)
    assert (tmp_path / "result.json").read_text() == "{}"


def test_started_over_only_what_is_ours_is_deleted(kept):
    (kept / "runs" / "notes.txt").write_text("mine")
    other = planned(eval_episodes=5)
    store = RunStore(kept, other, fresh=True)
    assert split_jobs(jobs_of(other), store)[0] == []
    assert [path.name for path in (kept / "runs").iterdir()] == ["notes.txt"]


def test_a_folder_called_runs_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "data.json").write_text("{}")
    RunStore(tmp_path, planned(), fresh=True)
    assert (tmp_path / "runs" / "data.json").exists()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[:40], "is damaged"),
        (lambda text: text.replace("12.5", "13.5"), "its content was changed"),
        (lambda text: text.replace('"digest": "', '"digest": "0'), "was made with other settings"),
        (lambda text: text.replace('"thrust-rl/run"', '"other"'), "is no thrust-rl/run"),
    ],
)
def test_a_damaged_run_is_refused_by_its_name_with_a_remedy(kept, damage, said):
    path = kept / "runs" / f"{FLICKER}-task-mlp-0.json"
    path.write_text(damage(path.read_text()))
    before = content(kept)
    with pytest.raises(ConfigError, match="delete it, and the run is done again") as caught:
        split_jobs(jobs_of(planned()), RunStore(kept, planned()))
    assert said in str(caught.value) and str(path) in str(caught.value)
    assert content(kept) == before


def test_seeds_added_after_a_verdict_are_a_second_look_and_an_interruption_is_none(tmp_path):
    first, more = planned(seeds=6), planned(seeds=9)
    interrupted = RunStore(tmp_path, first)
    interrupted.begin()
    again = RunStore(tmp_path, first)
    assert again.notes == ()
    again.begin()
    again.looked()
    assert RunStore(tmp_path, first).notes == ()
    added = RunStore(tmp_path, more)
    assert [note.partition(":")[0] for note in added.notes] == ["Decided before with seeds 0 to 5"]
    added.begin()
    added.looked()
    said = [note.partition(":")[0] for note in RunStore(tmp_path, planned(seeds=12)).notes]
    assert said == ["Decided before with seeds 0 to 5; and with 0 to 8"]
    assert RunStore(tmp_path, more, fresh=True).notes == ()
