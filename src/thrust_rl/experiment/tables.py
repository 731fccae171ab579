"""What a comparison shows on a terminal when it is done: a table per condition, and what it says in words."""

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult
from thrust_rl.experiment.report.data import read
from thrust_rl.experiment.report.overview import NOTE, overview_table
from thrust_rl.experiment.sentences import aggregate_sentence
from thrust_rl.experiment.statistics import Estimate
from thrust_rl.experiment.verdict import MIN_SEEDS, decimals

WIDE = 160  # columns of what goes into a file or a pipe
MOST_SEEDS = 10  # that are shown one by one; the report has them all
RIGHT = ("params", "seeds", "score", "95 % interval", "greedy", "final", "best")


def tell(comparison: Comparison, console: Console) -> None:
    """Print everything; where it is no terminal, wide enough to leave names whole, and without spaces at the ends."""
    if console.is_terminal:
        console.print(shown(comparison), highlight=False)
        return
    console.width = max(console.width, WIDE)
    with console.capture() as captured:
        console.print(shown(comparison), highlight=False)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    console.print("\n".join(lines), highlight=False, markup=False, emoji=False, soft_wrap=True)


def shown(comparison: Comparison) -> Group:
    """Everything there is to say: tables, then sentences, then notes."""
    parts: list[RenderableType] = _together(comparison)
    for condition in (condition for task in comparison.tasks for condition in task.conditions):
        parts.append(condition_table(condition))
        if len(comparison.seeds) <= MOST_SEEDS:
            parts.append(seed_table(condition))
    parts.append(
        Text(
            "score: mean return of fresh evaluation episodes, actions drawn; greedy: likeliest actions;"
            " final, best: of the training curve; median, interquartile mean and area under the curve: in report.md",
            style="dim",
        )
    )
    for index, sentence in enumerate(_sentences(comparison)):
        parts.append(Text(sentence, style="bold" if index == 0 else ""))
    verdicts = [analysis.verdict for analysis in comparison.analysis.tasks if analysis.verdict]
    notes = [note for verdict in verdicts for note in verdict.notes]
    parts += [Text(f"Note: {note}.", style="dim") for note in dict.fromkeys(notes)]
    return Group(*parts)


def _together(comparison: Comparison) -> list[RenderableType]:
    """The overview of several tasks, and under it what is said about all of them at once."""
    pair = comparison.analysis.pair or tuple(arm.name for arm in comparison.arms[:2])
    overview = overview_table(read(comparison), arms=pair)
    if overview is None:
        return []
    table = _table(overview.title)
    for i, column in enumerate(overview.columns):
        words = i in (0, len(overview.columns) - 1)
        name = column.replace(" (", "\n(")
        table.add_column(Text(name), overflow="fold", justify="left" if words else "right", no_wrap=not words)
    for row in overview.rows:
        table.add_row(Text(row[0]), *(Text(_two_lines(cell)) for cell in row[1:]))
    others = [arm.name for arm in comparison.arms if arm.name not in pair]
    more = f" Further arms ({', '.join(others)}): below, and side by side in report.md." if others else ""
    said = _aggregate_sentence(comparison)
    return [table, Text(NOTE + more, style="dim"), *([Text(said)] if said else [])]


def _table(title: str | None = None) -> Table:
    """An empty one; brackets in its title are no markup."""
    name = None if title is None else Text(title, style="table.title")
    return Table(title=name, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _two_lines(cell: str) -> str:
    """A number, and its interval under it."""
    value, bracket, interval = cell.partition(" [")
    return f"{value}\n{interval.rstrip(']').replace(', ', ' to ')}" if bracket else cell


def _sentences(comparison: Comparison) -> list[str]:
    """All but the one that stands under the overview."""
    return [sentence for sentence in comparison.sentences if sentence != _aggregate_sentence(comparison)]


def _aggregate_sentence(comparison: Comparison) -> str | None:
    analysis = comparison.analysis
    return aggregate_sentence(analysis.aggregate, analysis.pair) if analysis.aggregate is not None else None


def condition_table(condition: ConditionResult) -> Table:
    """One row per arm, over its seeds."""
    table = _table(condition.environment.label)
    table.add_column("arm", overflow="fold", min_width=10)
    for column in RIGHT:
        table.add_column(column, justify="right", no_wrap=True)
    places = _places(condition)
    for arm in condition.arms:
        table.add_row(Text(arm.name), *_cells(arm, places))
    return table


def seed_table(condition: ConditionResult) -> Table:
    """Every seed's numbers, an arm's score, final and best below each other."""
    seeds = sorted({seed.seed for arm in condition.arms for seed in arm.seeds})
    table = _table()
    table.add_column("seed", overflow="fold")
    table.add_column("")
    for seed in seeds:
        table.add_column(str(seed), justify="right", no_wrap=True)
    for arm in condition.arms:
        found = {seed.seed: seed for seed in arm.seeds}
        for number in ("score", "final", "best"):
            cells = (_whole(getattr(found[seed], number)) if seed in found else "–" for seed in seeds)
            table.add_row(Text(arm.name if number == "score" else ""), number, *cells)
    return table


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:.{0 if abs(value) >= 10 else 2}f}"


def _places(condition: ConditionResult) -> int:
    """Decimals that show the highest score to three digits, at least one."""
    scores = [abs(seed.score) for arm in condition.arms for seed in arm.seeds]
    return max(1, decimals(max(scores, default=0.0)))


def _cells(arm: ArmResult, places: int) -> list[str]:
    summary = arm.summary
    return [
        "–" if arm.params is None else f"{arm.params:,}",
        str(len(arm.seeds)),
        _number(arm.score, places),
        _interval(summary.mean if summary and len(arm.seeds) >= MIN_SEEDS else None, places),
        _number(arm.greedy, places),
        _number(arm.final, places),
        _number(arm.best, places),
    ]


def _interval(estimate: Estimate | None, places: int) -> str:
    interval = estimate.interval if estimate else None
    return "–" if interval is None else f"{interval.low:.{places}f} to {interval.high:.{places}f}"


def _number(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value:.{places}f}"
