"""The table tells what every arm reached; progress is bars on a terminal and lines elsewhere."""

import dataclasses
import io

import pytest
from rich.console import Console

from comparisons_for_tests import LSTM, MLP, comparison
from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.experiment.comparison import TaskResult
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.runner import JobEvent
from thrust_rl.experiment.tables import shown as shown_result
from thrust_rl.experiment.tables import tell
from thrust_rl.experiment.terminal import LiveProgress

CONFIG = TrainConfig(total_timesteps=512, num_envs=4, num_steps=32)


def job(arm, *seeds):
    return Job(EnvSpec("CartPole-v1"), ArmConfig(arm), CONFIG, seeds)


def jobs(*arms):
    """Two seeds of each."""
    return [job(arm, seed) for arm in arms for seed in (0, 1)]


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


def table_text(made):
    to = console(terminal=False)
    to.print(shown_result(made), highlight=False)
    return shown(to), [line.split() for line in shown(to).splitlines()]


def test_the_table_has_a_row_for_every_arm_with_its_size_and_score():
    text, rows = table_text(comparison({"lstm": LSTM, "mlp": MLP}, twin={"lstm": MLP, "mlp": MLP}))
    assert ["FlickeringCartPole-v0"] in rows and ["FlickeringCartPole-v0", "twin"] in rows
    lstm, mlp = (next(row for row in rows if row[:1] == [name]) for name in ("lstm", "mlp"))
    assert lstm[:4] == ["lstm", "17,539", "6", "461.0"] and lstm[5] == "to"
    assert lstm[7:] == ["463.0", "461.0", "471.0"]
    assert mlp[:4] == ["mlp", "17,539", "6", "158.7"]
    assert sum(row[:1] == ["lstm"] for row in rows) == 2 * 2  # means, and seed by seed


def test_every_seed_has_its_score_its_final_and_its_best():
    made = comparison({"lstm": LSTM, "mlp": MLP})
    rows = table_text(made)[1]
    for arm in made.arms:
        at = next(i for i, row in enumerate(rows) if row[:2] == [arm.name, "score"])
        for row, number in zip(rows[at : at + 3], ("score", "final", "best"), strict=True):
            assert row[-len(arm.seeds) - 1 :] == [number, *(f"{getattr(seed, number):.0f}" for seed in arm.seeds)]


def test_under_the_table_stand_all_sentences():
    made = comparison({"lstm": LSTM, "mlp": MLP}, twin={"lstm": MLP, "mlp": MLP})
    text = " ".join(table_text(made)[0].split())
    assert len(made.sentences) >= 6
    assert all(sentence in text for sentence in made.sentences)


def test_returns_of_about_one_are_shown_to_three_digits():
    small = {"lstm": tuple(score / 500 for score in LSTM), "mlp": tuple(score / 500 for score in MLP)}
    rows = table_text(comparison(small))[1]
    assert next(row for row in rows if row[:1] == ["mlp"])[3:7] == ["0.317", "0.294", "to", "0.337"]


def test_elsewhere_than_on_a_terminal_no_name_is_broken_and_no_line_ends_in_spaces():
    long = "lstm-of-a-rather-long-name-that-someone-gave-it+action+reward"
    to = Console(file=io.StringIO(), width=80, color_system=None)
    tell(comparison({ArmConfig(long, cell="lstm"): LSTM, "mlp": MLP}, tasks=TASKS), to)
    lines = shown(to).splitlines()
    assert sum(line.split()[:2] in ([long, "17,539"], [long, "score"]) for line in lines) == 2 * len(TASKS)
    assert not [line for line in lines if line != line.rstrip()]


TASKS = ("CartPole-v1", "FlickeringCartPole-v0", "MaskedCartPole-v0")


def overview_lines(made, *, width=80):
    to = Console(file=io.StringIO(), width=width, color_system=None)
    to.print(shown_result(made), highlight=False)
    lines = shown(to).splitlines()
    return lines[: next(i for i, line in enumerate(lines) if line.strip() == made.tasks[0].label)], lines


def test_several_tasks_are_one_table_before_their_details_with_the_aggregate_under_it():
    eight = {"lstm": (*LSTM, 462.0, 470.0), "mlp": (*MLP, 160.0, 171.0)}
    made = comparison(eight, tasks=TASKS)
    top, lines = overview_lines(made)
    rows = [line.split() for line in top]
    for task, analysis in zip(made.tasks, made.analysis.tasks, strict=True):
        verdict = analysis.verdict
        [row] = [row for row in rows if row[:1] and task.label.startswith(row[0]) and len(row) > 4]
        assert row[1:] == ["462.2", "160.4", f"{verdict.effect:+.1f}", f"{verdict.p_value:.2g}", "helps"]
    interval = made.analysis.tasks[0].verdict.interval
    assert f"{interval.low:+.1f} to {interval.high:+.1f}" in " ".join(top)
    [over] = [sentence for sentence in made.sentences if sentence.startswith("Over 3 tasks")]
    assert over in " ".join(" ".join(top).split())
    assert " ".join(" ".join(lines).split()).count(over) == 1
    assert max(map(len, lines)) <= 80
    assert not overview_lines(comparison(eight))[0], "one task needs no overview"


def test_further_arms_do_not_crowd_the_overview_and_are_named():
    made = comparison({"mlp": MLP, "lstm-reset": MLP, "gru": LSTM, "framestack:4": MLP}, tasks=TASKS)
    top, lines = overview_lines(made)
    text = " ".join(" ".join(top).split())
    assert "gru mlp gru minus mlp" in text
    assert "Further arms (lstm-reset, framestack:4): below" in text
    assert max(map(len, lines)) <= 80


def test_where_the_other_numbers_are_is_said():
    assert "median, interquartile mean and area under the curve: in report.md" in " ".join(
        table_text(comparison({"lstm": LSTM, "mlp": MLP}))[0].split()
    )


def test_the_table_fits_a_narrow_terminal():
    to = Console(file=io.StringIO(), width=80, color_system=None)
    to.print(shown_result(comparison({"lstm-reset+action+reward": LSTM, "mlp": MLP})), highlight=False)
    lines = shown(to).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:1] == ["mlp"] and "158.7" in line and "168.7" in line for line in lines), (
        "nothing is cut off"
    )
    assert any(line.strip().startswith("lstm-reset") for line in lines)


def test_what_is_missing_is_a_dash_in_the_table():
    made = comparison({"lstm": (), "mlp": ()}, status="interrupted", seeds=(0, 1))
    rows = table_text(made)[1]
    assert next(row for row in rows if row[:1] == ["lstm"])[2:] == ["0", *["–"] * 5]


def test_every_run_is_counted_those_too_that_had_finished_before():
    to = console(terminal=True)
    with LiveProgress(to, jobs("a", "b")) as live:
        live(JobEvent("kept", job("a", 0)))
        live(JobEvent("started", job("a", 1)))
        live(progress("a", 512, 1))
        live(JobEvent("finished", job("a", 1)))
    lines = shown(to).splitlines()
    assert "1 of 4 runs had finished before and are not run again" in shown(to)
    assert "1024/1024" in [line for line in lines if " a " in line][-1]
    assert "2/4" in [line for line in lines if "runs" in line][-1]


def test_the_same_arm_and_seed_on_two_tasks_is_two_runs():
    to = console(terminal=True)
    both = [job("a", 0), dataclasses.replace(job("a", 0), where="elsewhere")]
    with LiveProgress(to, both) as live:
        for one in both:
            live(JobEvent("started", one))
            live(JobEvent("progress", one, progress("a", 256, 0).data))
    assert "512/1024" in bars(to)[-1]


def test_a_finished_training_that_is_being_evaluated_says_so():
    to = console(terminal=True)
    with LiveProgress(to, jobs("a")) as live:
        live(JobEvent("started", job("a", 0)))
        live(progress("a", 512, 0, mean_return=3.0))
    assert "evaluating" in bars(to)[-1]


def test_elsewhere_than_on_a_terminal_there_is_one_line_per_finished_job():
    to = console(terminal=False)
    with LiveProgress(to, jobs("a", "b")) as live:
        for event in (JobEvent("started", job("a", 0)), progress("a", 256, 0), JobEvent("finished", job("a", 0))):
            live(event)
        assert len(shown(to).splitlines()) == 1
        live(JobEvent("finished", job("b", 0)))
    lines = shown(to).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("a seed 0: finished after ") and lines[1].startswith("b seed 0: finished after ")
    assert lines[0].endswith(" s (1 of 4)") and lines[1].endswith(" s (2 of 4)")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_restart_is_told_with_its_reason(terminal):
    to = console(terminal=terminal)
    with LiveProgress(to, jobs("a")) as live:
        live(JobEvent("started", job("a", 0)))
        live(progress("a", 512, 0))
        live(JobEvent("restarted", job("a", 0), {"reason": "no sign of progress for 61 s"}))
    assert "a seed 0: no sign of progress for 61 s; started over" in shown(to)


def test_a_bar_counts_the_steps_of_all_seeds_of_its_arm():
    to = console(terminal=True)
    with LiveProgress(to, jobs("a", "b")) as live:
        for event in (
            JobEvent("started", job("a", 0)),
            progress("a", 500, 0, mean_return=21.5),
            progress("a", 128, 1, mean_return=22.5),
            progress("a", 256, 1, mean_return=23.5),
        ):
            live(event)
    bar_of_a, bar_of_b = bars(to)[-2:]
    assert "756/1024" in bar_of_a and "return   23.5" in bar_of_a
    assert "0/1024" in bar_of_b and "waiting" in bar_of_b


def test_a_restarted_job_starts_again_from_nothing():
    to = console(terminal=True)
    with LiveProgress(to, jobs("a")) as live:
        live(JobEvent("started", job("a", 0)))
        live(progress("a", 512, 0))
        live(JobEvent("restarted", job("a", 0), {"reason": "it died"}))
        live(progress("a", 128, 0))
    assert "128/1024" in bars(to)[-1]


def test_seeds_that_run_together_are_counted_together():
    to = console(terminal=True)
    with LiveProgress(to, jobs("a")) as live:
        live(JobEvent("started", job("a", 0, 1)))
        live(progress("a", 256, 0, 1))
    assert "512/1024" in bars(to)[-1]
    assert "no episode yet" in bars(to)[-1]


BRACKETS = ["[red]x[/blue]", "[/x]", "a [bold]", ":smile:", "[", "\\[x]"]


@pytest.mark.parametrize("name", BRACKETS)
def test_brackets_in_a_name_are_shown_as_they_are(name):
    made = comparison({ArmConfig(name, cell="lstm"): LSTM, "mlp": MLP})
    spec = EnvSpec("FlickeringCartPole-v0", {"mode": name})
    task = TaskResult(name, (dataclasses.replace(made.tasks[0].task, environment=spec),))
    made = dataclasses.replace(made, tasks=(task,))
    text, _ = table_text(made)
    assert f"mode={name}" in text and text.count(name) >= 4  # the title, both tables, the sentence
    several = dataclasses.replace(made, tasks=(task, dataclasses.replace(task, label="two")))
    both = table_text(several)[0]
    assert name in both.partition("two")[0]  # the overview's row


@pytest.mark.parametrize("name", BRACKETS)
@pytest.mark.parametrize("terminal", [True, False])
def test_brackets_in_a_name_are_no_markup_of_progress(name, terminal):
    to = console(terminal=terminal)
    with LiveProgress(to, jobs(name)) as live:
        live(JobEvent("started", job(name, 0)))
        live(progress(name, 256, 0))
        live(JobEvent("restarted", job(name, 0), {"reason": f"{name} died"}))
        live(JobEvent("finished", job(name, 0)))
    assert f"{name} died" in shown(to)
    assert name in (bars(to)[-1] if terminal else shown(to).splitlines()[-1])


@pytest.mark.parametrize("terminal", [True, False])
def test_a_quiet_console_stays_empty(terminal):
    to = Console(file=io.StringIO(), force_terminal=terminal, quiet=True)
    with LiveProgress(to, jobs("a")) as live:
        for event in (JobEvent("started", job("a", 0)), progress("a", 256, 0), JobEvent("finished", job("a", 0))):
            live(event)
    assert shown(to) == ""
