"""The `thrust` command: one line for bad input, what was finished after Ctrl-C, and nothing left running."""

import dataclasses
import functools
import importlib.metadata
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

import thrust_rl.experiment.compare
from thrust_rl.arguments import one_line, whole
from thrust_rl.cli import main
from thrust_rl.config import PPOConfig, TrainConfig
from thrust_rl.experiment.jobs import EvalConfig
from thrust_rl.experiment.runner import Runner

# A shell starts background jobs with SIGINT ignored, and children inherit that: listen to it whoever runs the tests.
LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
THRUST = [sys.executable, "-c", f"{LISTEN}; from thrust_rl.cli import main; main()"]
FAKE_WORKER = str(Path(__file__).parent / "experiment" / "fake_worker.py")
FLICKER = "FlickeringCartPole-v0"
TINY = ["--total-timesteps", "512", "--num-envs", "4", "--num-steps", "32"]


@dataclasses.dataclass
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def thrust(capsys, monkeypatch, tmp_path):
    """`thrust(*arguments)` runs the command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments):
        try:
            main(list(arguments))
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        return Done(status, *capsys.readouterr())

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def fake(tmp_path_factory, monkeypatch):
    """`fake(**options)` gives the command workers that train nothing."""

    def use(**options):
        log = tmp_path_factory.mktemp("fake") / "log"
        flags = [f"--{name}={value}" for name, value in options.items()]
        command = [sys.executable, "-S", "-E", FAKE_WORKER, f"--log={log}", *flags]
        monkeypatch.setattr(thrust_rl.experiment.compare, "Runner", functools.partial(Runner, command=command))

    return use


BAD = [
    # arguments after `compare`, and what the message has to say
    (["--flicker-prob", "-0.1"], ["flicker_prob is -0.1", "[0, 1]"]),
    (["--flicker-prob", "1.5"], ["flicker_prob is 1.5", "[0, 1]"]),
    (["--flicker-prob", "nan"], ["flicker_prob is nan", "[0, 1]"]),
    (["--flicker-prob", "0.9", "--burst-len", "2"], ["burst_len is 2.0", "at least 9"]),
    (["--flicker-prob", "0", "--burst-len", "2"], ["flicker_prob is 0.0", "drop burst_len"]),
    (["--burst-len", "0.5"], ["burst_len is 0.5", "at least 1 frame"]),
    (["--burst-len", "nan"], ["burst_len is nan"]),
    (["--burst-len", "inf"], ["burst_len is inf"]),
    (["--integrator", "rk4"], ["rk4", "--integrator", "euler", "semi-implicit"]),
    (["--arms", "lstn"], ["'lstn'", "did you mean 'lstm'?"]),
    (["--arms", "transformer"], ["'transformer'", "lstm, gru"]),
    (["--arms", "lstm,lstn"], ["'lstn'", "did you mean 'lstm'?"]),
    (["--arms", "no_such_module:arm"], ["'no_such_module' cannot be imported"]),
    (["--arms", "lstm", "lstm"], ["lstm, lstm", "a name of its own"]),
    (["--arms"], ["arms is empty"]),
    (["--arms", "lstm,mlp,"], ["'lstm,mlp,'", "stray comma"]),
    (["--arms", "lstm,", "mlp"], ["'lstm, mlp'", "stray comma"]),
    (["--arms", "lstm, ,mlp"], ["stray comma"]),
    (["--arms", " lstm , lstn "], ["'lstn'", "did you mean 'lstm'?"]),
    (["--num-envs", "6"], ["num_envs is 6", "set envs_per_minibatch to 3"]),
    (["--envs-per-minibatch", "5"], ["num_envs is 16", "set envs_per_minibatch to 4"]),
    (["--batch-size", "100"], ["num_envs x num_steps is 2048", "set batch_size to 128"]),
    (["--total-timesteps", "100"], ["total_timesteps is 100", "at least 2048"]),
    (["--total-timesteps", "0"], ["total_timesteps is 0"]),
    (["--num-envs", "0"], ["num_envs is 0", "at least 1"]),
    (["--num-steps", "-3"], ["num_steps is -3", "at least 1"]),
    (["--num-steps", "1.5"], ["--num-steps", "'1.5' is not a whole number", "5e5"]),
    (["--total-timesteps", "1.5e0"], ["--total-timesteps", "'1.5e0' is not a whole number"]),
    (["--total-timesteps", "1e999999999"], ["--total-timesteps", "'1e999999999' is not a whole number"]),
    (["--seeds", "nan"], ["--seeds", "'nan' is not a whole number"]),
    (["--workers", "2.5"], ["--workers", "2.5"]),
    (["--window-start", "warm"], ["warm", "cold", "stored"]),
    (["--seeds", "0"], ["seeds is 0"]),
    (["--return-range", "500,0"], ["return_range is ['500', '0']", "two finite numbers"]),
    (["--return-range=-500"], ["return_range is ['-500']", "two finite numbers"]),
    (["--seeds", "three"], ["--seeds", "three"]),
    (["--seed", "-1"], ["seed is -1", "[0, "]),
    (["--seed", str(2**32)], [f"seed is {2**32}"]),
    (["--workers", "0"], ["workers is 0", "at least 1"]),
    (["--gamma", "2"], ["gamma is 2.0", "[0.0, 1.0]"]),
    (["--gamma", "nan"], ["gamma is nan"]),
    (["--gae-lambda", "-0.5"], ["gae_lambda is -0.5"]),
    (["--learning-rate", "0"], ["learning_rate is 0.0", "greater than 0"]),
    (["--learning-rate", "nan"], ["learning_rate is nan"]),
    (["--learning-rate", "inf"], ["learning_rate is inf"]),
    (["--vf-coef", "inf"], ["vf_coef is inf"]),
    (["--ent-coef", "-inf"], ["ent_coef is -inf"]),
    (["--clip-range", "nan"], ["clip_range is nan"]),
    (["--reward-scale", "nan"], ["reward_scale is nan"]),
    (["--n-epochs", "0"], ["n_epochs is 0"]),
    (["--out", "file"], ["out is file", "that is a file"]),
    (["--out", "file/below"], ["out is file/below", "give another folder"]),
    (["--out", "/proc/nowhere"], ["out is /proc/nowhere", "give another folder"]),
    (["--seeed", "1"], ["--seeed", "did you mean --seed?"]),
    (["--flick-prob", "0.5"], ["--flick-prob", "did you mean --flicker-prob?"]),
    (["another"], ["another"]),
]


def assert_one_line(done, parts):
    assert done.status == 2
    assert done.out == ""
    assert done.err.count("\n") == 1 and done.err.endswith("\n")
    assert done.err.startswith("thrust: ")
    assert "Traceback" not in done.err and "tyro" not in done.err
    for part in parts:
        assert part in done.err


@pytest.mark.parametrize(("arguments", "parts"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(thrust, tmp_path, arguments, parts):
    (tmp_path / "file").write_text("kept")
    assert_one_line(thrust("compare", FLICKER, *arguments), parts)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


ELSEWHERE = [
    (["compare"], ["ENV"]),
    ([], ["compare"]),
    (["comprae", FLICKER], ["comprae"]),
    (["compare", "FlickerCartPole"], ["'FlickerCartPole'", "did you mean 'FlickeringCartPole-v0'?"]),
    (["compare", "xyz"], ["'xyz'", "thrust envs lists what there is"]),
    (["compare", "CartPole-v1", "--twin"], ["no fully observable twin is known for CartPole-v1", "--observe"]),
    (["compare", "no_such_module:Env-v0"], ["'no_such_module' cannot be imported"]),
    (["compare", FLICKER, "--observe", "fog:3"], ["fog"]),
    (["compare", FLICKER, "--env-workers", "2"], ["env_workers is 2", "compiled"]),
    (["compare", FLICKER, "--env-param", "flicker_prob"], ["'flicker_prob'", "key=value"]),
    (["compare", FLICKER, "--env-param", "flicker_prob=2"], ["flicker_prob is 2", "[0, 1]"]),
    (["compare", "gymnasium:CartPole-v1", "--env-workers", "17"], ["num_envs is 16", "env_workers is 17"]),
    (["compare", FLICKER, "--eval-episodes", "0"], ["eval_episodes is 0"]),
    (["compare", FLICKER, "--eval-steps", "0"], ["eval_steps is 0"]),
    (["compare", FLICKER, "--min-effect", "0"], ["min_effect is 0.0"]),
    (["compare", FLICKER, "--arms", "mlp", "--match-params"], ["an arm with memory"]),
    (["report"], ["at least one folder"]),
    (["report", "nowhere"], ["nowhere", "does not exist"]),
    (["envs", "xyz"], ["'xyz'"]),
    (
        ["compare", "CartPole-v1", "--flicker-prob", "0.5"],
        ["CartPole-v1 has no parameter 'flicker_prob'", "integrator"],
    ),
    (["compare", "MaskedCartPole-v0", "--burst-len", "4"], ["MaskedCartPole-v0 has no parameter 'burst_len'"]),
]


@pytest.mark.parametrize(("arguments", "parts"), ELSEWHERE, ids=[" ".join(case[0]) or "none" for case in ELSEWHERE])
def test_a_bad_command_or_environment_is_one_line_and_leaves_nothing(thrust, tmp_path, arguments, parts):
    assert_one_line(thrust(*arguments), parts)
    assert list(tmp_path.iterdir()) == []


MISTAKES = [
    (["compare", FLICKER, "--gamma", "2"], ["thrust: gamma is 2.0: it must lie in [0.0, 1.0] (see"]),
    (["compare", FLICKER, "--seeed", "2"], ["did you mean --seed?"]),
    (["compare"], ["ENV"]),
]


@pytest.mark.parametrize(("arguments", "parts"), MISTAKES, ids=["value", "option", "missing"])
@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "ascii"])
@pytest.mark.parametrize("columns", ["40", "300"])
def test_the_line_is_one_line_on_any_terminal(thrust, monkeypatch, columns, encoding, arguments, parts):
    """The box around the parser's message depends on both."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert_one_line(thrust(*arguments), parts)


def test_a_terminal_without_the_signs_of_the_help_shows_it_nevertheless(thrust, fake, monkeypatch, tmp_path):
    fake()
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert thrust("compare", "--help").status == 0
    assert thrust("compare", FLICKER, "--seeds", "1", "--out", "here", *TINY).status == 0
    sys.stdout.flush()
    assert b"--gae-lambda" in raw.getvalue() and b"here/curve.png" in raw.getvalue()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([FLICKER, "--flicker-prob", "1.5"], "flicker_prob is 1.5"),
        ([FLICKER, "--gamma", "2"], "gamma is 2.0"),
        ([FLICKER, "--out", "/proc/nowhere"], "give another folder"),
    ],
)
def test_the_whole_process_says_no_more_than_that_line(tmp_path, arguments, part):
    done = subprocess.run([*THRUST, "compare", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert_one_line(Done(done.returncode, done.stdout, done.stderr), [part])
    assert list(tmp_path.iterdir()) == []


def test_the_installed_script_is_this_command():
    script = Path(sys.executable).with_name("thrust")
    if not script.exists():
        pytest.skip("thrust is not installed beside this interpreter")
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"thrust-rl {importlib.metadata.version('thrust-rl')}\n"


def test_the_version_is_that_of_the_package(thrust):
    assert thrust("--version") == Done(0, f"thrust-rl {thrust_rl.__version__}\n", "")


def test_help_names_every_setting_with_its_default(thrust):
    done = thrust("compare", "--help")
    assert (done.status, done.err) == (0, "")
    text = " ".join(line.strip("│ ") for line in done.out.splitlines())
    assert "ENV" in text and "(default: )" not in text
    for words in ("--flicker-prob FLOAT", "--integrator {euler,semi-implicit}", "--workers INT", "--out PATH"):
        assert words in text
    named = ("arms", "seeds", "seed", "flicker-prob", "burst-len", "integrator", "workers", "out", "quiet", "twin")
    later = ("observe", "env-param", "env-workers", "on-env-error", "allow-out-of-range", "match-params", "min-effect")
    for name in (
        *named,
        *later,
        "input-previous-action",
        "input-previous-reward",
        "eval-episodes",
        "eval-steps",
        "fresh",
    ):
        assert f"--{name} " in text or f"--{name}," in text
    assert re.search(r"--eval-steps INT .*?\(default: 10000\)", text) and EvalConfig.max_steps == 10_000
    for config in (PPOConfig, TrainConfig):
        for field in dataclasses.fields(config):
            if field.name == "ppo":
                continue
            described = re.search(rf"--{field.name.replace('_', '-')}[, ].*?\(default: (.*?)\)", text)
            assert described and described[1] == str(field.default), field.name


def test_options_reach_the_result(thrust, fake, tmp_path):
    fake()
    options = ["--flicker-prob", "0.25", "--burst-len", "3", "--integrator", "semi-implicit", "--seed", "7"]
    options += ["--eval-steps", "1e3"]
    learning = ["--gamma", "0.9", "--clip-range-vf", "None", "--no-anneal-lr", "--window-start", "stored"]
    arguments = ["compare", FLICKER, "--arms", "mlp", "--seeds", "2", "--out", "here", *options, *learning, *TINY]
    assert thrust(*arguments).status == 0
    data = json.loads((tmp_path / "here" / "result.json").read_text())
    params = {"flicker_prob": 0.25, "burst_len": 3.0, "integrator": "semi-implicit"}
    [condition] = data["tasks"][0]["conditions"]
    assert (condition["environment"]["name"], condition["environment"]["params"]) == (FLICKER, params)
    assert (data["seeds"], list(condition["arms"])) == ([7, 8], ["mlp"])
    assert data["evaluation"]["max_steps"] == 1000
    assert data["command"] == shlex.join(["thrust", *arguments]).replace(" --out here", "")
    config = TrainConfig(
        total_timesteps=512,
        num_envs=4,
        num_steps=32,
        window_start="stored",
        ppo=PPOConfig(gamma=0.9, clip_range_vf=None, anneal_lr=False),
    )
    assert data["config"] == dataclasses.asdict(config)


def test_an_arm_of_ones_own_is_compared_resumed_and_reported_by_its_name(thrust, fake, tmp_path):
    fake()
    module = tmp_path / "own_arms_of_test_cli.py"
    module.write_text("from thrust_rl import ArmConfig\nwide = ArmConfig('wide', cell='gru', hidden_dim=128)\n")
    given = ["--arms", "lstm,mlp", "own_arms_of_test_cli:wide", "--seeds", "2", "--out", "here", *TINY]
    assert thrust("compare", FLICKER, *given).status == 0
    sys.modules.pop("own_arms_of_test_cli")
    again = thrust("compare", FLICKER, *given)
    assert "6 of 6 runs had finished before" in again.out and "wide" in again.out
    sys.modules.pop("own_arms_of_test_cli")
    module.write_text(module.read_text().replace("128", "32"))
    changed = thrust("compare", FLICKER, *given)
    assert changed.status == 2 and "arms.wide.hidden_dim is 128 there and 32 here" in changed.err
    sys.modules.pop("own_arms_of_test_cli")
    module.unlink()
    assert thrust("report", "here").status == 0
    assert "| wide |" in (tmp_path / "here" / "report.md").read_text()
    data = json.loads((tmp_path / "here" / "result.json").read_text())
    assert data["tasks"][0]["conditions"][0]["arms"]["wide"]["arm"]["hidden_dim"] == 128


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        ("import sys; sys.exit('one\\ntwo')", 2, "cannot be imported (SystemExit: one two)"),
        ("raise ValueError('one\\ntwo')", 2, "cannot be imported (ValueError: one two)"),
        ("def f(:", 2, "cannot be imported (SyntaxError: "),
        ("raise KeyboardInterrupt", 130, "interrupted"),
    ],
)
def test_a_module_of_arms_that_cannot_be_imported_is_one_line(thrust, tmp_path, content, status, said):
    name = f"broken_arms_{zlib.crc32(content.encode())}"  # folders of earlier tests are still looked through
    (tmp_path / f"{name}.py").write_text(content)
    done = thrust("compare", FLICKER, "--arms", f"{name}:arm", "--out", "here")
    assert (done.status, done.out, done.err.count("\n")) == (status, "", 1)
    assert done.err.startswith("thrust: ") and said in done.err
    assert not (tmp_path / "here").exists()


def test_arms_may_have_spaces_after_their_commas(thrust, fake, tmp_path):
    fake()
    done = thrust("compare", FLICKER, "--arms", "lstm, mlp", "--seeds", "1", "--out", "here", *TINY)
    assert (done.status, done.err) == (0, "")
    data = json.loads((tmp_path / "here" / "result.json").read_text())
    assert list(data["tasks"][0]["conditions"][0]["arms"]) == ["lstm", "mlp"]


def test_whole_numbers_may_be_written_as_people_write_them(thrust, fake, tmp_path):
    fake()
    budget = ["--total-timesteps", "1e3", "--num-envs", "4.0", "--num-steps", "3_2", "--workers", "1e0"]
    assert thrust("compare", FLICKER, "--arms", "mlp", "--seeds", "2e0", "--out", "here", *budget).status == 0
    data = json.loads((tmp_path / "here" / "result.json").read_text())
    config = data["config"]
    assert [config[name] for name in ("total_timesteps", "num_envs", "num_steps")] == [1000, 4, 32]
    assert data["seeds"] == [0, 1]


def test_a_whole_number_is_read_exactly():
    assert whole("123456789012345678") == 123456789012345678
    for text in ("", "1e", "0x10", "1e-1", "inf", "1e18"):
        with pytest.raises(ValueError, match="is not a whole number"):
            whole(text)


def test_it_ends_with_a_table_a_sentence_and_the_files(thrust, fake, tmp_path):
    fake()
    done = thrust("compare", FLICKER, "--seeds", "2", "--out", "here", *TINY)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("here/")][0] == "here/result.json"
    assert lines[-1] == "here/curve.png"
    result = json.loads((tmp_path / "here" / "result.json").read_text())
    assert all(sentence in " ".join(" ".join(lines).split()) for sentence in result["sentences"])
    assert sum("finished after" in line for line in lines) == 4
    assert (tmp_path / "here" / "curve.png").exists()


def test_a_folder_made_with_other_settings_is_refused_and_stays(thrust, fake, tmp_path):
    fake()
    assert thrust("compare", FLICKER, "--seeds", "1", "--out", "here", *TINY).status == 0
    before = (tmp_path / "here" / "result.json").read_bytes()
    again = ["compare", FLICKER, "--seeds", "1", "--gamma", "0.9", "--out", "here", *TINY]
    assert_one_line(thrust(*again), ["out is here", "config.ppo.gamma is 0.99 there and 0.9 here", "--fresh"])
    assert (tmp_path / "here" / "result.json").read_bytes() == before
    assert thrust(*again, "--fresh").status == 0
    assert json.loads((tmp_path / "here" / "result.json").read_text())["config"]["ppo"]["gamma"] == 0.9


def test_a_report_merges_what_was_run_apart(thrust, fake, tmp_path):
    fake()
    for first, folder in (("0", "a"), ("3", "b")):
        assert (
            thrust("compare", FLICKER, "--seeds", "3", "--seed", first, "--out", folder, "--quiet", *TINY).status == 0
        )
    done = thrust("report", "a", "b", "--out", "both")
    assert (done.status, done.err) == (0, "")
    data = json.loads((tmp_path / "both" / "result.json").read_text())
    assert data["seeds"] == [0, 1, 2, 3, 4, 5]
    assert data["sentences"][0] in " ".join(done.out.split())
    assert data["tasks"][0]["verdict"]["num_seeds"] == 6
    before = (tmp_path / "a" / "result.json").read_bytes()
    assert thrust("report", "a", "--quiet") == Done(0, "a/result.json\n", "")
    assert (tmp_path / "a" / "result.json").read_bytes() == before
    (tmp_path / "b" / "result.json").write_bytes(before[:100])
    assert_one_line(thrust("report", "a", "b"), ["b/result.json is damaged"])
    assert thrust("compare", FLICKER, "--seeds", "1", "--gamma", "0.9", "--out", "c", "--quiet", *TINY).status == 0
    said = ["a and c cannot be merged", "config.ppo.gamma is 0.99 in a and 0.9 in c"]
    assert_one_line(thrust("report", "a", "c"), said)


def test_the_command_of_a_merged_report_can_be_copied_and_gives_the_same(thrust, fake, tmp_path):
    fake()
    for first, folder in (("0", "a"), ("3", "b")):
        seeds = ["--seeds", "3", "--seed", first]
        thrust("compare", FLICKER, *seeds, *TINY, "--out", folder, "--fresh", "--quiet")
    assert thrust("report", "a", "b", "--out", "both", "--quiet").status == 0
    before = json.loads((tmp_path / "both" / "result.json").read_text())
    lines = before["command"].split(" &&\n")
    assert len(lines) == 3
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    for line in [*lines[:2], f"{lines[2]} --out both"]:
        command, *arguments = shlex.split(line)
        assert (command, thrust(*arguments).status) == ("thrust", 0)
    again = json.loads((tmp_path / "elsewhere" / "both" / "result.json").read_text())
    assert {**again, "seconds": 0} == {**before, "seconds": 0}


def test_what_is_reported_twice_counts_once_and_is_printed(thrust, fake, tmp_path):
    fake()
    for seeds, folder in (("3", "a"), ("5", "b")):
        thrust("compare", FLICKER, "--seeds", seeds, "--out", folder, "--quiet", *TINY)
    before = json.loads((tmp_path / "b" / "result.json").read_text())
    again = thrust("report", "b", "b")
    assert (again.status, json.loads((tmp_path / "b" / "result.json").read_text())) == (0, before)
    assert "b was given 2 times and counts once." in again.out
    done = thrust("report", "a", "b", "--out", "both")
    assert "In more than one folder, with the same result, and counted once: lstm seeds 0 to 2" in " ".join(
        done.out.split()
    )
    assert json.loads((tmp_path / "both" / "result.json").read_text())["tasks"][0]["verdict"]["num_seeds"] == 5


def test_a_report_does_not_replace_the_result_of_runs(thrust, fake, tmp_path):
    fake()
    for first, folder in (("0", "a"), ("3", "b")):
        thrust("compare", FLICKER, "--seeds", "3", "--seed", first, "--out", folder, "--quiet", *TINY)
    before = (tmp_path / "a" / "result.json").read_bytes()
    assert_one_line(thrust("report", "a", "b", "--out", "a"), ["out is a: it holds the runs of a comparison"])
    assert (tmp_path / "a" / "result.json").read_bytes() == before


def files_of(folder):
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


EDITED = [
    # what is replaced in a result.json by what, and what the message has to say
    ('"min_effect": 0.05,\n "seeds"', '"min_effect": -1,\n "seeds"', "min_effect is -1"),
    (r'"seconds": [0-9.]+', '"seconds": "x"', "seconds is 'x'"),
    (r'"command": "[^\n]*"', '"command": 5', "command is 5"),
    ('"episodes": 3,', '"episodes": "x",', "episodes is 'x'"),
    (r'"rewards": \[\s*1.0', '"rewards": ["x"', "rewards[0] is 'x'"),
    (r'"observations": \[', '"observations": ["x", ', "observations is ['x'"),
    (r'\n "notes": \[', '\n "notes": [{}', "notes[0] is {}"),
    ('"jax": "[^"]*"', '"jax": 9.9', "versions.jax is 9.9"),
]


@pytest.mark.parametrize("merge", [False, True], ids=["alone", "merged"])
def test_a_result_that_was_edited_into_nonsense_is_one_line_and_stays(thrust, fake, tmp_path, merge):
    fake()
    for first, folder in (("0", "a"), ("3", "b")) if merge else (("0", "a"),):
        thrust("compare", FLICKER, "--seeds", "3", "--seed", first, "--out", folder, "--quiet", *TINY)
    path = tmp_path / "a" / "result.json"
    good = path.read_text()
    for old, new, said in EDITED:
        bad, count = re.subn(old, new, good, count=1)
        assert count == 1, old
        path.write_text(bad)
        before = files_of(path.parent)
        assert_one_line(thrust("report", *(["b"] * merge), "a"), ["a/result.json is damaged", said])
        assert files_of(path.parent) == before
    assert not merge or not (tmp_path / "runs").exists()


def test_a_report_that_fails_half_way_replaces_nothing(thrust, fake, tmp_path, monkeypatch):
    fake()
    thrust("compare", FLICKER, "--seeds", "3", "--out", "a", "--quiet", *TINY)
    path = tmp_path / "a" / "result.json"
    path.write_text(path.read_text().replace('"cores"', '"kernels"'))
    before = files_of(path.parent)

    def fail(*arguments, **options):
        raise ValueError("no page")

    monkeypatch.setattr("thrust_rl.experiment.report.write.report_markdown", fail)
    assert_one_line(thrust("report", "a"), ["does not fit together (ValueError: no page)"])
    assert files_of(path.parent) == before
    assert sorted(each.name for each in path.parent.iterdir() if each.is_dir()) == ["runs"]


def test_a_folder_counts_once_under_whatever_path(thrust, fake, tmp_path):
    fake()
    thrust("compare", FLICKER, "--seeds", "3", "--out", "a", "--quiet", *TINY)
    (tmp_path / "x").mkdir()
    (tmp_path / "link").symlink_to("a")
    for other in ("x/../a", "link", "a/result.json"):
        done = thrust("report", "a", other)
        assert (done.status, done.err) == (0, "")
        assert "a was given 2 times and counts once." in done.out and "Merged" not in done.out
        assert not (tmp_path / "runs").exists()
        assert thrust("report", other, "--out", "a", "--quiet").status == 0


def test_environments_are_described(thrust):
    one = thrust("envs", "Pendulum-v1")
    assert (one.status, one.err) == (0, "")
    about = "host; observations Box 3 float32; actions Box 1 float32; twin not known; returns -3254.8 to 0"
    assert one.out == f"Pendulum-v1\n    {about}\n"
    broken = thrust("envs", "space_for_tests:broken", "space_for_tests:Stated")
    assert broken.status == 2 and "the motor is off" in broken.out and "returns 0 to 5\n" in broken.out
    package = thrust("envs", "gymnasium")
    assert package.status == 0
    assert "Acrobot-v1\n    host; observations Box 6 float32; actions Discrete 3; twin not known" in package.out
    assert "gymnasium:CartPole-v1\n    host; observations Box 4 float32" in package.out


def test_environments_are_listed_by_name(thrust):
    done = thrust("envs", "--names", "thrust-rl", "gymnasium")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("thrust-rl:\n  CartPole-v1, Flickering") and "\ngymnasium:\n  Acrobot-v1, " in done.out
    assert "gymnax" not in done.out


def test_the_help_says_how_to_begin(thrust):
    done = thrust("--help")
    assert done.status == 0
    text = " ".join(line.strip("│ ") for line in done.out.splitlines())
    assert "compare" in text and "report" in text and "envs" in text and "Does memory help" in text
    assert "thrust compare FlickeringCartPole-v0 --twin" in thrust("compare", "--help").out


def test_without_a_folder_one_is_made_under_runs(thrust, fake, tmp_path):
    fake()
    done = thrust("compare", FLICKER, "--arms", "mlp", "--seeds", "1", "--quiet", *TINY)
    [folder] = (tmp_path / "runs").iterdir()
    assert folder.name.startswith(f"{FLICKER}-2")
    assert done == Done(0, f"runs/{folder.name}/result.json\n", "")


def test_quiet_prints_the_path_alone(thrust, fake):
    fake()
    done = thrust("compare", FLICKER, "--seeds", "1", "--out", "here", "--quiet", *TINY)
    assert done == Done(0, "here/result.json\n", "")


def test_a_failed_run_is_one_line_that_says_where_the_rest_is(thrust, fake, tmp_path):
    fake(trouble="error", at="mlp seed 0")
    done = thrust("compare", FLICKER, "--seeds", "1", "--workers", "1", "--out", "here", *TINY)
    assert done.status == 1
    said = "thrust: mlp seed 0: non-finite loss at update 3; what had finished is in here/result.json\n"
    assert done.err == said
    assert (
        len(
            json.loads((tmp_path / "here" / "result.json").read_text())["tasks"][0]["conditions"][0]["arms"]["lstm"][
                "seeds"
            ]
        )
        == 1
    )


def test_where_nothing_finished_there_is_no_report(thrust, fake, tmp_path):
    fake(trouble="error", at="lstm seed 0")
    done = thrust("compare", FLICKER, "--seeds", "1", "--workers", "1", "--out", "here", *TINY)
    assert done.status == 1
    assert done.err == "thrust: lstm seed 0: non-finite loss at update 3; nothing had finished\n"
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["runs"]


def test_before_anything_has_run_it_says_how_much_there_is_and_where_it_goes(thrust, fake):
    fake()
    done = thrust("compare", FLICKER, "--seeds", "3", "--workers", "2", "--out", "here", *TINY)
    first, *rest = done.out.splitlines()
    assert first.startswith("6 runs on up to 2 workers, written to here; compiling takes about half a minute")
    assert any(line.endswith("s (6 of 6)") for line in rest)


def test_a_message_that_is_boxed_over_several_lines_becomes_one():
    box = "╭─ Title ──╮\n│ One thing │\n│ or other  │\n│ ───────── │\n│ For help  │\n╰───────────╯\n"
    assert one_line(box) == "One thing or other (see thrust compare --help)"


class Session:
    """A `thrust` process whose descendants are known by a mark in their environment."""

    def __init__(self, arguments, folder, cache):
        self.mark = f"THRUST_TEST_{os.getpid()}_{time.monotonic_ns()}"
        self.started = time.monotonic()
        cached = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        self.process = subprocess.Popen(
            [*THRUST, "compare", *arguments],
            cwd=folder,
            env={**os.environ, **cached, self.mark: "1", "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def processes(self):
        """Running processes with the mark; zombies have no environment left."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def wait_for_a_worker(self):
        while len(self.processes()) < 2:
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)

    def stop(self, number):
        """Send a signal; how the process ended, how long that took, and how long is allowed."""
        # Five seconds; more where the machine is so busy that it took long to start too (1.5 s when idle).
        allowed = max(5.0, 2.0 * (self.startup or 0.0))
        sent = time.monotonic()
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return Done(self.process.returncode, out, err), time.monotonic() - sent, allowed

    startup: float | None = None


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def session(tmp_path, cache):
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to look for processes")
    sessions = []

    def start(*arguments):
        sessions.append(Session(arguments, tmp_path, cache))
        sessions[-1].wait_for_a_worker()
        sessions[-1].startup = time.monotonic() - sessions[-1].started
        return sessions[-1]

    def stop(*_):
        raise TimeoutError("the command has taken too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(150)
    yield start
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    for one in sessions:
        one.process.kill()
        one.process.communicate()
        for pid in one.processes():
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_interrupted_it_shows_and_saves_what_was_finished_and_leaves_no_process(session, tmp_path, number):
    long = ["--total-timesteps", "4096", "--num-envs", "4", "--num-steps", "32", "--seeds", "100000"]
    running = session("CartPole-v1", "--arms", "mlp", "--workers", "1", "--out", "here", *long)
    opening, first = (running.process.stdout.readline() for _ in range(2))
    assert opening.startswith("100000 runs on 1 worker, written to here")
    assert first.startswith("mlp seed 0: finished after ")
    workers = [pid for pid in running.processes() if pid != running.process.pid]
    assert len(workers) == 1
    done, seconds, allowed = running.stop(number)
    assert running.processes() == []
    assert done.status == 130
    assert done.err == ""
    assert seconds < allowed
    data = json.loads((tmp_path / "here" / "result.json").read_text())
    assert data["status"] == "interrupted"
    finished = [seed["seed"] for seed in data["tasks"][0]["conditions"][0]["arms"]["mlp"]["seeds"]]
    assert finished == list(range(len(finished))) and len(finished) >= 1
    rows = [line.split() for line in done.out.splitlines() if "finished" not in line]
    [row] = [row for row in rows if row[:1] == ["mlp"]]
    assert row[2] == str(len(finished))
    assert "Interrupted: no verdict" in done.out
    assert "here/result.json" in done.out.splitlines()


def test_interrupted_before_anything_was_finished_it_still_ends_well(session, tmp_path):
    running = session(FLICKER, "--out", "here", *TINY)
    done, seconds, allowed = running.stop(signal.SIGINT)
    assert running.processes() == []
    assert (done.status, done.err) == (130, "")
    assert seconds < allowed
    data = json.loads((tmp_path / "here" / "result.json").read_text())
    assert data["status"] == "interrupted"
    arms = data["tasks"][0]["conditions"][0]["arms"]
    assert [arm["seeds"] for arm in arms.values()] == [[], []]
