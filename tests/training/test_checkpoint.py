"""A run goes on from its file as if nothing had happened; what is no such file, or of another run, is refused."""

import dataclasses
import functools
import json
import os
import subprocess
import sys
import time

import gymnasium
import jax
import numpy as np
import pytest
import safetensors.numpy

from envs_for_tests import LSTM_ARM, MLP_ARM, Poisoned, Short, environment, settings
from host_envs_for_tests import Failing, Telling
from thrust_rl.config import ConfigError
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.named import make
from thrust_rl.envs.observation import Flicker
from thrust_rl.envs.task import CompiledTask, HostTask
from thrust_rl.training.checkpoint import HEADER, load_checkpoint, save_checkpoint
from thrust_rl.training.curve import LearningCurve
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.keeping import Checkpoints, Keeper
from thrust_rl.training.result import TrainingError
from thrust_rl.training.train import train

ENV = environment(Short(3), sensor=Flicker(0.3))  # its sensor, its streams and its episodes all have states
UPDATE = 32  # environment steps
TASK = HostTask("telling", functools.partial(Telling, limit=5))
HOST = settings(updates=4, window_start="stored")
compiled = functools.partial(train, vectorize_seeds=False)


class Stop(Exception):
    """Ends a training from outside."""


def stop_after(steps):
    def listen(progress):
        if progress.steps >= steps:
            raise Stop

    return listen


def numbers(result):
    """Everything that is reproducible of a run."""
    raw = [
        jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        for leaf in jax.tree.leaves(result.state)
    ]
    return jax.tree.map(np.asarray, raw), result.curve, result.seed, result.params, result.steps


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, numbers(one)[0], numbers(other)[0])
    assert numbers(one)[1:] == numbers(other)[1:]


@pytest.mark.parametrize(
    ("arm", "window_start", "vectorize"),
    [(LSTM_ARM, "stored", False), (MLP_ARM, "cold", True)],
    ids=["one by one", "side by side"],
)
def test_interrupted_anywhere_a_run_goes_on_bit_for_bit(tmp_path, arm, window_start, vectorize):
    """F12: weights, optimizer, memories, moments and their count, episodes in progress, the curve and its mean."""
    config = settings(updates=6, window_start=window_start)
    run = functools.partial(train, ENV, arm, config, seeds=(3, 4), vectorize_seeds=vectorize)
    kept = functools.partial(run, checkpoints=Checkpoints(tmp_path, every=UPDATE))
    for steps in (1 * UPDATE, 4 * UPDATE):
        with pytest.raises(Stop):
            kept(on_progress=stop_after(steps))
    for again, undisturbed in zip(kept(), run(), strict=True):
        same(again, undisturbed)
        assert again.resumed_at == ()  # nothing began anew
    assert len(undisturbed.curve.steps) == 6 and float(undisturbed.state.moments.count) > 6 * UPDATE / 2


@pytest.mark.parametrize("env", [ENV, TASK], ids=["compiled", "host"])
def test_ctrl_c_in_the_middle_of_the_bookkeeping_leaves_a_file_that_agrees_with_itself(tmp_path, monkeypatch, env):
    config, add = HOST, LearningCurve.add

    def interrupted(curve, steps, episode_return):
        add(curve, steps, episode_return)
        if steps == 3 * UPDATE:
            raise KeyboardInterrupt

    monkeypatch.setattr(LearningCurve, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(env, LSTM_ARM, config, checkpoints=tmp_path)
    kept = load_checkpoint(tmp_path / "tiny-lstm-0.safetensors", env).result
    assert int(kept.state.update) * UPDATE == kept.steps <= 2 * UPDATE
    assert kept.curve.steps == list(range(UPDATE, kept.steps + 1, UPDATE))
    with pytest.raises(Stop):
        monkeypatch.setattr(LearningCurve, "add", add)
        compiled(env, LSTM_ARM, config, checkpoints=tmp_path / "b", on_progress=stop_after(kept.steps))
    same(kept, load_checkpoint(tmp_path / "b" / "tiny-lstm-0.safetensors", env).result)


def test_a_run_that_has_finished_is_not_run_again(tmp_path):
    config, heard = settings(updates=3), []
    (first,) = compiled(ENV, MLP_ARM, config, checkpoints=tmp_path)
    (again,) = compiled(ENV, MLP_ARM, config, checkpoints=str(tmp_path), on_progress=heard.append)
    same(first, again)
    assert not heard and again.seconds_run == first.seconds_run
    played = [evaluate(ENV, MLP_ARM, config, result.state, episodes=5).episode_return for result in (first, again)]
    np.testing.assert_array_equal(*played)


def test_seeds_that_stand_at_different_steps_begin_together(tmp_path):
    """Side by side they need the same number of updates; beginning anew costs time and changes nothing."""
    config = settings(updates=3)
    compiled(ENV, MLP_ARM, config, seeds=(4,), checkpoints=tmp_path)
    before = (tmp_path / "tiny-mlp-4.safetensors").read_bytes()
    with pytest.raises(Stop):
        kept = Checkpoints(tmp_path, every=UPDATE)
        train(ENV, MLP_ARM, config, seeds=(3, 4), checkpoints=kept, vectorize_seeds=True, on_progress=stop_after(0))
    assert (tmp_path / "tiny-mlp-4.safetensors").read_bytes() == before, "what had come further is not replaced"
    both = train(ENV, MLP_ARM, config, seeds=(3, 4), checkpoints=tmp_path, vectorize_seeds=True)
    for one, other in zip(both, train(ENV, MLP_ARM, config, seeds=(3, 4), vectorize_seeds=True), strict=True):
        same(one, other)


def test_a_budget_may_grow_where_the_learning_rate_does_not_follow_it(tmp_path):
    """Law 9: train 2N = train N, save, load, train N."""
    short, long = (settings(updates=updates, anneal_lr=False) for updates in (2, 4))
    compiled(ENV, MLP_ARM, short, checkpoints=tmp_path)
    (grown,), (whole,) = compiled(ENV, MLP_ARM, long, checkpoints=tmp_path), compiled(ENV, MLP_ARM, long)
    same(grown, whole)
    with pytest.raises(ConfigError, match="config.total_timesteps is 128 there and 64 here"):
        compiled(ENV, MLP_ARM, short, checkpoints=tmp_path)
    save_checkpoint(tmp_path / "tiny-mlp-0.safetensors", ENV, MLP_ARM, settings(updates=2, anneal_lr=True), grown)
    with pytest.raises(ConfigError, match="config.total_timesteps is 64 there and 128 here"):
        compiled(ENV, MLP_ARM, settings(updates=4, anneal_lr=True), checkpoints=tmp_path)


CHILD = """
import sys
from test_checkpoint import *
compiled(ENV, MLP_ARM, LONG, checkpoints=Checkpoints(sys.argv[1], every=UPDATE))
"""
LONG = settings(updates=100_000)


@pytest.mark.slow
def test_a_killed_process_leaves_a_whole_file_that_another_process_goes_on_from(tmp_path):
    """Law 9 over processes: killed while it wrote after every update, it stands where an undisturbed run stood."""
    path = os.pathsep.join([*sys.path, os.path.dirname(__file__)])
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], env={**os.environ, "PYTHONPATH": path})
    file = Checkpoints(tmp_path).path(MLP_ARM.name, seed=0)
    try:
        deadline = time.monotonic() + 120
        while not file.exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)
    finally:
        child.kill()
        child.wait()
    done = load_checkpoint(file, ENV).result.steps
    assert 0 < done < LONG.total_timesteps
    for folder in (tmp_path, tmp_path / "undisturbed"):
        run = functools.partial(compiled, ENV, MLP_ARM, LONG, checkpoints=Checkpoints(folder, every=UPDATE))
        with pytest.raises(Stop):
            run(on_progress=stop_after(done + 2 * UPDATE))
    same(*(load_checkpoint(folder / file.name, ENV).result for folder in (tmp_path, tmp_path / "undisturbed")))


# On the host


def test_a_fault_is_preceded_by_a_checkpoint_and_the_message_says_where(tmp_path):
    """Environments of 8 steps a window; step 21 is in the third window, and two updates are kept."""
    failing = HostTask("telling", functools.partial(Failing, "raise", at=21))
    path = Checkpoints(tmp_path).path(LSTM_ARM.name, seed=0)
    with pytest.raises(EnvError, match=f"environment 0 at step 21: .*on fire; checkpoint after 64 steps: {path}$"):
        train(failing, LSTM_ARM, HOST, checkpoints=tmp_path)
    kept = load_checkpoint(path, failing).result
    with pytest.raises(EnvError) as plain:
        train(failing, LSTM_ARM, HOST)
    assert "checkpoint" not in str(plain.value)
    with pytest.raises(Stop):
        train(
            HostTask("telling", functools.partial(Telling, limit=4)),
            LSTM_ARM,
            HOST,
            checkpoints=tmp_path / "b",
            on_progress=stop_after(2 * UPDATE),
        )
    undisturbed = load_checkpoint(tmp_path / "b" / path.name, failing).result
    same(kept, undisturbed)
    assert kept.steps == 2 * UPDATE and float(kept.state.moments.count) == 4 + 2 * UPDATE


def test_without_a_finished_update_a_file_is_neither_made_nor_changed(tmp_path):
    """Or the first frames would be in the moments twice, and no report would say that environments began anew."""
    path = Checkpoints(tmp_path).path(LSTM_ARM.name, seed=0)
    early, later = (HostTask("telling", functools.partial(Failing, "raise", at=at)) for at in (3, 11))
    run = functools.partial(train, arm=LSTM_ARM, config=HOST, checkpoints=tmp_path)
    with pytest.raises(EnvError, match="no update had been finished, so there is no checkpoint"):
        run(early)
    assert not path.exists()
    for task in (later, early, early):
        with pytest.raises(EnvError, match=f"on fire; checkpoint after 32 steps: {path}"):
            run(task)
    kept = load_checkpoint(path, task).result
    assert (kept.steps, float(kept.state.moments.count)) == (UPDATE, 4 + UPDATE)
    assert (kept.env_restarts, kept.resumed_at) == (0, ()), "a fault that ends the run replaced nothing"


def test_a_fault_of_somebody_elses_kind_arrives_as_it_is(tmp_path):
    class Budget(TrainingError):
        def __init__(self, steps, limit):
            super().__init__(f"{steps} of {limit}")

    def stop(progress):
        raise Budget(progress.steps, 3)

    with pytest.raises(Budget):
        compiled(ENV, MLP_ARM, settings(), checkpoints=tmp_path, on_progress=stop)


def test_on_the_host_environments_begin_anew_and_the_rest_goes_on(tmp_path):
    kept = functools.partial(train, TASK, LSTM_ARM, HOST, checkpoints=tmp_path)
    with pytest.raises(Stop):
        kept(on_progress=stop_after(2 * UPDATE))
    before = load_checkpoint(Checkpoints(tmp_path).path(LSTM_ARM.name, seed=0), TASK).result
    heard = []
    (after,) = kept(on_progress=heard.append)
    told = {progress.steps for progress in heard}
    assert told - {2 * UPDATE} == {3 * UPDATE, 4 * UPDATE}  # a slow machine gives signs of life before
    assert after.resumed_at == (2 * UPDATE,) and after.steps == 4 * UPDATE
    assert after.curve.steps[: len(before.curve.steps)] == before.curve.steps and len(after.curve.steps) == 4
    assert after.curve.mean_return[: len(before.curve.steps)] == before.curve.mean_return
    assert float(after.state.moments.count) == float(before.state.moments.count) + 4 + 2 * UPDATE
    assert int(after.state.update) == 4 and after.seconds_run > before.seconds_run
    steps = [leaf for leaf in jax.tree.leaves(after.state.learner.opt_state) if leaf.dtype == np.int32]
    assert steps and all(int(count) == 4 * 4 for count in steps)  # 2 epochs of 2 minibatches: Adam never forgot


def test_what_was_seen_and_drawn_before_is_not_seen_and_drawn_again(tmp_path):
    """Environments get other seeds than at the start, and actions other noise."""
    tags = []

    class Tagged(Telling):
        def reset(self, *, seed=None, options=None):
            obs, info = super().reset(seed=seed)
            tags.append(float(self.tag))
            return obs, info

    kept = functools.partial(train, HostTask("tagged", Tagged), LSTM_ARM, HOST, checkpoints=tmp_path)
    with pytest.raises(Stop):
        kept(on_progress=stop_after(UPDATE))
    first = set(tags)
    tags.clear()
    kept()
    assert len(tags) == 4 and not first & set(tags)


def test_restarts_are_counted_on(tmp_path):
    task = HostTask("failing", functools.partial(Failing, "raise", at=12), on_env_error="restart")
    kept = functools.partial(train, task, LSTM_ARM, HOST, checkpoints=tmp_path)
    with pytest.raises(Stop):
        kept(on_progress=stop_after(2 * UPDATE))
    (result,) = kept()
    assert result.env_restarts == 4 + 4, "each of four environments fails once in 16 steps, before and after"


class Rooms(gymnasium.Env):
    """Numbers, which are standardized, and a choice, which is not."""

    def __init__(self):
        place, room = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32), gymnasium.spaces.Discrete(3)
        self.observation_space = gymnasium.spaces.Dict({"place": place, "room": room})
        self.action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action[0]), bool(self.np_random.random() < 0.2), False, {}


def test_every_kind_of_input_and_action_is_kept(tmp_path):
    task, arm = HostTask("rooms", Rooms), dataclasses.replace(LSTM_ARM, previous_action=True, previous_reward=True)
    (result,) = train(task, arm, HOST, checkpoints=tmp_path)
    kept = load_checkpoint(Checkpoints(tmp_path).path(arm.name, seed=0), task)
    assert (kept.arm, kept.config) == (arm, HOST)
    jax.tree.map(np.testing.assert_array_equal, kept.result.state.moments, result.state.moments)
    played = [evaluate(task, arm, HOST, one.state, episodes=4).episode_return for one in (result, kept.result)]
    np.testing.assert_array_equal(*played)


# Numbers that are not finite


def test_a_nan_leaves_the_last_state_that_was_finite(tmp_path):
    """F13, windows of 8: transition 17 is in the third update, wherever the chunk began that it is in."""
    config = settings(updates=4, normalize_obs=False, anneal_lr=False)
    with pytest.raises(TrainingError, match=r"non-finite .* at update 3 of 4: .*; checkpoint after 64 steps: .*-0\."):
        compiled(environment(Poisoned(17, True)), MLP_ARM, config, checkpoints=tmp_path)
    kept = load_checkpoint(Checkpoints(tmp_path).path(MLP_ARM.name, seed=0), environment(Poisoned(17, True))).result
    two = settings(updates=2, normalize_obs=False, anneal_lr=False)
    same(kept, compiled(environment(Poisoned(17, True)), MLP_ARM, two)[0])


# Files


@pytest.fixture(scope="module", name="whole")
def written_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    compiled(ENV, MLP_ARM, settings(), checkpoints=folder)
    return (folder / "tiny-mlp-0.safetensors").read_bytes()


def changed_header(content, **changes):
    tensors = safetensors.numpy.load(content)
    length = int.from_bytes(content[:8], "little")
    data = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][HEADER])
    return safetensors.numpy.save(tensors, {HEADER: json.dumps({**data, **changes})})


def flipped(content):
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


DAMAGES = {
    "empty": (lambda content: b"", "damaged, or no checkpoint"),
    "half of it": (lambda content: content[: len(content) // 2], "damaged, or no checkpoint"),
    "without its last byte": (lambda content: content[:-1], "damaged, or no checkpoint"),
    "some text": (lambda content: b"what is this?" * 100, "damaged, or no checkpoint"),
    "one bit of a number": (flipped, "damaged .*not what was written"),
    "one bit of the text": (lambda content: content.replace(b"seed", b"sfed", 1), "damaged .*not what was written"),
    "of somebody else": (lambda content: safetensors.numpy.save({"a": np.ones(3)}), "is no thrust-rl/checkpoint"),
    "of the future": (lambda content: changed_header(content, schema_version=2), "has schema version 2"),
    "with other seconds": (lambda content: changed_header(content, seconds_run=1.5), "damaged .*not what was written"),
    "without a check": (lambda content: changed_header(content, check=None), "damaged .*not what was written"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_refused_with_a_remedy_and_left_as_it_is(tmp_path, whole, damage, said):
    path = tmp_path / "tiny-mlp-0.safetensors"
    path.write_bytes(damage(whole))
    for call in (
        lambda: load_checkpoint(path, ENV),
        lambda: compiled(ENV, MLP_ARM, settings(), checkpoints=tmp_path),
    ):
        with pytest.raises(ConfigError, match=f"{path} .*{said}.*delete it") as caught:
            call()
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == damage(whole)


OTHERS = {
    "arm.hidden_dim is": (ENV, dataclasses.replace(MLP_ARM, hidden_dim=MLP_ARM.hidden_dim + 1), settings()),
    "config.ppo.gamma is 0.99 there and 0.5 here": (ENV, MLP_ARM, settings(gamma=0.5)),
    "config.num_steps is 8 there and 16 here": (ENV, MLP_ARM, settings(num_steps=16)),
    "flicker_prob=0.3.* there and .*flicker_prob=0.9.* here": (
        environment(Short(3), sensor=Flicker(0.9)),
        MLP_ARM,
        settings(),
    ),
}


@pytest.mark.parametrize(("said", "asked"), OTHERS.items(), ids=["arm", "gamma", "window", "environment"])
def test_another_run_is_refused_and_what_differs_is_named(tmp_path, whole, said, asked):
    path = tmp_path / "tiny-mlp-0.safetensors"
    path.write_bytes(whole)
    with pytest.raises(ConfigError, match=said):
        compiled(*asked, checkpoints=tmp_path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (make("gymnasium:Pendulum-v1", g=9.81), make("gymnasium:Pendulum-v1", g=1.0)),
        (CompiledTask(ENV), CompiledTask(environment(Short(3), sensor=Flicker(0.9)))),
    ],
    ids=["g", "flicker_prob"],
)
def test_other_parameters_are_another_environment(tmp_path, one, other):
    train(one, LSTM_ARM, HOST, checkpoints=tmp_path)
    with pytest.raises(ConfigError, match="is of another environment .*there and .*here"):
        train(other, LSTM_ARM, HOST, checkpoints=tmp_path)


def test_what_a_killed_process_left_is_swept_away(tmp_path):
    (tmp_path / ".tiny-mlp-0.safetensors.abc123").touch()
    (tmp_path / ".tiny-mlp-1.safetensors.abc123").touch()  # of another run, which may be writing
    compiled(ENV, MLP_ARM, settings(), checkpoints=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".tiny-mlp-1.safetensors.abc123",
        "tiny-mlp-0.safetensors",
    ]


def test_a_folder_that_is_given_relatively_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    compiled(
        ENV, MLP_ARM, settings(), checkpoints="kept", on_progress=lambda progress: os.chdir(tmp_path / "elsewhere")
    )
    assert (tmp_path / "kept" / "tiny-mlp-0.safetensors").exists()


def test_a_task_of_the_same_name_with_other_spaces_is_refused(tmp_path):
    train(TASK, LSTM_ARM, HOST, checkpoints=tmp_path)
    other = HostTask(TASK.name, functools.partial(Telling, num_actions=5))
    with pytest.raises(ConfigError, match="does not fit the environment .*learner/policy/.*there and .*here"):
        load_checkpoint(tmp_path / "tiny-lstm-0.safetensors", other)


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(ConfigError, match="nothing.safetensors does not exist: give another"):
        load_checkpoint(tmp_path / "nothing.safetensors", ENV)


def test_where_nothing_can_be_written_training_says_so_before_or_at_once(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot write there .Not a directory"):
        compiled(ENV, MLP_ARM, settings(), checkpoints=tmp_path / "file" / "folder")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("thrust_rl.training.keeping.save_checkpoint", full)
    with pytest.raises(TrainingError, match="cannot be written .No space left on device"):
        compiled(ENV, MLP_ARM, settings(), checkpoints=tmp_path)
    failing = HostTask("telling", functools.partial(Failing, "raise", at=21))
    with pytest.raises(EnvError, match="on fire; .* cannot be written .No space left on device.; no update"):
        train(failing, LSTM_ARM, HOST, checkpoints=tmp_path)


def test_a_file_by_hand(tmp_path):
    config = settings()
    (result,) = compiled(ENV, MLP_ARM, config)
    path = save_checkpoint(tmp_path / "mine.safetensors", ENV, MLP_ARM, config, result)
    kept = load_checkpoint(str(path), ENV)
    same(kept.result, result)
    assert kept.versions["jax"] == jax.__version__


# When


@pytest.mark.parametrize(
    ("every", "at"), [(1, [1, 2, 3, 4]), (32, [1, 2, 3, 4]), (33, [2, 3, 4]), (64, [2, 4]), (100, [4]), (1000, [])]
)
def test_a_checkpoint_is_due_at_the_first_update_after_every_so_many_steps(tmp_path, every, at):
    """33 steps: at 33, 66, 99 and 132, so after the updates that end at 64, 96 and 128 — and 132 comes too late."""
    keeper = Keeper(Checkpoints(tmp_path, every), ENV, MLP_ARM, settings(updates=4), 0)
    done, due = 0, []
    while (done := done + keeper.updates_until_due(done)) <= 4:
        due.append(done)
    expected = [n for n in range(1, 5) if n * UPDATE // every > (n - 1) * UPDATE // every]
    assert due == expected == at


@pytest.mark.parametrize("every", [0, -1, 2.5, True, "100", None, float("inf")])
def test_odd_settings_are_refused(unchecked, tmp_path, every):
    with pytest.raises(ConfigError, match=f"checkpoint_every is {every!r}"):
        Checkpoints(tmp_path, every)
    with pytest.raises(ConfigError, match="name is '../up'"):
        Checkpoints(tmp_path, name="../up")
    with pytest.raises(TypeError, match="checkpoints is a int: give a folder"):
        compiled(ENV, MLP_ARM, settings(), checkpoints=5)


def test_numbers_of_numpys_are_numbers(unchecked, tmp_path):
    checkpoints = Checkpoints(tmp_path, every=np.int64(UPDATE))
    compiled(ENV, MLP_ARM, settings(), seeds=np.arange(1), checkpoints=checkpoints)
    assert load_checkpoint(checkpoints.path(MLP_ARM.name, seed=0), ENV).result.seed == 0
