"""A comparison survives its file; a file that is damaged or of another version is refused and stays as it is."""

import dataclasses
import json

import pytest

import thrust_rl
from comparisons_for_tests import LSTM, MLP, comparison, played, seed_result
from thrust_rl.config import ARMS, ArmConfig, ConfigError, TrainConfig
from thrust_rl.experiment.comparison import Comparison
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, Job, SeedResult, area_under, mean_of
from thrust_rl.files import versions, write_json

TWO_TASKS = comparison(
    {"lstm": LSTM, "mlp": MLP, "framestack:3+action": LSTM},
    twin={"lstm": LSTM, "mlp": LSTM, "framestack:3+action": MLP},
    tasks=("FlickeringCartPole-v0", "MaskedCartPole-v0"),
)


@pytest.fixture
def file(tmp_path):
    write_json(tmp_path / "result.json", TWO_TASKS.to_dict())
    return tmp_path / "result.json"


def test_an_arm_is_found_by_its_name_and_averages_its_seeds():
    found = comparison({"lstm": [1.0, 2.0], "mlp": [5.0, 7.0]}).arm("mlp")
    assert (found.score, found.greedy, found.final, found.best, found.auc) == (6.0, 8.0, 6.0, 16.0, -4.0)
    assert found.recording["seed"] == 0
    empty = comparison({"mlp": []}, seeds=(0,)).arm("mlp")
    assert (empty.score, empty.final, empty.summary, empty.recording) == (None, None, None, None)


def test_a_mean_with_a_missing_value_is_missing():
    assert mean_of([1.0, 2.0]) == 1.5
    assert mean_of([1.0, None]) is None
    assert mean_of([]) is None


def test_the_area_counts_the_time_before_the_first_point_and_is_that_of_a_straight_line():
    assert area_under((), ()) is None
    assert area_under((50,), (7.0,)) == 7.0
    assert area_under((100, 300), (0.0, 200.0)) == pytest.approx((0 * 100 + 200 * 100) / 300)


@pytest.mark.parametrize(
    "made",
    [TWO_TASKS, comparison({"mlp": []}, seeds=(0, 1), status="interrupted"), comparison({"lstm": LSTM, "mlp": MLP})],
    ids=["two tasks", "nothing finished", "one task"],
)
def test_a_comparison_comes_back_from_its_file_as_it_was(tmp_path, made):
    data = made.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    write_json(tmp_path / "result.json", data)
    back = Comparison.load(tmp_path)
    assert back == made == Comparison.load(tmp_path / "result.json")
    assert back.to_dict() == data


def test_the_dictionary_has_every_key_that_is_documented():
    data = TWO_TASKS.to_dict()
    assert (data["schema"], data["schema_version"]) == ("thrust-rl/comparison", 2)
    assert set(data) == {
        *("schema", "schema_version", "status", "command", "config", "evaluation", "min_effect", "seeds", "tasks"),
        *("aggregate", "sentences", "versions", "machine", "seconds", "merged_from", "notes", "pair"),
    }
    assert set(data["config"]) == {field.name for field in dataclasses.fields(TrainConfig)}
    for task in data["tasks"]:
        assert set(task) == {"label", "conditions", "verdict", "contrasts", "twin_effects"}
        assert [condition["name"] for condition in task["conditions"]] == ["task", "twin"]
        for condition in task["conditions"]:
            assert set(condition) == {"name", "environment", "arms"}
            assert set(condition["environment"]) == {field.name for field in dataclasses.fields(EnvSpec)}
            for arm in condition["arms"].values():
                assert set(arm) == {"arm", "learning_rate", "params", "mean", "summary", "seeds", "recording"}
                assert set(arm["arm"]) == {field.name for field in dataclasses.fields(ArmConfig)}
                for seed in arm["seeds"]:
                    assert set(seed) == {field.name for field in dataclasses.fields(SeedResult)} - {"recording"}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "is damaged"),
        (lambda text: "", "is damaged"),
        (lambda text: "[]", "is no thrust-rl/comparison"),
        (lambda text: text.replace('"schema_version": 2', '"schema_version": 1'), "schema version 1, and .* version 2"),
        (lambda text: text.replace('"thrust-rl/comparison"', '"other"'), "is no thrust-rl/comparison"),
        (lambda text: text.replace('"schema_version": 2', '"schema_version": "2"'), "schema version '2', and"),
        (lambda text: text.replace('"arms"', '"legs"'), "is damaged"),
        (lambda text: text.replace('"gamma": 0.99', '"gamma": 99'), "gamma is 99"),
        (lambda text: text.replace('"curve_steps"', '"steps_of_curve"'), "is damaged"),
    ],
)
def test_a_damaged_file_is_refused_by_its_name_with_a_remedy(file, damage, said):
    file.write_text(damage(file.read_text()))
    before = file.read_bytes()
    with pytest.raises(ConfigError, match=said) as caught:
        Comparison.load(file)
    assert str(file) in str(caught.value) and "repeat the command that made it" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == before


def edited(data, path, value):
    """Put a value where a path of keys and places leads."""
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


ARMS_OF_TASK = ("tasks", 0, "conditions", 0, "arms")
SEED = (*ARMS_OF_TASK, "lstm", "seeds", 0)
RECORDED = (*ARMS_OF_TASK, "lstm", "recording")
SAMPLED = (*SEED, "evaluation", "sampled")
DEEP = json.loads("[" * 200 + "]" * 200)
NONSENSE = [
    ("min_effect is -1", ("min_effect",), -1),
    ("min_effect is True", ("min_effect",), True),
    ("status is 'perfect'", ("status",), "perfect"),
    ("command is 5: it must be a text", ("command",), 5),
    ("seconds is 'x': it must be a number", ("seconds",), "x"),
    ("seconds is None", ("seconds",), None),
    ("seconds is -1", ("seconds",), -1),
    ("versions.jax is 9.9: it must be a text", ("versions",), {"jax": 9.9}),
    ("versions is []: it must be an object", ("versions",), []),
    ("machine.cores is []", ("machine",), {"cores": []}),
    ("notes[0] is {}: it must be a text", ("notes",), [{}]),
    ("merged_from is 'ab': it must be a list", ("merged_from",), "ab"),
    ("pair is ('mlp', 'lstm'): it must be an arm of", ("pair",), ["mlp", "lstm"]),
    ("pair is ('lstm', 'gru'): it must be", ("pair",), ["lstm", "gru"]),
    ("config is 5", ("config",), 5),
    ("TrainConfig has no field 'gama'", ("config", "gama"), 1),
    ("config.ppo.anneal_lr is 'no'", ("config", "ppo", "anneal_lr"), "no"),
    ("evaluation.episodes is '100'", ("evaluation", "episodes"), "100"),
    ("seeds is empty", ("seeds",), []),
    ("seeds[1] is '1'", ("seeds",), [0, "1"]),
    ("seeds: 0 more than once", ("seeds",), [0, 0, 1]),
    ("tasks is empty", ("tasks",), []),
    ("tasks[0].label is ' '", ("tasks", 0, "label"), " "),
    ("tasks[0].label is 'two\\nlines'", ("tasks", 0, "label"), "two\nlines"),
    ("conditions of FlickeringCartPole-v0 are []", ("tasks", 0, "conditions"), []),
    ("environment.twin is 0: it must be true or false", ("tasks", 0, "conditions", 0, "environment", "twin"), 0),
    (
        "on_env_error is 'panic': it must be 'stop' or 'restart'",
        ("tasks", 0, "conditions", 0, "environment", "on_env_error"),
        "panic",
    ),
    ("environment.params.p is nested", ("tasks", 0, "conditions", 0, "environment", "params"), {"p": DEEP}),
    ("arms of FlickeringCartPole-v0 is empty", ARMS_OF_TASK, {}),
    ("arms.lstm is None: it must be an object", (*ARMS_OF_TASK, "lstm"), None),
    ("the arm under 'lstm' is called 'gru'", (*ARMS_OF_TASK, "lstm", "arm", "name"), "gru"),
    ("arms.lstm.learning_rate is 0", (*ARMS_OF_TASK, "lstm", "learning_rate"), 0),
    ("arms.lstm.params is 1.5", (*ARMS_OF_TASK, "lstm", "params"), 1.5),
    ("lstm on FlickeringCartPole-v0 has no result of seeds [0, 1, 2, 3, 4, 5]", (*ARMS_OF_TASK, "lstm", "seeds"), []),
    ("lstm on FlickeringCartPole-v0 has seeds [77] that", (*SEED, "seed"), 77),
    ("seeds[0].episodes is 'x': it must be a whole number", (*SEED, "episodes"), "x"),
    *((f"seeds[0].{name} is -1", (*SEED, name), -1) for name in ("steps", "params", "env_restarts", "seconds_run")),
    ("curve_steps[0] is 1000", (*SEED, "curve_steps"), [10**400, 10**400]),
    ("seeds[0].final is 1000", (*SEED, "final"), 10**400),
    ("int too large", ("config", "ppo", "ent_coef"), 10**400),
    ("seeds[0].steps_per_second is None", (*SEED, "steps_per_second"), None),
    ("seeds[0].evaluation.greedy is missing", (*SEED, "evaluation"), {"sampled": played(1.0)}),
    ("NaN is no number of JSON", (*SAMPLED, "mean_return"), float("nan")),
    ("Infinity is no number of JSON", (*SEED, "final"), float("inf")),
    ("mean_return is None", (*SAMPLED, "mean_return"), None),
    ("has mean_return 77.0, and its returns have the mean 422.0", (*SAMPLED, "mean_return"), 77.0),
    ("has 1 returns and 100 lengths: it was of 100 episodes", (*SAMPLED, "returns"), [422.0]),
    ("sampled.lengths[0] is -3", (*SAMPLED, "lengths"), [-3] * 100),
    ("has 101 cut episodes of 100", (*SAMPLED, "cut"), 101),
    ("has 1 cut episodes, and 0 of 10000 steps, after which it cuts", (*SAMPLED, "cut"), 1),
    ("has an episode of 4 steps, and max_steps is 3", ("evaluation", "max_steps"), 3),
    ("evaluation.max_steps is 0", ("evaluation", "max_steps"), 0),
    ("seeds[0].best is 'high'", (*SEED, "best"), "high"),
    ("has 2 steps and 1 returns", (*SEED, "curve_mean_return"), [1.0]),
    ("recording is 'x'", RECORDED, "x"),
    ("recording.rewards[0] is 'x'", (*RECORDED, "rewards"), ["x"]),
    ("recording.observations is 'x'", (*RECORDED, "observations"), "x"),
    ("recording.observations is [['a']]", (*RECORDED, "observations"), [["a"]]),
    ("recording.observations is nested", (*RECORDED, "observations"), DEEP),
    ("recording.blanks[0] is 2", (*RECORDED, "blanks"), [2]),
    ("has lists of different lengths: {'observations': 1, 'blanks': 1", (*RECORDED, "rewards"), [1.0, 1.0]),
    ("confidence is 2", ("tasks", 0, "verdict", "interval", "confidence"), 2),
    ("p_value is -0.5", ("tasks", 0, "contrasts", 0, "paired", "p_value"), -0.5),
]


@pytest.mark.parametrize(("said", "where", "value"), NONSENSE, ids=[said for said, _, _ in NONSENSE])
def test_a_file_that_was_edited_into_nonsense_is_refused(unchecked, tmp_path, said, where, value):
    data = comparison({"lstm": LSTM, "mlp": MLP}).to_dict()
    path = tmp_path / "result.json"
    path.write_text(json.dumps(data))
    Comparison.load(path)
    edited(data, where, value)
    path.write_text(json.dumps(data))
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="result.json is damaged .*: repeat the command") as caught:
        Comparison.load(path)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("depth", [100, 900, 100_000])
@pytest.mark.parametrize("field", ["aggregate", "unknown", "command", "notes"])
def test_a_file_that_is_nested_without_end_is_refused_or_read(tmp_path, field, depth):
    """What is not read back may be as deep as the reader of JSON bears; nothing ends in a traceback."""
    path = tmp_path / "result.json"
    text = json.dumps({**comparison({"lstm": LSTM, "mlp": MLP}).to_dict(), field: "DEEP"})
    path.write_text(text.replace('"DEEP"', "[" * depth + "]" * depth))
    try:
        Comparison.load(path)
    except ConfigError as error:
        assert "result.json is damaged" in str(error) and len(str(error)) < 500
    else:
        assert field in ("aggregate", "unknown") and depth == 100


def test_an_arm_that_is_missing_on_the_twin_is_refused(file):
    data = json.loads(file.read_text())
    del data["tasks"][0]["conditions"][1]["arms"]["mlp"]
    file.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match="arms of FlickeringCartPole-v0 and its twin are"):
        Comparison.load(file)


def test_a_file_without_the_later_fields_is_read(file):
    data = json.loads(file.read_text())
    later = {key: value for key, value in data.items() if key not in ("merged_from", "notes", "pair")}
    file.write_text(json.dumps(later))
    assert Comparison.load(file) == TWO_TASKS


@pytest.mark.parametrize(("longest", "most"), [(4, 10_000), (10_000, 10_000), (10_001, 100_000), (200_000, 200_000)])
def test_a_file_from_before_episodes_had_a_most_number_of_steps_says_how_long_they_could_be(file, longest, most):
    data = json.loads(file.read_text())
    del data["evaluation"]["max_steps"]
    edited(data, (*SAMPLED, "lengths"), [longest] * 100)
    file.write_text(json.dumps(data))
    read = Comparison.load(file)
    assert read.evaluation == EvalConfig(max_steps=most)
    write_json(file, read.to_dict())
    assert Comparison.load(file) == read


def test_a_folder_without_a_result_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="result.json does not exist: give a folder"):
        Comparison.load(tmp_path)


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


def test_jobs_and_results_survive_the_way_to_a_worker_and_back():
    config = TrainConfig(num_steps=64, ppo=dataclasses.replace(TrainConfig().ppo, clip_range_vf=None))
    env = EnvSpec("Pendulum-v1", {"g": 9.0}, ("mask:2", "noise:0.1"), 2, "restart", False, True)
    for arm in ARMS.values():
        job = Job(env, arm, config, (3, 4), EvalConfig(7), recorded=3, where="here")
        assert Job.from_dict(json.loads(json.dumps(job.to_dict()))) == job
    for result in (seed_result(1, 0.1 + 0.2, recorded=True), seed_result(2, 3.0)):
        assert SeedResult.from_dict(json.loads(json.dumps(dataclasses.asdict(result)))) == result
