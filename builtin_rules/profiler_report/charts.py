"""The charts of the profiler report: devices and steps over time, and histograms."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import numpy as np

from builtin_rules.profiler.samples import CPU, GPU, GPU_MEMORY, IO_WAIT, MEMORY_USED, Floats
from builtin_rules.profiler_report.gathered import Gathered
from builtin_rules.profiler_report.usage_history import Band, Track
from builtin_rules.profiler_report.wording import SECOND_US, counted, step_name
from builtin_rules.xgboost_report.chart import Chart, chart

NODES_OPEN: Final = 2  # those of other nodes are folded away
STEP_CHARTS: Final = 24
WORKLOADS: Final = 8  # lines of one chart
_GAP: Final = 4.0  # so many times the usual distance apart, points are not joined
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
class Ribbon:
    """A line with what lies around it: its name and colour, points of its pieces and outlines."""

    name: str
    colour: int
    lines: tuple[str, ...]
    areas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart whose lines are ribbons; `chart` has the axes, and bars if it has any."""

    chart: Chart
    ribbons: tuple[Ribbon, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeCharts:
    """The charts of one node, shown at once or folded away."""

    node: str
    pictures: tuple[Picture, ...]
    is_open: bool


def usage(gathered: Gathered) -> Iterator[NodeCharts]:
    """Yield by node charts of its processors and memory, and of each GPU."""
    tracks = [] if gathered.usage is None else list(gathered.usage.bands())
    for number, (node, own) in enumerate(groupby(tracks, lambda one: one[0].node)):
        by_title: dict[str, list[tuple[Track, Band]]] = {}
        for track, band in own:
            title = track.device if track.kind in (GPU, GPU_MEMORY) else "processors and memory"
            by_title.setdefault(title, []).append((track, band))
        pictures = [_of_device(gathered, node, *one) for one in by_title.items()]
        yield NodeCharts(node, tuple(pictures), number < NODES_OPEN)


def _of_device(
    gathered: Gathered, node: str, title: str, bands: Sequence[tuple[Track, Band]]
) -> Picture:
    ranges = {
        _NAMES[track.kind]: (_COLOURS[track.kind], (one.time_us, one.low, one.middle, one.high))
        for track, one in bands
    }
    return ribbons(gathered, f"{title} of {node}", "percent", ranges, upto=100.0)


def steps(gathered: Gathered) -> Iterator[Picture]:
    """Yield a chart of the durations of each kind of step."""
    kinds = [] if gathered.steps is None else list(gathered.steps.bands())
    for kind, one in kinds[:STEP_CHARTS]:
        name = step_name(kind.name)
        title = f"{counted(one.count, 'step')} of {name}, {kind.node}"
        ranges = {"mean": (0, (one.time_us, one.low, one.mean, one.high))}
        yield ribbons(gathered, title, "seconds a step", ranges, upto=0.0)


def ribbons(
    gathered: Gathered,
    title: str,
    y_label: str,
    ranges: Mapping[str, tuple[int, Ranges]],
    *,
    upto: float,
) -> Picture:
    """Return a chart over the time of the job.

    Parameters
    ----------
    ranges
        By name: colour, and time with lowest, middle and highest value.
    upto
        The vertical axis reaches from 0 at least so far.
    """
    seconds = (gathered.end_us - gathered.begin_us) / SECOND_US
    scale, unit = next((one, name) for least, one, name in _UNITS if seconds >= least)
    # Not drawn: it stretches the axes.
    lines: list[tuple[str, Sequence[float], Sequence[float | None]]] = [
        ("", [0.0, seconds / scale], [0.0, upto])
    ]
    for name, (_, (time_us, *levels)) in ranges.items():
        times = (time_us - gathered.begin_us) / SECOND_US / scale
        lines += [(name, *_with_gaps(times, level)) for level in levels]
    drawn = chart(title, (f"{unit} since the start", y_label), lines, tight=True)
    found = []
    for at, (name, (colour, _)) in enumerate(ranges.items()):
        low, middle, high = (drawn.lines[1 + 3 * at + level].pieces for level in range(3))
        areas = (f"{up} {_backwards(down)}" for up, down in zip(high, low, strict=True))
        found.append(Ribbon(name, colour, middle, tuple(areas)))
    return Picture(replace(drawn, lines=()), tuple(found))


def _with_gaps(times: Floats, values: Floats) -> tuple[list[float], list[float]]:
    """Return points with one that has no value where there is a gap."""
    distances = np.diff(times)
    usual = float(np.median(distances)) if len(distances) else 0.0
    gaps = np.flatnonzero(distances > _GAP * usual) + 1 if usual else np.empty(0, np.int64)
    return np.insert(times, gaps, times[gaps]).tolist(), np.insert(values, gaps, np.nan).tolist()


def _backwards(points: str) -> str:
    return " ".join(reversed(points.split()))


def histogram(
    title: str, labels: tuple[str, str], edges: Sequence[float], shares: Sequence[float]
) -> Picture | None:
    """Return a chart of a histogram in percent; None without values."""
    if not shares:
        return None
    return Picture(chart(title, labels, (), (edges, [100 * one for one in shares])))


def workloads(node: str, counts: Mapping[str, Sequence[int]]) -> Picture | None:
    """Return a chart of how often each GPU of a node was used how much; None without GPUs."""
    lines = []
    for name, numbers in [*counts.items()][:WORKLOADS]:
        total = sum(numbers) or 1
        percent: list[Any] = [100 * one / total for one in numbers]
        width = 100 / len(numbers)
        lines.append((name, [width * (at + 0.5) for at in range(len(numbers))], percent))
    if not lines:
        return None
    labels = ("use of the GPU (percent)", "percent of the time")
    drawn = chart(f"Workloads of {node}", labels, lines, from_zero=True)
    found = tuple(Ribbon(one.name, one.colour, one.pieces, ()) for one in drawn.lines)
    return Picture(replace(drawn, lines=()), found)
