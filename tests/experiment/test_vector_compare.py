"""A callable that takes `num_envs` is a task like any other: trained, scored and compared."""

import dataclasses
import json
import multiprocessing
import pickle
import signal

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from autoreset_for_tests import IN_A_STEP
from thrust_rl.cli import main
from thrust_rl.config import ArmConfig, ConfigError, PPOConfig, TrainConfig
from thrust_rl.envs.catalogue import described, host_names
from thrust_rl.envs.named import make
from thrust_rl.envs.task import HostTask, VectorTask
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.plan import Options, plan
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.train import train

VECTORS = "vector_envs_for_tests:vectors"
ONLY = "vector_envs_for_tests:OnlyVector-v0"  # registered with a vector_entry_point alone
ARM = ArmConfig("tiny", cell="lstm", hidden_dim=4)
CONFIG = TrainConfig(
    total_timesteps=32, num_envs=2, num_steps=8, window_start="stored", ppo=PPOConfig(n_epochs=1, envs_per_minibatch=2)
)
TINY = ["--total-timesteps", "256", "--num-envs", "4", "--num-steps", "32", "--eval-episodes", "4", "--quiet"]


@pytest.fixture
def thrust(capsys, monkeypatch, tmp_path):
    """`thrust(*arguments)` runs the command in a folder of its own, and gives its status and what it said."""
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        return stop.value.code, capsys.readouterr()

    yield run
    signal.signal(signal.SIGTERM, before)


def test_it_is_compared_by_the_command(thrust, tmp_path):
    """Returns of `Telling` tell what was played: 1 + 2 + 3 + 4, and 10 for every action 1."""
    status, said = thrust("compare", VECTORS, "--seeds", "2", "--out", "here", *TINY)
    assert status == 0, said.err
    result = json.loads((tmp_path / "here" / "result.json").read_text())
    [task] = result["tasks"]
    [condition] = task["conditions"]
    assert condition["environment"]["name"] == task["label"] == VECTORS
    for arm in condition["arms"].values():
        assert len(arm["seeds"]) == 2
        for seed in arm["seeds"]:
            played = seed["evaluation"]["sampled"]
            assert played["lengths"] == [4] * 4
            assert set(played["returns"]) <= {10.0, 20.0, 30.0, 40.0, 50.0}


def test_behind_models_it_is_compared_beside_its_twin(thrust, tmp_path):
    few = ["--arms", "mlp", "--seeds", "1", "--out", "here", *TINY]
    status, said = thrust("compare", VECTORS, "--observe", "mask:0", "--observe", "flicker:0.5", "--twin", *few)
    assert status == 0, said.err
    [task] = json.loads((tmp_path / "here" / "result.json").read_text())["tasks"]
    hidden, twin = (condition["environment"] for condition in task["conditions"])
    assert hidden["observe"] == twin["observe"] == ["mask:0", "flicker:0.5"]
    assert (hidden["twin"], twin["twin"]) == (False, True)


def test_the_twin_is_the_same_vector_without_models():
    spec = EnvSpec(VECTORS, {"limit": 3}, observe=("mask:0", "flicker:0.5"))
    hidden, twin = spec.build(), dataclasses.replace(spec, twin=True).build()
    assert hidden.name == f"{VECTORS}|mask:0|flicker:0.5" and twin.name == f"{hidden.name}-twin"
    assert hidden.observation_space.shape == (2,) and twin.observation_space.shape == (3,)
    assert twin.make_vector == make(VECTORS, limit=3).make_vector
    assert pickle.loads(pickle.dumps(hidden)) == hidden


@pytest.mark.parametrize("mode", AutoresetMode.__members__)
def test_behind_models_it_learns_and_plays_what_separate_environments_do(mode):
    """To the last bit, though episodes end at different steps and moments run."""
    observe = ["flicker:0.4", "delay:1", "noise:0.1"]
    together = make("vector_envs_for_tests:mixed", mode=mode, observe=observe)
    apart = make("host_rollouts_for_tests:Mixed", observe=observe)
    [mine], [theirs] = (train(task, ARM, CONFIG) for task in (together, apart))
    assert mine.curve == theirs.curve
    played = [evaluate(task, ARM, CONFIG, mine.state, episodes=5) for task in (together, apart)]
    learned = [(each.state.learner.policy, each.state.moments) for each in (mine, theirs)]
    for ours, others in (learned, played):
        jax.tree.map(np.testing.assert_array_equal, ours, others)


def test_one_that_raises_ends_the_command_with_one_line(thrust):
    status, said = thrust("compare", "vector_envs_for_tests:failing", "--arms", "mlp", "--seeds", "1", *TINY)
    assert status == 1
    lines = [line for line in said.err.splitlines() if line.startswith("thrust: ")]
    assert len(lines) == 1
    assert "environment 3 at step 5: it raised RuntimeError: the motor is on fire" in lines[0]
    assert not multiprocessing.active_children()


def test_its_processes_are_not_forked_beside_the_threads_of_jax():
    before = multiprocessing.get_start_method(allow_none=True)
    vector = make("vector_envs_for_tests:failing").make_vector(2)
    try:
        assert {type(process).__name__ for process in vector.processes} == {"ForkServerProcess"}
    finally:
        vector.close()
    assert multiprocessing.get_start_method(allow_none=True) == before


@pytest.mark.parametrize(
    ("name", "mode"), [*((VECTORS, mode) for mode in (*AutoresetMode.__members__, IN_A_STEP)), (ONLY, "DISABLED")]
)
def test_in_every_autoreset_mode_it_plays_the_episodes_of_separate_environments(name, mode):
    apart, together = make("host_envs_for_tests:telling", limit=4), EnvSpec(name, {"mode": mode}).build()
    assert isinstance(apart, HostTask) and isinstance(together, VectorTask)
    [trained] = train(together, ARM, CONFIG)
    assert trained.curve.episodes == (6 if mode == IN_A_STEP else 8)  # of 4 steps, and a fifth where that resets
    played = [evaluate(task, ARM, CONFIG, trained.state, episodes=5) for task in (apart, together)]
    np.testing.assert_array_equal(played[0].length, played[1].length)
    np.testing.assert_allclose(played[0].episode_return, played[1].episode_return)


@pytest.mark.parametrize("name", ["listed", "listed_one"])
def test_parameters_may_be_lists(name):
    task = EnvSpec(f"vector_envs_for_tests:{name}", {"limits": [2, 3]}).build()
    assert task.observation_space.shape == (3,)
    [result] = train(task, ARM, CONFIG)
    assert result.curve.episodes == result.steps // 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(env_workers=2), "env_workers is 2: .*which steps its environments itself"),
        (Options(observe="mask:3"), "asks for coordinate 3"),
        (Options(twin=True), "no fully observable twin is known for .*a vector environment, .*only where --observe"),
        (Options(env_params={"num_envs": 3}), "is num_envs of the run, no parameter"),
        (Options(env_params={"speed": 3}), "cannot be built: TypeError: .*'speed'"),
    ],
)
@pytest.mark.parametrize("name", [VECTORS, ONLY])
def test_what_makes_no_sense_is_refused_before_anything_runs(options, said, name):
    with pytest.raises(ConfigError, match=said) as refused:
        plan(name, options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("without_a_number", "built a SyncVectorEnv: expected a gymnasium.Env; .*let it take num_envs"),
        ("of_one", "takes num_envs and built a Telling: expected a gymnasium.vector.VectorEnv"),
        ("broken", "cannot be built: RuntimeError: no motor"),
    ],
)
def test_what_builds_something_else_says_so(name, said):
    with pytest.raises(ConfigError, match=said):
        make(f"vector_envs_for_tests:{name}")


def test_a_class_of_single_environments_may_take_whatever_it_likes():
    assert isinstance(make("vector_envs_for_tests:Alone"), HostTask)


def test_an_id_is_one_only_where_nothing_builds_a_single_environment(monkeypatch):
    assert isinstance(make(ONLY), VectorTask) and isinstance(make("OnlyVector-v0"), VectorTask)
    assert isinstance(make("vector_envs_for_tests:BothWays-v0"), HostTask)
    assert "OnlyVector-v0" in host_names() and described("OnlyVector-v0").observation == "Box 3 float32"
    absent = gymnasium.envs.registration.EnvSpec("Absent-v0", vector_entry_point="no_such_package:Env")
    monkeypatch.setitem(gymnasium.registry, "Absent-v0", absent)
    assert "Absent-v0" not in host_names()
    with pytest.raises(ConfigError, match="Absent-v0 cannot be built: ModuleNotFoundError"):
        make("Absent-v0")


def test_the_catalogue_describes_it_and_one_of_gymnasiums_own_is_one():
    entry = described(VECTORS)
    assert (entry.kind, entry.observation, entry.action, entry.has_twin) == (
        "host",
        "Box 3 float32",
        "Discrete 2",
        False,
    )
    envs = make("vector_envs_for_tests:registered").start(3)
    assert envs.begin(0).obs.shape == (3, 4)
    envs.close()
