"""StepHistory: the durations of steps over the whole job, in bounded memory.

Time is divided as in `UsageHistory`. The minimum, maximum and mean of each interval are exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from builtin_rules.profiler.statistics.parameters import SECOND_US
from builtin_rules.profiler.statistics.samples import Floats
from builtin_rules.reports.profiler.usage_history import BUCKETS, FIRST_US, merge_buckets
from smdebug.rules.extensions import is_step

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

KINDS: Final = 200  # nodes times modes; further ones are left out


class StepKind(NamedTuple):
    """The steps of one node and mode, drawn as one line."""

    node: str
    name: str


@dataclass(frozen=True, slots=True)
class StepBand:
    """Step durations over time, in seconds.

    Attributes
    ----------
    time_us
        The middle of each interval in which steps ended; shape ``(n,)``.
    low, mean, high
        Minimum, mean and maximum of each interval; shape ``(n,)``.
    count
        The total number of steps.
    """

    time_us: Floats
    low: Floats
    mean: Floats
    high: Floats
    count: int


@dataclass(slots=True)
class _Buckets:
    low: Floats = field(default_factory=lambda: np.full(BUCKETS, np.inf))
    high: Floats = field(default_factory=lambda: np.full(BUCKETS, -np.inf))
    total: Floats = field(default_factory=lambda: np.zeros(BUCKETS))
    count: Floats = field(default_factory=lambda: np.zeros(BUCKETS))


class StepHistory:
    """Step durations of all nodes over time.

    Parameters
    ----------
    begin_us
        Start of the job, in epoch microseconds.

    Attributes
    ----------
    first_us, last_us
        Start of the first step and end of the last one; None without steps.
    """

    def __init__(self, begin_us: int) -> None:
        self._begin = begin_us
        self._length = FIRST_US
        self._kinds: dict[StepKind, _Buckets] = {}
        self.first_us: int | None = None
        self.last_us: int | None = None

    def add(self, events: Sequence["TraceEvent"]) -> None:
        """Add the events of a window."""
        for event in events:
            if is_step(event):
                self._add(event)

    def _add(self, event: "TraceEvent") -> None:
        start, end = int(event.start_time), int(event.end_time)
        self.first_us = start if self.first_us is None else min(self.first_us, start)
        self.last_us = end if self.last_us is None else max(self.last_us, end)
        kind = StepKind(event.node_id or "", event.event_name)
        if kind not in self._kinds and len(self._kinds) >= KINDS:
            return
        buckets = self._kinds.setdefault(kind, _Buckets())
        self._stretch(end)
        index, seconds = max(0, end - self._begin) // self._length, event.duration / SECOND_US
        buckets.low[index] = min(buckets.low[index], seconds)
        buckets.high[index] = max(buckets.high[index], seconds)
        buckets.total[index] += seconds
        buckets.count[index] += 1

    def _stretch(self, time_us: int) -> None:
        while time_us - self._begin >= BUCKETS * self._length:
            self._length *= 2
            for buckets in self._kinds.values():
                merge_buckets(buckets.low, np.minimum, np.inf)
                merge_buckets(buckets.high, np.maximum, -np.inf)
                merge_buckets(buckets.total, np.add, 0.0)
                merge_buckets(buckets.count, np.add, 0.0)

    def bands(self) -> Iterator[tuple[StepKind, StepBand]]:
        """Yield the durations of each kind of step, ordered by node."""
        for kind, buckets in sorted(self._kinds.items()):
            filled = np.flatnonzero(buckets.count)
            time_us = self._begin + (filled.astype(np.float64) + 0.5) * self._length
            mean = buckets.total[filled] / buckets.count[filled]
            count = int(buckets.count.sum())
            yield kind, StepBand(time_us, buckets.low[filled], mean, buckets.high[filled], count)
