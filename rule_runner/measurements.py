"""Measurements: what a rule measured over the steps, kept within a bound for the report."""

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from rule_runner.results import JsonScalar, json_scalar
from smdebug.rules import Measurement, Quantity

SCHEMA_VERSION: Final = 1
SERIES_KEPT: Final = 30  # of each quantity
POINTS_KEPT: Final = 1000  # of each series
COUNTED: Final = 100_000  # series beyond are left out uncounted

Key = tuple[str | None, str | None]  # tensor, worker
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

    >>> excess(3.0, 2.0, "above"), excess(1.5, 2.0, "below"), excess(1.0, math.inf, "above")
    (0.5, 0.25, -inf)
    """
    if math.isinf(limit):
        return -math.inf
    if math.isnan(measured):
        return math.inf
    distance = measured - limit if worse == "above" else limit - measured
    return distance / abs(limit) if limit else distance


class _Series:
    """The points of one series, thinned where there are many: the worst of neighbours stays."""

    def __init__(self, worse: Side) -> None:
        self.points: list[Measurement] = []
        self.worst = -math.inf
        self._worse = worse
        self._stride = 1  # measurements to a point
        self._taken = 0  # measurements in the last point

    def rank(self, one: Measurement) -> tuple[bool, float]:
        """Return what a point is worth keeping for: that the condition was met, and how far."""
        return one.met, excess(one.measured, one.limit, self._worse)

    def add(self, one: Measurement) -> None:
        """Add a point, of a step after all others."""
        met, far = self.rank(one)
        self.worst = max(self.worst, far)
        if self._taken == 0:
            self.points.append(one)
        elif self.rank(self.points[-1]) < (met, far):
            self.points[-1] = one
        self._taken = (self._taken + 1) % self._stride
        if self._taken == 0 and len(self.points) >= POINTS_KEPT:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [max(pair, key=self.rank) for pair in pairs]
            self._stride *= 2


class _Chart:
    """The worst series of one quantity."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity
        self.series: dict[Key, _Series] = {}
        self.left_out: set[int] = set()
        self._floor: tuple[float, Key] | None = None

    def add(self, one: Measurement) -> None:
        key = (one.tensor, one.worker)
        known = self.series.get(key)
        if known is None:
            if not self._make_room(key, one):
                return
            known = self.series[key] = _Series(self.quantity.worse)
        elif self._floor is not None and self._floor[1] == key:
            self._floor = None  # it may be the least bad no more
        known.add(one)

    def _make_room(self, key: Key, one: Measurement) -> bool:
        """Say whether a new series is to be kept; the least bad one goes if there are many."""
        if len(self.series) < SERIES_KEPT:
            return True
        if self._floor is None:
            gone, series = min(self.series.items(), key=lambda item: item[1].worst)
            self._floor = series.worst, gone
        least, gone = self._floor
        kept = excess(one.measured, one.limit, self.quantity.worse) > least
        if kept:
            del self.series[gone]
            self._floor = None
            self.left_out.discard(hash(key))
        if len(self.left_out) < COUNTED:
            self.left_out.add(hash(gone if kept else key))
        return kept


class Measurements:
    """What one rule measured, in bounded memory: of each quantity the worst series.

    A series that comes in late, because it became worse than another, begins there.
    """

    def __init__(self, quantities: Sequence[Quantity] = ()) -> None:
        self._charts = {one.name: _Chart(one) for one in quantities}

    def add(self, measurements: Iterable[Measurement]) -> None:
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
            sum(len(chart.left_out) for chart in charts),
        )


def _fields(quantity: Quantity) -> tuple[str, str, Side, bool]:
    return quantity.name, quantity.label, quantity.worse, quantity.log


def _series(chart: _Chart) -> Iterable[SeriesRecord]:
    """Yield the series of a chart: first those whose condition was met, the worst first."""

    def badness(item: tuple[Key, _Series]) -> tuple[bool, float]:
        return not any(one.met for one in item[1].points), -item[1].worst

    for (tensor, worker), series in sorted(chart.series.items(), key=badness):
        points = series.points
        yield SeriesRecord(
            chart.quantity.name,
            tensor,
            worker,
            [one.step for one in points],
            [json_scalar(one.measured) for one in points],
            [json_scalar(one.limit) for one in points],
            [one.step for one in points if one.met],
        )
