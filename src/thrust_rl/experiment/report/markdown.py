"""`report.md`: the verdict, the numbers and how to repeat them, for a pull request or a paper's appendix."""

import re
from collections.abc import Sequence

from thrust_rl.experiment.report import tables
from thrust_rl.experiment.report.data import Result, Task
from thrust_rl.experiment.report.overview import NOTE, overview_table
from thrust_rl.experiment.report.pairs import effects
from thrust_rl.experiment.report.tables import Table

PICTURES = {
    "curve.png": "Learning curves",
    "evaluation.png": "Evaluation returns per seed",
    "profile.png": "Performance profile",
}


def report_markdown(result: Result, *, pictures: Sequence[str]) -> str:
    """The whole text. `pictures`: names of files beside it that it may show."""
    blocks = [f"# Does memory help on {text(', '.join(task.label for task in result.tasks))}?"]
    for label, said in result.headlines:
        blocks.append(f"**{text(f'{label}: {said}' if label else said)}**")
    if result.remarks:
        blocks.append("\n".join(f"- {text(said)}" for said in result.remarks))
    blocks += _together(result)
    blocks += [f"![{PICTURES[name]}]({name})" for name in pictures if name in PICTURES]
    for task in result.tasks:
        blocks += _task(task, several=len(result.tasks) > 1)
    blocks.append("## How to repeat it")
    command = result.raw.get("command")
    blocks.append(_fenced(command) if command else tables.NO_COMMAND)
    blocks += [_folded(each) for each in (tables.settings_table(result), tables.machine_table(result))]
    return "\n\n".join(blocks) + "\n"


def _together(result: Result) -> list[str]:
    """The overview of several tasks, and what is said about all of them at once."""
    overview = overview_table(result)
    blocks = [] if overview is None else ["## All tasks together", _table(overview), text(NOTE)]
    return blocks + ([_table(tables.aggregate_table(result.aggregate))] if result.aggregate else [])


def _task(task: Task, *, several: bool) -> list[str]:
    places = tables.digits(task)
    blocks = [f"## {text(task.label)}" if several else "## What each arm reached"]
    blocks += [_table(tables.arms_table(condition, places)) for condition in task.conditions]
    blocks.append(text(tables.ARMS_NOTE))
    found, table = effects(task), tables.effects_table(task, places)
    if table is not None:
        blocks.append(_table(table))
        meanings = [f"- {text(each.meaning)}" for each in found if each.meaning]
        blocks += ["\n".join(meanings)] if meanings else []
    pairs = tables.contrasts_table(task, places)
    return [*blocks, _table(pairs)] if pairs is not None else blocks


def _table(table: Table) -> str:
    right = [":--" if table.words or i < table.heads else "--:" for i in range(len(table.columns))]
    rows = [table.columns, *table.rows]
    lines = [f"| {' | '.join(text(cell) for cell in row)} |" for row in rows]
    return "\n".join([f"{text(table.title)}:", "", lines[0], f"|{'|'.join(right)}|", *lines[1:]])


def _folded(table: Table) -> str:
    return f"<details><summary>{table.title}</summary>\n\n{_table(table)}\n\n</details>"


def text(value: str) -> str:
    """Plain text in which nothing is markup, a link or the end of a table's cell."""
    flat = " ".join(value.split())
    escaped = re.sub(r"[\\`*|~]|(?<!\w)_|_(?!\w)|\](?=[(\[:])", r"\\\g<0>", flat)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _fenced(command: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{command}\n{fence}"
