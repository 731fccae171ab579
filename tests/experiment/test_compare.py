"""`compare` gives the same answer every time, keeps what was finished, and writes nothing it need not."""

import dataclasses
import functools
import json
import sys
from pathlib import Path

import matplotlib.image
import pytest

import thrust_rl.experiment.compare
from thrust_rl.config import ARMS, ArmConfig, ConfigError, TrainConfig
from thrust_rl.experiment.compare import compare
from thrust_rl.experiment.comparison import Comparison
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.plan import MAX_SEED
from thrust_rl.experiment.runner import RunError, Runner
from thrust_rl.files import writable_folder

FAKE_WORKER = str(Path(__file__).with_name("fake_worker.py"))
TINY = TrainConfig(total_timesteps=512, num_envs=4, num_steps=32)
NOT_REPRODUCIBLE = ("steps_per_second", "seconds_compile", "seconds_run", "seconds")


def reproducible(data):
    """The dictionary without the times."""
    if isinstance(data, dict):
        return {key: reproducible(value) for key, value in data.items() if key not in NOT_REPRODUCIBLE}
    return [reproducible(value) for value in data] if isinstance(data, list) else data


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """`fake(**options)` lets `compare` run on workers that train nothing."""

    def use(**options):
        flags = [f"--{name}={value}" for name, value in options.items()]
        command = [sys.executable, "-S", "-E", FAKE_WORKER, f"--log={tmp_path / 'log'}", *flags]
        monkeypatch.setattr(thrust_rl.experiment.compare, "Runner", functools.partial(Runner, command=command))

    return use


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """`real(**options)`: a comparison that trains; a program is compiled once in all of them."""
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder / "cache"))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        burst = {"flicker_prob": 0.5, "burst_len": 4.0}
        yield functools.partial(compare, "FlickeringCartPole-v0", config=TINY, env_params=burst, eval_episodes=3)


@pytest.fixture(scope="module")
def shared(real, tmp_path_factory):
    """A real comparison of both arms, and the folder it wrote to."""
    folder = tmp_path_factory.mktemp("shared") / "new" / "folder"
    return real(seeds=2, workers=2, out=folder), folder


@pytest.mark.slow
def test_the_same_call_gives_the_same_numbers_however_the_runs_are_spread(shared, real):
    again = real(seeds=2, workers=1).to_dict()
    assert reproducible(again) == reproducible(shared[0].to_dict())
    [condition] = again["tasks"][0]["conditions"]
    assert condition["arms"]["lstm"]["seeds"][0]["curve_mean_return"] != []


@pytest.mark.slow
def test_another_seed_gives_other_numbers_and_a_seed_has_its_own_whatever_the_first_is(shared, real):
    one, two = shared[0].arm("mlp").seeds
    [two_again] = real(arms=["mlp"], seed=1, seeds=1).arm("mlp").seeds
    assert two_again.curve_mean_return == two.curve_mean_return != one.curve_mean_return
    assert two_again.evaluation == two.evaluation != one.evaluation


@pytest.mark.slow
def test_every_arm_is_trained_with_every_seed_for_the_whole_budget(shared):
    comparison, _ = shared
    assert comparison.status == "complete"
    assert [arm.arm for arm in comparison.arms] == [ARMS["lstm"], ARMS["mlp"]]
    assert comparison.env_params == {"flicker_prob": 0.5, "burst_len": 4.0, "integrator": "euler"}
    for arm in comparison.arms:
        assert [seed.seed for seed in arm.seeds] == [0, 1] == list(comparison.seeds)
        assert {seed.steps for seed in arm.seeds} == {512}
        for seed in arm.seeds:
            assert seed.curve_steps[-1] == 512 and seed.episodes > 0
            assert seed.final == seed.curve_mean_return[-1] and seed.best == max(seed.curve_mean_return)
            assert [len(seed.evaluation[way]["returns"]) for way in ("sampled", "greedy")] == [3, 3]
    assert comparison.arm("lstm").params != comparison.arm("mlp").params


@pytest.mark.slow
def test_every_arm_is_recorded_on_the_same_stream(shared):
    first, second = (arm.recording for arm in shared[0].arms)
    both = min(len(first["blanks"]), len(second["blanks"]))
    assert both > 3 and first["blanks"][:both] == second["blanks"][:both]
    assert first["states"][0] == second["states"][0]
    assert first["seed"] == second["seed"] == 0


@pytest.mark.slow
def test_the_folder_is_created_and_holds_the_result_the_picture_and_every_run(shared):
    comparison, folder = shared
    assert {"curve.png", "result.json", "runs"} <= {path.name for path in folder.iterdir()}
    assert len(list((folder / "runs").glob("*.json"))) == 4 + 1
    assert Comparison.load(folder) == comparison
    assert json.loads((folder / "result.json").read_text()) == comparison.to_dict()
    assert matplotlib.image.imread(folder / "curve.png").ndim == 3


def test_the_learning_rate_in_the_result_is_the_one_used(fake):
    fake()
    override = dataclasses.replace(TINY, ppo=dataclasses.replace(TINY.ppo, learning_rate=1e-4))
    for config, expected in ((TINY, {"lstm": 1.5e-3, "mlp": 3e-4}), (override, {"lstm": 1e-4, "mlp": 1e-4})):
        arms = compare("CartPole-v1", seeds=1, config=config).arms
        assert {arm.name: arm.learning_rate for arm in arms} == expected


def test_seeds_are_in_order_whatever_the_order_of_finishing(fake):
    fake(trouble="slow", at="lstm seed 3")
    found = compare("CartPole-v1", arms=["lstm"], seed=3, seeds=3, config=TINY, workers=3)
    assert [seed.seed for seed in found.arm("lstm").seeds] == [3, 4, 5]


def test_arms_of_ones_own_keep_their_names(fake):
    fake()
    arms = ["mlp", ArmConfig("wide", cell="lstm", hidden_dim=128)]
    found = compare("CartPole-v1", arms=arms, seeds=1, config=TINY)
    assert [arm.arm.name for arm in found.arms] == ["mlp", "wide"]
    assert found.arm("wide").arm.hidden_dim == 128


def test_without_a_folder_nothing_is_written(fake, tmp_path, monkeypatch):
    fake()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert compare("CartPole-v1", seeds=1, config=TINY).status == "complete"
    assert list((tmp_path / "here").iterdir()) == []


def test_interrupted_it_returns_and_saves_what_was_finished(fake, tmp_path):
    fake(pause=0.1)
    finished = []

    def interrupt(event):
        if event.kind == "finished":
            finished.append((event.job.arm.name, event.job.seeds[0]))
            if len(finished) == 2:
                raise KeyboardInterrupt

    folder = tmp_path / "out"
    found = compare("CartPole-v1", seeds=4, config=TINY, workers=1, listener=interrupt, out=folder)
    assert found.status == "interrupted"
    kept = [(arm.arm.name, seed.seed) for arm in found.arms for seed in arm.seeds]
    assert kept == finished, "what was told to be finished is kept"
    assert found.seeds == (0, 1, 2, 3)
    data = json.loads((folder / "result.json").read_text())
    assert data == found.to_dict()
    assert data["status"] == "interrupted"
    assert matplotlib.image.imread(folder / "curve.png").ndim == 3


def test_a_failed_run_leaves_the_finished_ones_in_the_folder(fake, tmp_path):
    fake(trouble="error", at="mlp seed 1")
    with pytest.raises(RunError, match="^mlp seed 1: non-finite loss at update 3$"):
        compare("CartPole-v1", seeds=2, config=TINY, workers=1, out=tmp_path / "out")
    data = json.loads((tmp_path / "out" / "result.json").read_text())
    assert data["status"] == "interrupted"
    arms = data["tasks"][0]["conditions"][0]["arms"]
    assert {name: [seed["seed"] for seed in arm["seeds"]] for name, arm in arms.items()} == {"lstm": [0, 1], "mlp": [0]}
    assert (tmp_path / "out" / "curve.png").exists()


def test_the_result_is_safe_before_the_picture_is_drawn(fake, tmp_path, monkeypatch):
    """A second Ctrl-C while it is drawn loses the picture at most."""
    fake()

    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(thrust_rl.experiment.compare, "write_figures", stop)
    with pytest.raises(KeyboardInterrupt):
        compare("CartPole-v1", seeds=1, config=TINY, out=tmp_path / "out")
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "complete"


BAD = {
    "no such environment": dict(env="FlickerCartPole"),
    "no such arm": dict(arms=["lstn"]),
    "no arm": dict(arms=[]),
    "same name twice": dict(arms=["mlp", ArmConfig("mlp", cell="lstm")]),
    "no seed": dict(seeds=0),
    "negative seed": dict(seed=-1),
    "seed too large": dict(seed=MAX_SEED),
    "foreign parameter": dict(env="CartPole-v1", env_params={"flicker_prob": 0.5}),
    "bad parameter": dict(env_params={"flicker_prob": 1.5}),
    "uneven windows": dict(config=TrainConfig(total_timesteps=512, num_envs=6, num_steps=32)),
    "no worker": dict(workers=0),
    "no twin": dict(env="CartPole-v1", twin=True),
    "no evaluation": dict(eval_episodes=0),
    "no effect": dict(min_effect=0.0),
    "no environment": dict(env=[]),
    "environment twice": dict(env=["CartPole-v1", "CartPole-v1"]),
    "seeds of the evaluation": dict(seed=1_000_000, seeds=10),
    "arm that draws nothing": dict(env="gymnasium:Taxi-v3", observe="noise:0.1"),
    "more workers than environments": dict(env="gymnasium:CartPole-v1", env_workers=17),
    "parameters that are no JSON": dict(env="gymnasium:CartPole-v1", env_params={"render_mode": {1, 2}}),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_nothing_is_run_or_written_with_a_bad_setting(fake, tmp_path, bad):
    fake()
    with pytest.raises(ConfigError):
        compare(**{"env": "FlickeringCartPole-v0", "config": TINY, "out": tmp_path / "a" / "b", **bad})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["file", "file/below", "/proc/nowhere"])
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_run(fake, tmp_path, monkeypatch, path):
    fake()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ConfigError, match=f"^out is {path}: .*give a"):
        compare("CartPole-v1", config=TINY, out=path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_probing_a_folder_leaves_what_is_in_it_alone(tmp_path):
    (tmp_path / "old").write_text("kept")
    assert writable_folder(tmp_path) == tmp_path
    assert [entry.name for entry in tmp_path.iterdir()] == ["old"]


def interrupt_after(number):
    """A listener that presses Ctrl-C when so many runs have finished."""
    finished = []

    def listen(event):
        if event.kind == "finished":
            finished.append(event.job)
            if len(finished) == number:
                raise KeyboardInterrupt

    return listen


def told(events):
    return lambda event: events.append((event.kind, event.job.label))


def test_interrupted_it_goes_on_where_it_stopped_with_the_same_result(fake, tmp_path):
    fake()
    settings = dict(env="FlickeringCartPole-v0", seeds=3, config=TINY, workers=1, twin=True)
    whole = compare(**settings, out=tmp_path / "whole")
    part = compare(**settings, out=tmp_path / "out", listener=interrupt_after(5))
    assert (part.status, whole.status) == ("interrupted", "complete")
    events = []
    again = compare(**settings, out=tmp_path / "out", listener=told(events))
    assert sum(kind == "kept" for kind, _ in events) == 5
    assert sum(kind == "started" for kind, _ in events) == 12 - 5
    assert {label for kind, label in events if kind == "kept"}.isdisjoint(
        label for kind, label in events if kind == "started"
    )
    assert reproducible(again.to_dict()) == reproducible(whole.to_dict())
    assert Comparison.load(tmp_path / "out") == again


def test_seeds_can_be_added_to_a_folder(fake, tmp_path):
    fake()
    compare("CartPole-v1", seeds=2, config=TINY, out=tmp_path)
    events = []
    more = compare("CartPole-v1", seeds=3, config=TINY, out=tmp_path, listener=told(events))
    assert sorted(label for kind, label in events if kind == "started") == ["lstm seed 2", "mlp seed 2"]
    assert [seed.seed for seed in more.arm("mlp").seeds] == [0, 1, 2]


def test_tasks_and_twins_are_conditions_with_results_of_their_own(fake):
    fake()
    found = compare(["FlickeringCartPole-v0", "MaskedCartPole-v0"], arms=["mlp"], seeds=1, twin=True, config=TINY)
    assert [(task.label, [each.environment.label for each in task.conditions]) for task in found.tasks] == [
        ("FlickeringCartPole-v0", ["FlickeringCartPole-v0", "FlickeringCartPole-v0 twin"]),
        ("MaskedCartPole-v0", ["MaskedCartPole-v0", "MaskedCartPole-v0 twin"]),
    ]
    assert all(len(each.arm("mlp").seeds) == 1 for task in found.tasks for each in task.conditions)


def test_the_same_environment_with_other_parameters_is_another_task(fake):
    fake()
    envs = [EnvSpec("FlickeringCartPole-v0"), EnvSpec("FlickeringCartPole-v0", {"burst_len": 4.0})]
    found = compare(envs, arms=["mlp"], seeds=1, config=TINY)
    assert [task.label for task in found.tasks] == ["FlickeringCartPole-v0", "FlickeringCartPole-v0(burst_len=4.0)"]
    assert found.tasks[0].task.environment.params == {"flicker_prob": 0.5, "burst_len": None, "integrator": "euler"}
