"""MlflowRun: a run of MLflow; and MergedRun, one in several series, read in order of time."""

import time
from abc import ABC, abstractmethod
from collections import deque
from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar

from rule_core.clock import SystemClock
from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.format import FileSource

KIND: Final = "mlflow"
_Key = tuple[int, int]
_LATEST: Final = 1 << 53
_BEFORE_ALL: Final[_Key] = (-_LATEST, 0)
_AFTER_ALL: Final[_Key] = (_LATEST, 1 << 64)
QUIET_S: Final = 1.0
PAUSE_S: Final = 0.01


class MetricPoint(NamedTuple):
    """One number of a series.

    Attributes
    ----------
    time
        When it was logged, in milliseconds since the epoch.
    """

    time: int
    step: int
    value: float


def point_of(
    logged_at: str | bytes | int, step: str | bytes | int, value: str | bytes | float
) -> MetricPoint | None:
    """Return a number from texts or numbers; None if one is not a number, or out of range."""
    try:
        point = MetricPoint(int(logged_at), int(step), float(value))
    except ValueError:
        return None
    return point if abs(point.time) < _LATEST else None


_Entry = tuple[int, int, str, MetricPoint]  # time and step by which it is ordered, name, number


class Series:
    """The numbers of one name that were read and not yet passed on.

    Attributes
    ----------
    has_more
        Whether more can be read at once: its last read did not reach the end.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_more = False
        self.last: _Key = _BEFORE_ALL
        self._points: deque[_Entry] = deque()

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: MetricPoint) -> None:
        """Add a number that follows those added before."""
        self.last = max(self.last, point[:2])  # the order within a series is that of its writer
        self._points.append((*self.last, self.name, point))

    def restart(self) -> None:
        """Prepare for a series that was begun anew."""
        if not self._points:
            self.last = _BEFORE_ALL

    def take(self, bound: _Key) -> list[_Entry]:
        """Remove and return the numbers up to a time and step."""
        taken: list[_Entry] = []
        while self._points and self._points[0][:2] <= bound:
            taken.append(self._points.popleft())
        return taken


S = TypeVar("S", bound=Series)


class MlflowRun(FileSource):
    """A run of MLflow in one of its stores.

    Values that are logged without steps are numbered by name: MLflow stores step 0 then, so that a
    second value of step 0 is that of step 1, and so on.

    A run that says that it has ended has. One that crashed stays RUNNING for ever, so that RUNNING
    says nothing.
    """

    def __init__(self, description: str) -> None:
        super().__init__(KIND, description)
        self._counts: dict[str, int] = {}

    def pass_on(self, name: str, point: MetricPoint, record: SourceRecord) -> None:
        """Pass a number on with its step."""
        if not is_step(point.step):
            record.problem(
                f"Metric {name!r} has values at steps that are negative or too large, such as "
                f"{point.step}; they are skipped."
            )
            return
        step = point.step
        count = self._counts.get(name, 0)
        if step:
            self._counts[name] = -1
        elif count >= 0:
            self._counts[name] = count + 1
            step = count
        record.point(name, step, point.value, point.time / 1000)


class MergedRun(MlflowRun, ABC, Generic[S]):
    """A run whose numbers are in several growing series; see `Source`.

    They are passed on in the order in which they were logged. Series are read one after another
    while their writer goes on. A number is therefore held until a look at all series has been
    completed after a later one was seen, or two looks have found nothing: what was logged in the
    same millisecond or before has been read by then, so that the order is the same live and
    afterwards.

    Attributes
    ----------
    series
        By the key of their file, or their name.
    """

    def __init__(self, description: str) -> None:
        super().__init__(description)
        self.series: dict[str, S] = {}
        self._seen = _BEFORE_ALL
        self._has_paused = False
        self._clock = SystemClock()

    def read_new(self, record: SourceRecord) -> bool:
        """Pass on the new numbers of all series; see `Source`."""
        has_ended = self.find_series()
        has_new = False
        for metric in self.series.values():
            if not (metric.has_more and metric):
                has_new |= self.read_series(metric, record)
        is_quiet = has_ended or self.last_write() < time.time() - QUIET_S
        return self._pass_on_settled(record, has_new=has_new, is_quiet=is_quiet)

    def finish(self, record: SourceRecord) -> None:
        """Pass on what was held back; see `FinishingSource`."""
        self._pass_on_settled(record, has_new=False, is_quiet=True)

    @abstractmethod
    def find_series(self) -> bool:
        """Add the series that have appeared; return whether the run has ended."""

    @abstractmethod
    def read_series(self, series: S, record: SourceRecord) -> bool:
        """Add the new numbers of a series to it; return whether there were any."""

    def _pass_on_settled(self, record: SourceRecord, *, has_new: bool, is_quiet: bool) -> bool:
        """Pass on what can no longer be preceded by anything; return whether to look again at once.

        Parameters
        ----------
        has_new
            Whether this look has found anything.
        is_quiet
            Whether the run has ended, or has logged nothing for some time.
        """
        unread = [metric.last for metric in self.series.values() if metric.has_more]
        is_settled = is_quiet or (self._has_paused and not has_new)
        latest = _AFTER_ALL if is_settled else (self._seen[0] - 1, _AFTER_ALL[1])
        batch = self._take(min([latest, *unread]))
        if unread and not batch:  # more than is read at once was logged in one millisecond
            batch = self._take(min(unread))
        for _, _, name, point in batch:
            self.pass_on(name, point, record)
        self._seen = max([self._seen, *(metric.last for metric in self.series.values())])
        self._has_paused = not (has_new or unread) and any(map(len, self.series.values()))
        if self._has_paused:  # whatever was logged in the last millisecond is written by then
            self._clock.sleep(PAUSE_S)
        return has_new or bool(unread) or self._has_paused

    def _take(self, bound: _Key) -> list[_Entry]:
        batch = [entry for metric in self.series.values() for entry in metric.take(bound)]
        return sorted(batch, key=itemgetter(0, 1))
