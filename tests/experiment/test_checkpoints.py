"""Comparisons that keep unfinished runs: what goes on, what is told of it, and what is cleared away."""

import dataclasses
import functools
import json

import pytest

from thrust_rl.config import ConfigError, TrainConfig
from thrust_rl.experiment import trial
from thrust_rl.experiment.compare import compare
from thrust_rl.experiment.jobs import EvalConfig, Job
from thrust_rl.experiment.plan import Options, jobs_of, plan
from thrust_rl.experiment.runner import RunError
from thrust_rl.experiment.store import RunStore

TINY = TrainConfig(total_timesteps=4 * 128, num_envs=4, num_steps=32)
TIMES = ("steps_per_second", "seconds_compile", "seconds_run")
BREAKABLE = """
import pathlib, gymnasium
class Breakable(gymnasium.wrappers.TimeLimit):
    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"), 20)
        self.lived = 0
    def step(self, action):
        self.lived += 1
        if self.lived == 70 and pathlib.Path("broken").exists():
            raise RuntimeError("the motor is on fire")
        return super().step(action)
"""


def planned(**options):
    return plan("FlickeringCartPole-v0", Options(**{"arms": ["mlp"], "seeds": 2, "config": TINY, **options}))


def without_times(result):
    return {name: value for name, value in dataclasses.asdict(result).items() if name not in TIMES}


def test_an_interrupted_job_goes_on_and_gives_what_an_undisturbed_one_gives(tmp_path):
    store = RunStore(tmp_path, planned())
    store.begin()
    plain = dataclasses.replace(jobs_of(planned())[0], evaluation=EvalConfig(3))
    job = store.checkpointed(plain, every=128)
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))) == job

    def stop(progress):
        if progress.steps >= 256:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trial.run(job, stop)
    heard = []
    (resumed,), (undisturbed,) = trial.run(job, heard.append), trial.run(plain, lambda progress: None)
    assert heard[0].steps > 256
    assert without_times(resumed) == without_times(undisturbed) and resumed.resumed_at == ()


def test_a_damaged_checkpoint_is_refused_before_anything_runs(tmp_path):
    store = RunStore(tmp_path, planned())
    store.begin()
    job = jobs_of(planned())[0]
    store.checkpointed(job, every=128).checkpoints.path("mlp", seed=0).write_bytes(b"nothing of ours")
    with pytest.raises(ConfigError, match="mlp-0.safetensors is damaged, or no checkpoint .*delete it"):
        compare("FlickeringCartPole-v0", arms=["mlp"], seeds=2, config=TINY, out=tmp_path, checkpoint_every=128)


def test_starting_over_deletes_checkpoints_too_and_nothing_else(tmp_path):
    store = RunStore(tmp_path, planned())
    store.begin()
    (tmp_path / "runs" / "mine-0.safetensors").touch()
    (tmp_path / "runs" / ".mine-0.safetensors.abc").touch()  # of a process that was killed
    (tmp_path / "runs" / "notes.txt").touch()
    RunStore(tmp_path, planned(), fresh=True)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"checkpoint_every": 100}, "without out"), ({"checkpoint_every": 0, "out": "x"}, "checkpoint_every is 0")],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=said):
        compare("FlickeringCartPole-v0", arms=["mlp"], seeds=1, config=TINY, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_after_a_fault_that_was_mended_the_same_comparison_goes_on_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "breakable.py").write_text(BREAKABLE)
    (tmp_path / "broken").touch()
    again = functools.partial(
        compare,
        "breakable:Breakable",
        arms=["mlp"],
        seeds=1,
        config=TINY,
        eval_episodes=2,
        out=tmp_path / "out",
        checkpoint_every=10_000,
        workers=1,
    )
    file = tmp_path / "out" / "runs" / "breakable_Breakable_"
    with pytest.raises(
        RunError, match=f"at step 70: .*on fire; checkpoint after 256 steps: {file}.*-mlp-0.safetensors"
    ):
        again()
    (tmp_path / "broken").unlink()
    comparison = again()
    (seed,) = comparison.arm("mlp").seeds
    assert seed.resumed_at == (256,) and seed.steps == 512
    said = "mlp seed 0 on breakable:Breakable went on from a checkpoint at 256 steps"
    assert any(sentence.startswith(said) for sentence in comparison.analysis.sentences)
    assert comparison == type(comparison).load(tmp_path / "out")
