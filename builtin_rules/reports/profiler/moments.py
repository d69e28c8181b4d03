"""The moments of findings: where charts mark them, and how to see them in a trace."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from builtin_rules.profiler.statistics.parameters import SECOND_US
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.sub_rules import FindingSummary
from builtin_rules.reports.profiler.wording import counted, place
from smdebug.rules.extensions import Plot

TRACES: Final = 4  # of a finding
_NARROWEST: Final = 2.0  # units of a chart


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace of torch.profiler: its path, and its address if it is on this machine."""

    path: str
    address: str


@dataclass(frozen=True, slots=True)
class FindingMoment:
    """When a finding was first met.

    Attributes
    ----------
    anchor
        The id of an element of the page; as its target, all charts over time mark the moment.
    node
        Whose charts the anchor is at; "" if there is none.
    where
        The device or node.
    text
        The time, and how often the finding was met at other times.
    x, width
        The band that charts mark, in units of a chart.
    command
        Makes a trace of this time for Perfetto.
    traces
        The traces of torch.profiler from this time.
    """

    anchor: str
    node: str
    where: str
    text: str
    x: float
    width: float
    command: str
    traces: Sequence[Trace]


def by_node(moments: Iterable[FindingMoment], nodes: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the anchors by node; those of other nodes are below ""."""
    anchors: dict[str, list[str]] = {}
    for moment in moments:
        node = moment.node if moment.node in nodes else ""
        anchors.setdefault(node, []).append(moment.anchor)
    return anchors


def moment_of(data: ReportData, anchor: str, summary: FindingSummary) -> FindingMoment | None:
    """Return when a finding was first met; None if it cannot be told."""
    start_us, end_us = summary.first_us
    try:
        start, end = (
            datetime.fromtimestamp(seconds, UTC)
            for seconds in (start_us // SECOND_US, -(-end_us // SECOND_US))
        )
    except (ValueError, OverflowError, OSError):
        return None
    later = summary.windows - 1
    more = f", and in {counted(later, 'later window')}" if later else ""
    x, width = _band(data, start_us, end_us)
    return FindingMoment(
        anchor,
        summary.worker or "",
        place(summary.tensor, summary.worker),
        f"{start:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC{more}",
        x,
        width,
        f"rule-runner profile timeline {shlex.quote(data.path)} -o trace.json "
        f"--start {start:%Y-%m-%dT%H:%M:%SZ} --end {end:%Y-%m-%dT%H:%M:%SZ}",
        [_trace(data.path, key) for key in data.traces_between(start_us, end_us)[:TRACES]],
    )


def _band(data: ReportData, start_us: int, end_us: int) -> tuple[float, float]:
    """Return the left edge and the width of a time in charts over the duration of the job."""
    across = (Plot.WIDTH - Plot.LEFT - Plot.RIGHT) / max(1, data.end_us - data.begin_us)
    left, right = (
        Plot.LEFT + min(max(time_us - data.begin_us, 0), data.end_us - data.begin_us) * across
        for time_us in (start_us, end_us)
    )
    return round(left, 1), round(max(right - left, _NARROWEST), 1)


def _trace(path: str, key: str) -> Trace:
    local = Path(path, key)
    is_file = local.is_absolute() and local.is_file()
    return Trace(f"{path.rstrip('/')}/{key}", local.as_uri() if is_file else "")
