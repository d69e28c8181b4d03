"""The charts of the profiler report: devices and steps over time, and histograms."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import numpy as np

from builtin_rules.profiler.statistics.parameters import SECOND_US
from builtin_rules.profiler.statistics.samples import (
    CPU,
    GPU,
    GPU_MEMORY,
    IO_WAIT,
    MEMORY_USED,
    Floats,
)
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.wording import counted, step_name
from smdebug.rules.extensions import Plot, plot

NODES_OPEN: Final = 2  # charts of other nodes are collapsed
STEP_CHARTS: Final = 24
WORKLOADS: Final = 8  # lines of one chart
_GAP: Final = 4.0  # times the median distance; points further apart are not connected
_COLOURS: Final = {CPU: 0, IO_WAIT: 1, MEMORY_USED: 2, GPU: 0, GPU_MEMORY: 1}
_NAMES: Final = {
    CPU: "cores",
    IO_WAIT: "I/O wait of the cores",
    MEMORY_USED: "memory",
    GPU: "GPU",
    GPU_MEMORY: "GPU memory",
}
_UNITS: Final = ((2 * 3600, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))
Ranges = tuple[Floats, Floats, Floats, Floats]  # time in epoch us, lowest, middle, highest


@dataclass(frozen=True, slots=True)
class RangeLine:
    """A line with its range: name, colour, and SVG points of lines and areas."""

    name: str
    colour: int
    lines: tuple[str, ...]
    areas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RangePlot:
    """A chart of lines with ranges; `plot` holds the axes and bars."""

    plot: Plot
    lines: tuple[RangeLine, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeCharts:
    """The charts of one node, expanded or collapsed."""

    node: str
    plots: tuple[RangePlot, ...]
    is_open: bool


def usage(data: ReportData) -> Iterator[NodeCharts]:
    """Yield the charts of each node: its processors and memory, and each GPU."""
    tracks = [] if data.usage is None else list(data.usage.bands())
    for number, (node, node_tracks) in enumerate(groupby(tracks, lambda item: item[0].node)):
        by_title: dict[str, dict[str, tuple[int, Ranges]]] = {}
        for (_, kind, device), band in node_tracks:
            title = device if kind in (GPU, GPU_MEMORY) else "processors and memory"
            levels = band.time_us, band.low, band.middle, band.high
            by_title.setdefault(title, {})[_NAMES[kind]] = _COLOURS[kind], levels
        plots = (
            ribbons(data, f"{title} of {node}", "percent", ranges, upto=100.0)
            for title, ranges in by_title.items()
        )
        yield NodeCharts(node, tuple(plots), number < NODES_OPEN)


def steps(data: ReportData) -> Iterator[RangePlot]:
    """Yield a chart of the durations of each kind of step."""
    kinds = [] if data.steps is None else list(data.steps.bands())
    for kind, band in kinds[:STEP_CHARTS]:
        name = step_name(kind.name)
        title = f"{counted(band.count, 'step')} of {name}, {kind.node}"
        ranges = {"mean": (0, (band.time_us, band.low, band.mean, band.high))}
        yield ribbons(data, title, "seconds a step", ranges, upto=0.0)


def ribbons(
    data: ReportData,
    title: str,
    y_label: str,
    ranges: Mapping[str, tuple[int, Ranges]],
    *,
    upto: float,
) -> RangePlot:
    """Return a chart over the duration of the job.

    Parameters
    ----------
    ranges
        By name: colour, and times with lowest, middle and highest values.
    upto
        The vertical axis spans at least 0 to this value.
    """
    seconds = (data.end_us - data.begin_us) / SECOND_US
    scale, unit = next((factor, name) for least, factor, name in _UNITS if seconds >= least)
    # An invisible line that sets the range of the axes.
    lines: list[tuple[str, Sequence[float], Sequence[float | None]]] = [
        ("", [0.0, seconds / scale], [0.0, upto])
    ]
    for name, (_, (time_us, *levels)) in ranges.items():
        times = (time_us - data.begin_us) / SECOND_US / scale
        lines += [(name, *_with_gaps(times, level)) for level in levels]
    drawn = plot(title, (f"{unit} since the start", y_label), lines, tight=True)
    lines_drawn = []
    for index, (name, (colour, _)) in enumerate(ranges.items()):
        low, middle, high = (drawn.lines[1 + 3 * index + level].pieces for level in range(3))
        areas = (
            f"{up} {' '.join(reversed(down.split()))}" for up, down in zip(high, low, strict=True)
        )
        lines_drawn.append(RangeLine(name, colour, middle, tuple(areas)))
    return RangePlot(replace(drawn, lines=()), tuple(lines_drawn))


def _with_gaps(times: Floats, values: Floats) -> tuple[list[float], list[float]]:
    """Return the points with a NaN value inserted in each gap."""
    distances = np.diff(times)
    usual = float(np.median(distances)) if len(distances) else 0.0
    gaps = np.flatnonzero(distances > _GAP * usual) + 1 if usual else np.empty(0, np.int64)
    return np.insert(times, gaps, times[gaps]).tolist(), np.insert(values, gaps, np.nan).tolist()


def histogram(
    title: str, labels: tuple[str, str], edges: Sequence[float], shares: Sequence[float]
) -> RangePlot | None:
    """Return the chart of a histogram in percent, or None without values."""
    if not shares:
        return None
    return RangePlot(plot(title, labels, (), (edges, [100 * share for share in shares])))


def workloads(node: str, counts: Mapping[str, Sequence[int]]) -> RangePlot | None:
    """Return the distribution of the use of each GPU of a node, or None without GPUs."""
    lines = []
    for name, numbers in [*counts.items()][:WORKLOADS]:
        total = sum(numbers) or 1
        percent: list[Any] = [100 * number / total for number in numbers]
        width = 100 / len(numbers)
        lines.append((name, [width * (index + 0.5) for index in range(len(numbers))], percent))
    if not lines:
        return None
    labels = ("use of the GPU (percent)", "percent of the time")
    drawn = plot(f"Workloads of {node}", labels, lines, from_zero=True)
    range_lines = tuple(RangeLine(line.name, line.colour, line.pieces, ()) for line in drawn.lines)
    return RangePlot(replace(drawn, lines=()), range_lines)
