"""The table tells every seed and the mean; progress is bars on a terminal and lines elsewhere."""

import io

import pytest
from rich.console import Console

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.experiment.comparison import ArmResult, Comparison
from thrust_rl.experiment.jobs import Job, SeedResult
from thrust_rl.experiment.runner import JobEvent
from thrust_rl.experiment.terminal import LiveProgress, results_table

CONFIG = TrainConfig(total_timesteps=512, num_envs=4, num_steps=32)


def job(arm, *seeds):
    return Job("CartPole-v1", {}, ArmConfig(arm), CONFIG, seeds)


def progress(arm, steps, *seeds, mean_return=None):
    data = {"seeds": list(seeds), "steps": steps, "total_steps": 512, "mean_return": mean_return, "seconds": 0.5}
    return JobEvent("progress", job(arm, *seeds), data)


def console(*, terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None, legacy_windows=False)


def shown(to):
    return to.file.getvalue()


def bars(to):
    """Every bar that was drawn, in the order of drawing."""
    return [line for line in shown(to).splitlines() if "/1024" in line]


def seed_result(seed, final, best):
    return SeedResult(seed, 17539, final, best, (), (), 0, 512, 1234.4, 0.5, 0.25)


def table_text(arms, status="complete"):
    to = console(terminal=False)
    results = tuple(ArmResult(ArmConfig(name), 3e-4, tuple(seeds)) for name, seeds in arms.items())
    to.print(results_table(Comparison("CartPole-v1", {}, CONFIG, (0, 1), results, status)))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown(to).splitlines() if "│" in line]
    return shown(to), rows


def test_the_table_has_a_row_for_every_seed_and_for_the_mean():
    arms = {"lstm": [seed_result(0, 10.0, 20.0), seed_result(1, 30.0, 41.0)], "mlp": [seed_result(0, 1.0, 2.0)]}
    text, rows = table_text(arms)
    assert "CartPole-v1" in text
    assert rows == [
        ["lstm", "0", "10.0", "20.0", "", "1,234"],
        ["lstm", "1", "30.0", "41.0", "", "1,234"],
        ["lstm", "mean", "20.0", "30.5", "17,539", ""],
        ["mlp", "0", "1.0", "2.0", "", "1,234"],
        ["mlp", "mean", "1.0", "2.0", "17,539", ""],
    ]


def test_what_is_missing_is_a_dash_in_the_table():
    _, rows = table_text({"lstm": [seed_result(0, None, None)], "mlp": []}, status="interrupted")
    assert rows[0][:4] == ["lstm", "0", "–", "–"]
    assert rows[1][:4] == ["lstm", "mean", "–", "–"]
    assert rows[2] == ["mlp", "mean", "–", "–", "–", ""]


def test_elsewhere_than_on_a_terminal_there_is_one_line_per_finished_job():
    to = console(terminal=False)
    with LiveProgress(to, ["a", "b"], steps_per_arm=1024) as live:
        for event in (JobEvent("started", job("a", 0)), progress("a", 256, 0), JobEvent("finished", job("a", 0))):
            live(event)
        assert len(shown(to).splitlines()) == 1
        live(JobEvent("finished", job("b", 0)))
    lines = shown(to).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("a seed 0: finished after ") and lines[1].startswith("b seed 0: finished after ")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_restart_is_told_with_its_reason(terminal):
    to = console(terminal=terminal)
    with LiveProgress(to, ["a"], steps_per_arm=1024) as live:
        live(JobEvent("started", job("a", 0)))
        live(progress("a", 512, 0))
        live(JobEvent("restarted", job("a", 0), {"reason": "no sign of progress for 61 s"}))
    assert "a seed 0: no sign of progress for 61 s; started over" in shown(to)


def test_a_bar_counts_the_steps_of_all_seeds_of_its_arm():
    to = console(terminal=True)
    with LiveProgress(to, ["a", "b"], steps_per_arm=1024) as live:
        for event in (
            JobEvent("started", job("a", 0)),
            progress("a", 512, 0, mean_return=21.5),
            progress("a", 128, 1, mean_return=22.5),
            progress("a", 256, 1, mean_return=23.5),
        ):
            live(event)
    bar_of_a, bar_of_b = bars(to)[-2:]
    assert "768/1024" in bar_of_a and "return   23.5" in bar_of_a
    assert "0/1024" in bar_of_b and "waiting" in bar_of_b


def test_a_restarted_job_starts_again_from_nothing():
    to = console(terminal=True)
    with LiveProgress(to, ["a"], steps_per_arm=1024) as live:
        live(JobEvent("started", job("a", 0)))
        live(progress("a", 512, 0))
        live(JobEvent("restarted", job("a", 0), {"reason": "it died"}))
        live(progress("a", 128, 0))
    assert "128/1024" in bars(to)[-1]


def test_seeds_that_run_together_are_counted_together():
    to = console(terminal=True)
    with LiveProgress(to, ["a"], steps_per_arm=1024) as live:
        live(JobEvent("started", job("a", 0, 1)))
        live(progress("a", 256, 0, 1))
    assert "512/1024" in bars(to)[-1]
    assert "no episode yet" in bars(to)[-1]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_quiet_console_stays_empty(terminal):
    to = Console(file=io.StringIO(), force_terminal=terminal, quiet=True)
    with LiveProgress(to, ["a"], steps_per_arm=1024) as live:
        for event in (JobEvent("started", job("a", 0)), progress("a", 256, 0), JobEvent("finished", job("a", 0))):
            live(event)
    assert shown(to) == ""
