"""PanelChart: a chart independent of its drawing: panels of lines, bars, spans or rows."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rule_core.analysis.thinning import thinned

POINTS: Final = 200_000  # of all lines of a chart; more only make the page slow
FEWEST_POINTS: Final = 1000  # per line, about the width of a screen
MOST_PANELS: Final = 100
_NAME_HEIGHT: Final = 13  # pixels per row name
_AXIS_HEIGHT: Final = 80  # pixels for title and labels
_ROW_NAME: Final = 40  # characters
_LINE: Final = 105  # characters of a title
LONGEST_NAME: Final = 100  # characters
HEIGHT: Final = 250  # pixels
BINS: Final = 50
US_PER_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class LineMark:
    """A line through points, ascending in `x`.

    Attributes
    ----------
    x, y
        Shape ``(n,)``; NaN in `y` breaks the line.
    index
        Number of each point for readers; shape ``(n,)``.
    notes
        Further columns for the tooltip, each of shape ``(n,)``, by name.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    index: NDArray[np.int64]
    notes: dict[str, list[str]] = field(default_factory=dict)

    def thin(self, most: int) -> "LineMark":
        """Reduce the line to about `most` points: the lowest and highest of each section."""
        count = len(self.x)
        if count <= most:
            return self
        width = -(-count // max(most // 2, 1))
        chosen = thinned(self.y, np.arange(0, count, width))
        notes = {name: [column[index] for index in chosen] for name, column in self.notes.items()}
        return LineMark(self.x[chosen], self.y[chosen], self.index[chosen], notes)


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram.

    Attributes
    ----------
    edges
        Shape ``(n + 1,)``.
    counts
        Shape ``(n,)``.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.float64], low: float, high: float) -> Self:
        """Return the histogram of values in `BINS` bars of equal width from `low` to `high`."""
        if high <= low:
            margin = abs(low) / BINS or 1.0
            low, high = low - margin, high + margin
        counts, edges = np.histogram(values, bins=BINS, range=(low, high))
        return cls(edges, counts)


@dataclass(frozen=True, slots=True)
class Spans:
    """Time spans, in rows.

    Attributes
    ----------
    start, end
        Shape ``(n,)``.
    row
        Index into `rows`; shape ``(n,)``.
    names
        Names of the spans; ``n`` of them.
    rows
        Names of the rows.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    row: NDArray[np.int64]
    names: list[str]
    rows: list[str]


@dataclass(frozen=True, slots=True)
class Rows:
    """Values over time as colours, one row per series, in columns of equal width.

    Attributes
    ----------
    start, end
        Start of the first column and end of the last one.
    values
        Values from 0 to 100, NaN where missing; shape ``(rows, columns)``.
    rows
        Names of the rows, from the bottom.
    """

    start: float
    end: float
    values: NDArray[np.float64]
    rows: list[str]


Mark = LineMark | Bars | Spans | Rows


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a chart.

    Attributes
    ----------
    title, x_label, y_label
        Title, and labels with units. They may contain untrusted names.
    mark
        The data to draw.
    in_time
        Whether `x` is in milliseconds since the epoch, and labelled by date and time.
    x_range, y_range
        Initial ranges; None shows everything.
    height
        Height in pixels.
    """

    title: str
    x_label: str
    y_label: str
    mark: Mark
    in_time: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    height: int = HEIGHT

    def row_labels(self, rows: Sequence[str]) -> dict[int, str]:
        """Return shortened names of as many rows as fit, by row number."""
        stride = max(1, -(-len(rows) * _NAME_HEIGHT // max(self.height - _AXIS_HEIGHT, 1)))
        return {row: printable(rows[row], _ROW_NAME) for row in range(0, len(rows), stride)}


@dataclass(frozen=True, slots=True)
class PanelChart:
    """Panels under one title.

    Attributes
    ----------
    columns
        Number of panels side by side.
    linked
        Whether all panels share their range of `x`, and a range can be selected.
    note
        A remark that the panels do not show.
    """

    title: str
    panels: tuple[Panel, ...]
    columns: int = 1
    linked: bool = False
    note: str = ""

    def row_heights(self) -> list[int]:
        """Return the height of each row of panels in pixels."""
        heights = [panel.height for panel in self.panels]
        starts = range(0, len(heights), self.columns)
        return [max(heights[start : start + self.columns]) for start in starts]

    def wrap(self, text: str) -> str:
        """Wrap a title to the width of a panel."""
        return "\n".join(textwrap.wrap(text, _LINE // self.columns))

    def limit(self) -> "PanelChart":
        """Return the chart with at most `MOST_PANELS` panels and about `POINTS` points."""
        first = self.panels[:MOST_PANELS]
        most = max(POINTS // max(len(first), 1), FEWEST_POINTS)
        panels = tuple(
            replace(panel, mark=panel.mark.thin(most))
            if isinstance(panel.mark, LineMark)
            else panel
            for panel in first
        )
        note = self.note
        if len(first) < len(self.panels):
            omitted = len(self.panels) - len(first)
            note = f"{note} {omitted} more panels are not shown; select fewer.".strip()
        return replace(self, panels=panels, note=note)


def printable(text: str, most: int = LONGEST_NAME) -> str:
    r"""Escape an untrusted name for display.

    Unprintable characters and those that change the direction of writing are escaped, and the name
    is cut off after `most` characters.

    >>> printable("a\x1b[0m")
    'a\\x1b[0m'
    """
    plain = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text[:most]
    )
    return plain if len(text) <= most else f"{plain}..."
