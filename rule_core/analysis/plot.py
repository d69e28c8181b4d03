"""Plot: the coordinates of the lines, bars and ticks of an SVG chart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeGuard

from rule_core.analysis.axis import values_axis

COLOURS: Final = 8

Number = float | None


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line: its name, the number of its colour, and the SVG points of its pieces."""

    name: str
    colour: int
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlotBar:
    """A bar: left edge, top edge, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A tick of an axis: its coordinate and its label."""

    position: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart, ready for a template to draw.

    Attributes
    ----------
    WIDTH, HEIGHT
        Size of the drawing.
    LEFT, RIGHT, TOP, BOTTOM
        Width of its margins.
    """

    WIDTH: ClassVar = 480
    HEIGHT: ClassVar = 260
    LEFT: ClassVar = 62
    RIGHT: ClassVar = 12
    TOP: ClassVar = 12
    BOTTOM: ClassVar = 46

    title: str
    x_label: str
    y_label: str
    lines: tuple[PlotLine, ...]
    bars: tuple[PlotBar, ...]
    x_ticks: tuple[AxisTick, ...]
    y_ticks: tuple[AxisTick, ...]


class _Scale:
    """Maps numbers to coordinates between two ends of the drawing.

    A tight scale ends with the values, others at ticks.
    """

    def __init__(
        self, values: Sequence[float], start: float, end: float, *, tight: bool = False
    ) -> None:
        axis = values_axis(values, log=False)
        self.low, self.high = axis.low, axis.high
        if tight and len(set(values)) > 1:
            self.low, self.high = min(values), max(values)
        self._start, self._end = start, end
        self.ticks = tuple(
            AxisTick(round(self(value), 1), f"{value:.6g}")
            for value in axis.ticks
            if self.low <= value <= self.high
        )

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)


def plot(
    title: str,
    labels: tuple[str, str],
    lines: Sequence[tuple[str, Sequence[float], Sequence[Number]]] = (),
    bars: tuple[Sequence[float], Sequence[Number]] = ((), ()),
    *,
    from_zero: bool = False,
    tight: bool = False,
) -> Plot:
    """Return a chart of lines and histogram bars.

    Parameters
    ----------
    labels
        Labels of the two axes.
    lines
        Name, x and y of each; a y that is None or not finite leaves a gap.
    bars
        Edges, one more than there are bars, and heights.
    from_zero
        Whether the vertical axis includes 0.
    tight
        Whether the horizontal axis ends with the data instead of at a tick.
    """
    edges, heights = bars
    up = [value for _, _, ys in lines for value in ys if _is_number(value)]
    up += [value for value in heights if value is not None]
    up += [0.0] if from_zero or heights else []
    across = [*edges, *(value for _, xs, _ in lines for value in xs)]
    x = _Scale(across, Plot.LEFT, Plot.WIDTH - Plot.RIGHT, tight=tight)
    y = _Scale(up, Plot.HEIGHT - Plot.BOTTOM, Plot.TOP)
    return Plot(
        title,
        *labels,
        tuple(
            PlotLine(name, (index + bool(heights)) % COLOURS, tuple(_pieces(x, y, xs, ys)))
            for index, (name, xs, ys) in enumerate(lines)
        ),
        tuple(_bars(x, y, edges, heights)),
        x.ticks,
        y.ticks,
    )


def _is_number(value: Number) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _pieces(x: _Scale, y: _Scale, xs: Sequence[float], ys: Sequence[Number]) -> list[str]:
    pieces: list[list[str]] = [[]]
    for across, up in zip(xs, ys, strict=True):
        if _is_number(up):
            pieces[-1].append(f"{x(across):.1f},{y(up):.1f}")
        else:
            pieces.append([])
    # A single point is repeated, so that it is drawn as a dot.
    return [" ".join(points if len(points) > 1 else points * 2) for points in pieces if points]


def _bars(x: _Scale, y: _Scale, edges: Sequence[float], heights: Sequence[Number]) -> list[PlotBar]:
    drawn = []
    for low, high, height in zip(edges, edges[1:], heights, strict=False):
        if height is not None:
            top, bottom = sorted((y(height), y(0.0)))
            width = max(x(high) - x(low) - 1, 1)
            drawn.append(
                PlotBar(round(x(low), 1), round(top, 1), round(width, 1), round(bottom - top, 1))
            )
    return drawn
