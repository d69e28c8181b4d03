"""MergedPoints: numbers from several growing series, in the order of their times."""

from collections import deque
from operator import itemgetter
from typing import Final, NamedTuple

from rule_core.reading.source_record import SourceRecord, is_step

_KEY: Final = itemgetter(0, 1)
_Key = tuple[int, int]
_BEFORE_ALL: Final[_Key] = (-(1 << 63), -1)


class Point(NamedTuple):
    """One number of a series.

    Attributes
    ----------
    time
        When it was logged, in milliseconds since the epoch.
    """

    time: int
    step: int
    value: float


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
        self._points: deque[tuple[int, int, str, Point]] = deque()

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: Point) -> None:
        """Add a number that follows those added before."""
        self.last = max(self.last, point[:2])  # the order within a series is that of its writer
        self._points.append((*self.last, self.name, point))

    def restart(self) -> None:
        """Prepare for a series that was begun anew."""
        self.last = _BEFORE_ALL if not self._points else self.last

    def take(self, bound: _Key) -> list[tuple[int, int, str, Point]]:
        """Remove and return the numbers up to a time and step."""
        taken = []
        while self._points and self._points[0][:2] <= bound:
            taken.append(self._points.popleft())
        return taken


class MergedPoints:
    """Passes the numbers of several series to a record, in the order in which they were logged.

    Series are read one after another while their writer goes on. A number is therefore held until
    a later look at all series has been completed: whatever was logged before it has been read by
    then, so that the order is the same live and afterwards.
    """

    def __init__(self) -> None:
        self._seen: _Key = _BEFORE_ALL
        self._steps = StepNumbers()

    def pass_on(self, series: list[Series], record: SourceRecord) -> None:
        """Pass on what the look before this one has seen, and what was logged before that."""
        bound = min(
            [self._seen, *(one_series.last for one_series in series if one_series.has_more)]
        )
        batch = [entry for one_series in series for entry in one_series.take(bound)]
        batch.sort(key=_KEY)
        for _, _, name, point in batch:
            self._steps.pass_on(name, point, record)
        self._seen = max([self._seen, *(one_series.last for one_series in series)])


class StepNumbers:
    """Numbers the values of names that are logged without steps.

    MLflow stores step 0 then, so that a second value of step 0 is that of step 1, and so on.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def pass_on(self, name: str, point: Point, record: SourceRecord) -> None:
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
