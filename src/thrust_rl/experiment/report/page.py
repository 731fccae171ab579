"""`report.html`: one file that opens offline, the verdict first; only replay and copying need its script."""

import functools
import html
import re
from importlib import resources

from thrust_rl.experiment.report import tables
from thrust_rl.experiment.report.charts import band_note, curves_svg
from thrust_rl.experiment.report.curves import POINTS
from thrust_rl.experiment.report.data import Condition, Result, Task
from thrust_rl.experiment.report.evaluation import evaluation_note, evaluation_svg
from thrust_rl.experiment.report.forest import effects_svg, profile_svg
from thrust_rl.experiment.report.overview import NOTE, overview_table
from thrust_rl.experiment.report.pairs import effect_on, effects
from thrust_rl.experiment.report.replay import embedded, episodes
from thrust_rl.experiment.report.replay_html import replay_section
from thrust_rl.experiment.report.style import ArmStyle, styles
from thrust_rl.experiment.report.tables import Table

COMMAND = "command"  # id of the element that holds it


def report_html(result: Result) -> str:
    """The whole page. The same result gives the same text."""
    looks = styles(result.arm_names)
    played = [found for task in result.tasks for condition in task.conditions if (found := episodes(condition))]
    parts = {
        "title": html.escape(f"Does memory help? {', '.join(task.label for task in result.tasks)}"),
        "style": asset("report.css"),
        "script": asset("report.js"),
        "data": embedded([[episode.to_dict() for episode in each] for each in played]),
        "body": _body(result, looks),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], asset("report.html"))


@functools.cache
def asset(name: str) -> str:
    """Text of a file that comes with the package."""
    return (resources.files("thrust_rl.experiment.report") / "assets" / name).read_text(encoding="utf-8").rstrip()


def _body(result: Result, looks: dict[str, ArmStyle]) -> str:
    sections = [_header(result), "<main>", _together(result, looks)]
    for i, task in enumerate(result.tasks):
        sections.append(_task(task, looks, name=f"t{i}", several=len(result.tasks) > 1))
    sections += [replay_section(result), _runs(result), _settings(result), "</main>", _footer(result)]
    return "\n".join(section for section in sections if section)


def _header(result: Result) -> str:
    several = " class=several" if len(result.headlines) > 1 else ""
    lines = [f"<header{several}>", f"<h1>Does memory help on {html.escape(_labels(result))}?</h1>"]
    lines += [_verdict(label, said) for label, said in result.headlines]
    remarks = "".join(f"<li>{html.escape(said)}</li>" for said in result.remarks)
    if remarks:
        lines.append(f'<ul class="notes">{remarks}</ul>')
    return "\n".join([*lines, "</header>"])


def _labels(result: Result) -> str:
    return ", ".join(task.label for task in result.tasks) or "nothing"


def _verdict(label: str | None, said: str) -> str:
    """The answer large, the evidence after it."""
    about = f"<small>{html.escape(label)}</small>" if label else ""
    answer, colon, evidence = said.partition(": ")
    if not colon:
        return f'<p class="verdict">{about}<strong class="long">{html.escape(said)}</strong></p>'
    return (
        f'<p class="verdict">{about}<strong>{html.escape(answer)}<span class="quiet">: </span></strong>'
        f"{html.escape(evidence)}</p>"
    )


def _task(task: Task, looks: dict[str, ArmStyle], *, name: str, several: bool) -> str:
    places = tables.digits(task)
    lines = [f"<section><h2>{html.escape(task.label) if several else 'What each arm reached'}</h2>"]
    for condition in task.conditions:
        lines.append(_condition(task, condition, looks, f"{name}-{condition.name}", places))
    lines.append(f'<p class="note">{html.escape(tables.ARMS_NOTE)}</p>')
    lines += [_effects(task, places, f"{name}-effects"), "</section>"]
    return "\n".join(lines)


def _condition(task: Task, condition: Condition, looks: dict[str, ArmStyle], name: str, places: int) -> str:
    legend = "".join(f"<li>{looks[arm.name].sample()}{html.escape(arm.name)}</li>" for arm in condition.arms)
    effect = effect_on(task, condition)
    curves = curves_svg(condition, looks, name=f"{name}-curve")
    points = evaluation_svg(condition, effect, looks, min_effect=task.min_effect, name=f"{name}-points")
    title = f"<h3>{html.escape(condition.title)}</h3>" if len(task.conditions) > 1 else ""
    return "\n".join(
        [
            title,
            f'<ul class="legend">{legend}</ul>',
            '<div class="pair">',
            _curve_figure(condition, curves, name),
            _figure(points, evaluation_note(condition, effect, task.min_effect))
            if points
            else "<p>No evaluation yet.</p>",
            "</div>",
            table_html(tables.arms_table(condition, places)),
        ]
    )


def _curve_figure(condition: Condition, curves: str | None, name: str) -> str:
    if curves is None:
        return "<p>No learning curve: no training episode has finished.</p>"
    toggle = (
        f'<input type="checkbox" class="toggle" id="{name}-seeds"><label for="{name}-seeds">Show every seed</label>'
    )
    return _figure(
        f'<div class="toggled">{toggle}{curves}</div>', f"{band_note(condition)} At most {POINTS} points of each curve."
    )


def _figure(content: str, caption: str) -> str:
    return f"<figure>{content}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _effects(task: Task, places: int, name: str) -> str:
    found, table = effects(task), tables.effects_table(task, places)
    pairs = tables.contrasts_table(task, places)
    lines = ["<h3>What memory is worth</h3>"]
    svg = effects_svg(found, min_effect=task.min_effect, name=name)
    if svg is None or table is None:
        said = "No difference is reported: it takes two arms with finished seeds in common."
        return "\n".join([*lines, f"<p>{said}</p>"])
    band = f" Shaded: ±{task.min_effect:.{places}f}, the smallest effect of interest." if task.min_effect else ""
    caption = f"Circles: seeds. Diamond and bar: mean, {found[0].percent} interval.{band}"
    lines.append(f'<div class="wide">{_figure(svg, caption)}</div>')
    lines.append(table_html(table))
    lines += [f"<p>{html.escape(each.meaning)}</p>" for each in found if each.meaning]
    if pairs is not None and (len(pairs.rows) > 1 or len(found) == 1):
        lines.append(table_html(pairs))
    return "\n".join(lines)


def _together(result: Result, looks: dict[str, ArmStyle]) -> str:
    """The overview of several tasks, and what is said about all of them at once."""
    overview = overview_table(result)
    if overview is None:
        return ""
    said = f'{table_html(overview)}<p class="note">{html.escape(NOTE)}</p>'
    return f"<section><h2>All tasks together</h2>{said}{_aggregate(result, looks)}</section>"


def _aggregate(result: Result, looks: dict[str, ArmStyle]) -> str:
    if not result.aggregate:
        return ""
    caption = "Line: share of all runs above a score. Band: 95 % interval at each point (Wilson)."
    figure = _figure(profile_svg(result.aggregate, looks, name="profile"), caption)
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in result.aggregate.get("notes") or ())
    table = table_html(tables.aggregate_table(result.aggregate))
    return f'{table}<div class="wide">{figure}</div>{notes}'


def _runs(result: Result) -> str:
    found = []
    for task in result.tasks:
        for condition in task.conditions:
            table = tables.seeds_table(condition, tables.digits(task))
            if table.rows:
                found.append(f"<details><summary>{html.escape(table.title)}</summary>{table_html(table)}</details>")
    return f"<section><h2>Every run</h2>{''.join(found)}</section>" if found else ""


def _settings(result: Result) -> str:
    command = result.raw.get("command")
    repeat = (
        f'<h3>Command</h3><pre id="{COMMAND}">{html.escape(command)}</pre>'
        f'<button type="button" class="copy" data-copies="{COMMAND}">Copy</button>'
        if command
        else f"<p>{tables.NO_COMMAND}</p>"
    )
    lists = "".join(
        f"<details><summary>{each.title}</summary>{table_html(each)}</details>"
        for each in (tables.settings_table(result), tables.machine_table(result))
    )
    return f"<section><h2>How to repeat it</h2>{repeat}{lists}</section>"


def _footer(result: Result) -> str:
    version = (result.raw.get("versions") or {}).get("thrust-rl", "")
    return (
        f"<footer>Written by thrust-rl {html.escape(str(version))}. All numbers are those of result.json."
        " The interval that decides is the wider of Student's t and the inverted sign-flip test.</footer>"
    )


def table_html(table: Table) -> str:
    """A table that scrolls sideways on a narrow screen; a number's interval goes on a line of its own."""
    heads = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in table.columns)
    rows = []
    for row in table.rows:
        cells = [f'<th scope="row">{html.escape(cell)}</th>' for cell in row[: table.heads]]
        cells += [f"<td>{_cell(cell, table)}</td>" for cell in row[table.heads :]]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    title = html.escape(table.title)
    kind = "words" if table.words else "numbers"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}"><table class="{kind}">'
        f"<caption>{title}</caption><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: str, table: Table) -> str:
    value, bracket, rest = ("", "", "") if table.words else cell.partition(" [")
    if not bracket:
        return html.escape(cell)
    return f'{html.escape(value)} <span class="bracket">[{html.escape(rest)}</span>'
