"""Chart: what a picture shows, apart from what draws it: panels of lines, bars, spans or rows."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

import numpy as np
from numpy.typing import NDArray

POINTS: Final = 200_000  # of all lines of a chart: more make a page slow and show nothing else
FEWEST_POINTS: Final = 1000  # of a line: about what a screen has room for
MOST_PANELS: Final = 100
_NAME_HEIGHT: Final = 13  # pixels, of a row's name
_AXIS_HEIGHT: Final = 80  # pixels, of title and labels
_ROW_NAME: Final = 40  # characters
_LINE: Final = 105  # characters of a title
LONGEST_NAME: Final = 100  # characters
HEIGHT: Final = 250  # pixels


@dataclass(frozen=True, slots=True)
class Line:
    """Points that are joined, ascending in `x`.

    Attributes
    ----------
    x, y
        Shape ``(n,)``; a line is broken where `y` is NaN.
    index
        What readers call each point by; shape ``(n,)``.
    notes
        More columns of what is told of a point, each of shape ``(n,)``, by their names.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    index: NDArray[np.int64]
    notes: dict[str, list[str]] = field(default_factory=dict)

    def thinned(self, most: int) -> "Line":
        """Return at most about `most` points: of each stretch the lowest and the highest."""
        count = len(self.x)
        if count <= most:
            return self
        width = -(-count // max(most // 2, 1))
        stretches = np.full((-(-count // width), width), np.nan)
        stretches.flat[:count] = self.y
        seen = np.isfinite(stretches)
        lows = np.where(seen, stretches, np.inf).argmin(axis=1)
        highs = np.where(seen, stretches, -np.inf).argmax(axis=1)
        starts = width * np.arange(len(stretches))
        chosen = np.unique(np.concatenate([[0, count - 1], starts + lows, starts + highs]))
        notes = {name: [column[at] for at in chosen] for name, column in self.notes.items()}
        return Line(self.x[chosen], self.y[chosen], self.index[chosen], notes)


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


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of time, in rows.

    Attributes
    ----------
    start, end
        Shape ``(n,)``.
    row
        Index into `rows`; shape ``(n,)``.
    names
        What each is; ``n`` of them.
    rows
        What the rows are.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    row: NDArray[np.int64]
    names: list[str]
    rows: list[str]


@dataclass(frozen=True, slots=True)
class Rows:
    """Values over time as colours, a row for each series, in columns of the same width.

    Attributes
    ----------
    start, end
        What the first column begins and the last one ends at.
    values
        From 0 to 100; NaN where there is none; shape ``(rows, columns)``.
    rows
        What the rows are, from the bottom.
    """

    start: float
    end: float
    values: NDArray[np.float64]
    rows: list[str]


Mark = Line | Bars | Spans | Rows


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a chart.

    Attributes
    ----------
    title, x_label, y_label
        Labels name the unit. They may hold names that a stranger chose.
    mark
        What is drawn.
    in_time
        Whether `x` is in milliseconds since the epoch: then it is labelled by date and time.
    x_range, y_range
        What is seen at first; None is all.
    height
        Pixels.
    """

    title: str
    x_label: str
    y_label: str
    mark: Mark
    in_time: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    height: int = HEIGHT

    def named(self, rows: Sequence[str]) -> dict[int, str]:
        """Return the names of as many rows as there is room for, short ones, by their numbers."""
        every = max(1, -(-len(rows) * _NAME_HEIGHT // max(self.height - _AXIS_HEIGHT, 1)))
        return {at: shown(rows[at], _ROW_NAME) for at in range(0, len(rows), every)}


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels under one title.

    Attributes
    ----------
    columns
        How many panels stand side by side.
    linked
        Whether all panels show the same stretch of `x`, and a stretch may be selected.
    note
        What a reader must know that the panels do not show.
    """

    title: str
    panels: tuple[Panel, ...]
    columns: int = 1
    linked: bool = False
    note: str = ""

    def wrapped(self, text: str) -> str:
        """Return a title in lines that fit the width of a panel."""
        return "\n".join(textwrap.wrap(text, _LINE // self.columns))

    def bounded(self) -> "Chart":
        """Return the chart with no more panels and points than can be looked at."""
        shown = self.panels[:MOST_PANELS]
        most = max(POINTS // max(len(shown), 1), FEWEST_POINTS)
        panels = tuple(replace(one, mark=_thinned(one.mark, most)) for one in shown)
        note = self.note
        if len(shown) < len(self.panels):
            left_out = len(self.panels) - len(shown)
            note = f"{note} {left_out} more panels are not shown; select fewer.".strip()
        return replace(self, panels=panels, note=note)


def _thinned(mark: Mark, most: int) -> Mark:
    match mark:
        case Line():
            return mark.thinned(most)
        case Bars() | Spans() | Rows():
            return mark
        case _:
            assert_never(mark)


def shown(text: str, most: int = LONGEST_NAME) -> str:
    r"""Return a name that a stranger chose so that it can be shown.

    What cannot be printed, or turns the direction of writing, is written out; what is too long is
    cut off after `most` characters.

    >>> shown("a\x1b[0m")
    'a\\x1b[0m'
    """
    plain = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text[:most]
    )
    return plain if len(text) <= most else f"{plain}..."
