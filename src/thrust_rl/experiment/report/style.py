"""How an arm looks: a colour, a dash and a marker of its own, the same in every plot of a report."""

import dataclasses

from thrust_rl.experiment.report.svg import DASHES, MARKERS, element, marker

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # Okabe & Ito
LINES = ("-", "--", ":", "-.")  # Matplotlib's words for svg.DASHES
POINTS = ("o", "s", "^", "D", "X", "P", "v")  # and for svg.MARKERS


@dataclasses.dataclass(frozen=True)
class ArmStyle:
    """Every arm differs from its neighbours in each of the three, so that black and white is enough."""

    index: int

    @property
    def css(self) -> str:
        """Class that sets the colour."""
        return f"arm{self.index % len(COLOURS)}"

    @property
    def dash(self) -> str | None:
        """Of an SVG line."""
        return DASHES[self.index % len(DASHES)] or None

    @property
    def marker(self) -> str:
        """Name of an SVG marker."""
        return MARKERS[self.index % len(MARKERS)]

    @property
    def colour(self) -> str:
        """For Matplotlib."""
        return COLOURS[self.index % len(COLOURS)]

    @property
    def line(self) -> str:
        """For Matplotlib."""
        return LINES[self.index % len(LINES)]

    @property
    def point(self) -> str:
        """For Matplotlib."""
        return POINTS[self.index % len(POINTS)]

    def sample(self) -> str:
        """A short line with its marker, for a legend."""
        line = element("line", x1=1, x2=35, y1=7, y2=7, class_="mean", stroke_dasharray=self.dash)
        dot = marker(self.marker, (18, 7), 3.6, class_="dot")
        return element("svg", line, dot, viewBox="0 0 36 14", class_=f"sample {self.css}", aria_hidden="true")


def styles(names: tuple[str, ...]) -> dict[str, ArmStyle]:
    """One style per arm, in order."""
    return {name: ArmStyle(index) for index, name in enumerate(names)}
