"""The report on a comparison: a page, a text and plots, all from the plain dict that `result.json` holds."""

from thrust_rl.experiment.report.write import write_report

__all__ = ["write_report"]
