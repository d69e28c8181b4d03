"""StepHistory: how long steps took over the whole job, and when the first began, in little memory.

Time is divided as in `UsageHistory`; smallest, largest and mean duration of a part are exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from builtin_rules.profiler.samples import Floats
from builtin_rules.profiler_report.usage_history import BUCKETS, FIRST_US
from smdebug.profiler.analysis.rules.utils import is_step

if TYPE_CHECKING:
    from smdebug.profiler.trace_event import TraceEvent

KINDS: Final = 200  # of node and mode: further ones are left out
SECOND_US: Final = 1_000_000


class StepKind(NamedTuple):
    """Steps that are drawn as one line: of one node and mode."""

    node: str
    name: str


@dataclass(frozen=True, slots=True)
class StepBand:
    """Durations of steps over time, in seconds.

    Attributes
    ----------
    time_us
        The middle of each part of time in which steps ended; shape ``(n,)``.
    low, mean, high
        Of the steps that ended in it; shape ``(n,)``.
    count
        How many steps there were in all.
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
    """The steps of all nodes over time.

    Parameters
    ----------
    begin_us
        When the job begins, in epoch microseconds.

    Attributes
    ----------
    first_us, last_us
        When the first step began and the last one ended; None without steps.
    """

    def __init__(self, begin_us: int) -> None:
        self._begin = begin_us
        self._length = FIRST_US
        self._kinds: dict[StepKind, _Buckets] = {}
        self.first_us: int | None = None
        self.last_us: int | None = None

    def add(self, events: Sequence["TraceEvent"]) -> None:
        """Take in the events of a window."""
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
        known = self._kinds.setdefault(kind, _Buckets())
        self._stretch(end)
        at, seconds = max(0, end - self._begin) // self._length, event.duration / SECOND_US
        known.low[at] = min(known.low[at], seconds)
        known.high[at] = max(known.high[at], seconds)
        known.total[at] += seconds
        known.count[at] += 1

    def _stretch(self, time_us: int) -> None:
        while time_us - self._begin >= BUCKETS * self._length:
            self._length *= 2
            for one in self._kinds.values():
                _halve(one.low, one.low.reshape(-1, 2).min(axis=1), np.inf)
                _halve(one.high, one.high.reshape(-1, 2).max(axis=1), -np.inf)
                _halve(one.total, one.total.reshape(-1, 2).sum(axis=1), 0.0)
                _halve(one.count, one.count.reshape(-1, 2).sum(axis=1), 0.0)

    def bands(self) -> Iterator[tuple[StepKind, StepBand]]:
        """Yield what is known of each kind of step, by node."""
        for kind, one in sorted(self._kinds.items()):
            there = np.flatnonzero(one.count)
            time_us = self._begin + (there.astype(np.float64) + 0.5) * self._length
            mean = one.total[there] / one.count[there]
            count = int(one.count.sum())
            yield kind, StepBand(time_us, one.low[there], mean, one.high[there], count)


def _halve(whole: Floats, half: Floats, empty: float) -> None:
    whole[: BUCKETS // 2] = half
    whole[BUCKETS // 2 :] = empty
