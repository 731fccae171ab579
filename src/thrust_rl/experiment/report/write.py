"""Writing a report's files into a folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from thrust_rl.experiment.report.data import HasDict, read
from thrust_rl.experiment.report.markdown import report_markdown
from thrust_rl.experiment.report.page import report_html


def write_report(comparison: HasDict | Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `report.html`, `report.md` and the plots as PNG and SVG; the same comparison gives the same bytes.

    Args:
        comparison: a comparison, or the dict it becomes.
        folder: where to; created if needed. Files of the same names are replaced, each whole or not at all.

    Returns:
        What was written, the page first.

    Raises:
        ConfigError: the dict is no comparison, or one of another schema version.

    Example:
        write_report(compare("FlickeringCartPole-v0"), Path("runs/mine"))
    """
    from thrust_rl.experiment.plots import write_plots  # here, so that Matplotlib is loaded only where it draws

    result = read(comparison)
    folder.mkdir(parents=True, exist_ok=True)
    plots = write_plots(result, folder)
    page, summary = folder / "report.html", folder / "report.md"
    _write(page, report_html(result))
    _write(summary, report_markdown(result, pictures=[path.name for path in plots]))
    return [page, summary, *plots]


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    os.replace(temporary, path)
