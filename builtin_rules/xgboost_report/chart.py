"""Chart: where the lines and bars of a small picture lie, in the units of its drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 480
HEIGHT: Final = 260
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 46
COLOURS: Final = 8
TICKS: Final = 5

Number = float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its name, a colour's number, and the points of its pieces, as SVG has them."""

    name: str
    colour: int
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: left, top, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark at an axis: its place, and the number there."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: everything a template needs to draw it."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    bars: tuple[Bar, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


class _Axis:
    """From numbers to places between two ends of the drawing; a tight one ends with the values."""

    def __init__(
        self, values: Sequence[float], start: float, end: float, *, tight: bool = False
    ) -> None:
        low, high = min(values, default=0.0), max(values, default=1.0)
        if not high > low:
            low, high = low - max(0.5, abs(low) / 2), high + max(0.5, abs(high) / 2)
        step = _step(high - low)
        first, last = (low, high) if not step else _rounded(low, high, step)
        self.low, self.high = (low, high) if tight else (first, last)
        self._start, self._end = start, end
        count = round((last - first) / step) if step else 1
        self.ticks = tuple(
            Tick(round(self(value), 1), f"{value:.6g}")
            for value in (first + at * (last - first) / count for at in range(count + 1))
            if self.low <= value <= self.high
        )

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)


def _step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, about `TICKS` of which make `span`; 0 if none can."""
    if span < 1e-290:  # noqa: PLR2004 - powers of ten end there
        return 0.0
    rough = span / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= 0.999 * rough)


def _rounded(low: float, high: float, step: float) -> tuple[float, float]:
    """Return the multiples of `step` around a range."""
    ends = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return ends if ends[1] > ends[0] else (low, high)


def chart(
    title: str,
    labels: tuple[str, str],
    lines: Sequence[tuple[str, Sequence[float], Sequence[Number]]] = (),
    bars: tuple[Sequence[float], Sequence[Number]] = ((), ()),
    *,
    from_zero: bool = False,
    tight: bool = False,
) -> Chart:
    """Return a chart of lines and of the bars of a histogram.

    Parameters
    ----------
    labels
        What stands at the two axes.
    lines
        Name, x and y of each; a y that is None or not finite leaves a gap.
    bars
        Edges, one more than bars, and heights.
    from_zero
        Whether the vertical axis begins at 0.
    tight
        Whether the horizontal axis ends with the lines, not at a round number.
    """
    edges, heights = bars
    known = [one for _, _, ys in lines for one in ys if _is_number(one)]
    known += [one for one in heights if one is not None]
    across = [*edges, *(one for _, xs, _ in lines for one in xs)]
    x = _Axis(across, LEFT, WIDTH - RIGHT, tight=tight)
    y_values = [*known, 0.0] if from_zero or heights else known
    y = _Axis([one for one in y_values if one is not None], HEIGHT - BOTTOM, TOP)
    return Chart(
        title,
        *labels,
        tuple(
            Line(name, (at + bool(heights)) % COLOURS, tuple(_pieces(x, y, xs, ys)))
            for at, (name, xs, ys) in enumerate(lines)
        ),
        tuple(_bars(x, y, edges, heights)),
        x.ticks,
        y.ticks,
    )


def _is_number(value: Number) -> bool:
    return value is not None and math.isfinite(value)


def _pieces(x: _Axis, y: _Axis, xs: Sequence[float], ys: Sequence[Number]) -> list[str]:
    pieces: list[list[str]] = [[]]
    for across, up in zip(xs, ys, strict=True):
        if up is None or not math.isfinite(up):
            pieces.append([])
        else:
            pieces[-1].append(f"{x(across):.1f},{y(up):.1f}")
    # A point by itself is drawn as a short line.
    return [" ".join(one if len(one) > 1 else one * 2) for one in pieces if one]


def _bars(x: _Axis, y: _Axis, edges: Sequence[float], heights: Sequence[Number]) -> list[Bar]:
    found = []
    for left, right, height in zip(edges, edges[1:], heights, strict=False):
        if height is not None:
            top, bottom = sorted((y(height), y(0.0)))
            width = max(x(right) - x(left) - 1, 1)
            found.append(
                Bar(round(x(left), 1), round(top, 1), round(width, 1), round(bottom - top, 1))
            )
    return found
