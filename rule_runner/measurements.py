"""Measurements: what a rule measured over the steps, kept within a bound for the report."""

from collections.abc import Iterable, Sequence
from itertools import compress
from math import inf, isfinite, isnan, nan
from operator import itemgetter
from typing import Final, Literal

import msgspec

from rule_runner.results import JsonScalar, json_scalar
from smdebug.rules import Measured, Quantity
from smdebug.rules.evidence import Series

SCHEMA_VERSION: Final = 1
SERIES_KEPT: Final = 30  # of each quantity
POINTS_KEPT: Final = 1000  # of each series
COUNTED: Final = 100_000  # series beyond are left out uncounted

# Whether the condition was met, how far beyond the limit (which together say what it is worth
# keeping for), step, value, limit.
Point = tuple[bool, float, int, float, float]
Side = Literal["above", "below"]


class QuantityRecord(msgspec.Struct, frozen=True):
    """What was measured; see `smdebug.rules.Quantity`."""

    name: str
    label: str
    worse: Side = "above"
    log: bool = False


class SeriesRecord(msgspec.Struct, frozen=True):
    """One quantity of one tensor and worker over the steps.

    `steps`, `measured` and `limit` are of one length; `met` holds those of the steps at which the
    condition was met.
    """

    quantity: str
    tensor: str | None
    worker: str | None
    steps: list[int]
    measured: list[JsonScalar]
    limit: list[JsonScalar]
    met: list[int]


class MeasurementsRecord(msgspec.Struct, frozen=True):
    """The content of ``measurements.json``: the worst series first.

    `left_out` counts the series that are not among the worst `SERIES_KEPT` of their quantity.
    """

    schema_version: int
    quantities: list[QuantityRecord]
    series: list[SeriesRecord]
    left_out: int


def excess(measured: float, limit: float, worse: Side) -> float:
    """Return how far a value is on the wrong side of its limit: the greater, the worse.

    Relative to the limit, if that is not 0; infinite for NaN, and if only the value is infinite.
    Where the limit is not finite, nothing is beyond it.

    >>> excess(3.0, 2.0, "above"), excess(1.5, 2.0, "below"), excess(1.0, inf, "above")
    (0.5, 0.25, -inf)
    """
    return _excesses([measured], limit, worse)[0]


def _excesses(values: Sequence[float], limit: float, worse: Side) -> list[float]:
    if not isfinite(limit):
        return [-inf] * len(values)
    scale = (abs(limit) or 1.0) * (1.0 if worse == "above" else -1.0)
    return [inf if isnan(one) else (one - limit) / scale for one in values]


class _Points:
    """The points of one series, thinned where there are many: the worst of neighbours stays."""

    __slots__ = ("_stride", "_taken", "points", "worst")

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.worst = -inf
        self._stride = 1  # measurements to a point
        self._taken = 0  # measurements in the last point

    def add(self, point: Point) -> None:
        """Add a point, of a step after all others."""
        if point[1] > self.worst:  # noqa: PLR1730 - a call less, of each tensor at each step
            self.worst = point[1]
        if self._taken == 0:
            self.points.append(point)
        elif self.points[-1][:2] < point[:2]:
            self.points[-1] = point
        self._taken += 1
        if self._taken < self._stride:
            return
        self._taken = 0
        if len(self.points) >= POINTS_KEPT:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [max(pair, key=itemgetter(0, 1)) for pair in pairs]
            self._stride *= 2


class _Chart:
    """The worst series of one quantity."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity
        self.series: dict[Series, _Points] = {}
        self.left_out: set[int] = set()
        self._least: tuple[Series, float] | None = None  # the least bad one

    def add(self, one: Measured) -> None:
        """Add points of a step after all others."""
        series, step, limit = self.series, one.step, one.limit
        far = _excesses([value for _, value, _ in one.points], limit, self.quantity.worse)
        floor = self._least_bad()[1] if len(series) == SERIES_KEPT else nan  # it only rises
        left: list[Series] = []
        for (key, value, met), distance in zip(one.points, far, strict=True):
            known = series.get(key)
            if known is None:
                if distance <= floor or not self._make_room(key, distance):
                    left.append(key)
                    continue
                known = series[key] = _Points()
            known.add((met, distance, step, value, limit))
        self._leave_out(left)

    def _make_room(self, key: Series, far: float) -> bool:
        """Say whether a new series is to be kept; the least bad one goes if there are many."""
        if len(self.series) < SERIES_KEPT:
            return True
        gone, least = self._least_bad()
        if far <= least:
            return False
        del self.series[gone]
        self.left_out.discard(hash(key))
        self._leave_out([gone])
        return True

    def _leave_out(self, keys: Sequence[Series]) -> None:
        if len(self.left_out) < COUNTED:
            self.left_out.update(map(hash, keys[:COUNTED]))

    def _least_bad(self) -> tuple[Series, float]:
        """Return the least bad series, the first of several, and how bad it is."""
        known = self.series.get(self._least[0]) if self._least is not None else None
        if self._least is None or known is None or known.worst != self._least[1]:
            key, found = min(self.series.items(), key=lambda item: item[1].worst)
            self._least = key, found.worst
        return self._least


class Measurements:
    """What one rule measured, in bounded memory: of each quantity the worst series.

    A series that comes in late, because it became worse than another, begins there.
    """

    def __init__(self, quantities: Sequence[Quantity] = ()) -> None:
        self._charts = {one.name: _Chart(one) for one in quantities}

    def add(self, measurements: Iterable[Measured]) -> None:
        """Take what was measured at a step; steps come in ascending order."""
        for one in measurements:
            chart = self._charts.get(one.quantity)
            if chart is None:
                chart = _Chart(Quantity(one.quantity, one.quantity))
                self._charts[one.quantity] = chart
            chart.add(one)

    def record(self) -> MeasurementsRecord:
        """Return what is to be written."""
        charts = self._charts.values()
        return MeasurementsRecord(
            SCHEMA_VERSION,
            [QuantityRecord(*_fields(one.quantity)) for one in charts],
            [record for chart in charts for record in _series(chart)],
            sum(min(len(chart.left_out), COUNTED) for chart in charts),
        )


def _fields(quantity: Quantity) -> tuple[str, str, Side, bool]:
    return quantity.name, quantity.label, quantity.worse, quantity.log


def _series(chart: _Chart) -> Iterable[SeriesRecord]:
    """Yield the series of a chart: first those whose condition was met, the worst first."""

    def badness(item: tuple[Series, _Points]) -> tuple[bool, float]:
        return not any(map(itemgetter(0), item[1].points)), -item[1].worst

    for (tensor, worker), kept in sorted(chart.series.items(), key=badness):
        met, _, steps, values, limits = map(list, zip(*kept.points, strict=True))
        yield SeriesRecord(
            chart.quantity.name,
            tensor,
            worker,
            steps,
            _numbers(values),
            _numbers(limits),
            [*compress(steps, met)],
        )


def _numbers(values: list[float]) -> list[JsonScalar]:
    """Return numbers as JSON can hold them; most are finite."""
    finite = all(map(isfinite, values))
    return [*values] if finite else [*map(json_scalar, values)]
