"""Measurements: the values that a rule measured, kept in bounded memory for the report."""

from collections.abc import Iterable, Sequence
from itertools import compress, groupby
from math import inf, isfinite, isnan, nan
from operator import itemgetter
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from rule_core.model.segments import SEGMENT_STEPS, numbers_of
from rule_core.rules import Measured, Quantity
from rule_core.rules.evidence import Series
from rule_runner.results.json_text import JsonScalar, json_scalar

SCHEMA_VERSION: Final = 1
SERIES_KEPT: Final = 30  # of each quantity
POINTS_KEPT: Final = 1000  # of each series
COUNTED: Final = 100_000  # omitted series that are counted, at most
PENDING: Final = 1 << 12  # points that are added to a chart together

# Whether the condition was met, excess over the limit (both rank the points to keep), step,
# value, limit.
Point = tuple[bool, float, int, float, float]
Side = Literal["above", "below"]
Floats = NDArray[np.float64]  # of shape (steps, series)


class QuantityRecord(msgspec.Struct, frozen=True):
    """A measured quantity; see `smdebug.rules.Quantity`."""

    name: str
    label: str
    worse: Side = "above"
    log: bool = False


class SeriesRecord(msgspec.Struct, frozen=True):
    """One quantity of one tensor and worker over the steps of a segment.

    `segment` is unset for the first one. `steps`, `measured` and `limit` have the same length, but
    a constant limit is stored once. Numbers have 7 digits. `met` lists the steps at which the
    condition was met.
    """

    quantity: str
    tensor: str | None
    worker: str | None
    steps: list[int]
    measured: list[JsonScalar]
    limit: list[JsonScalar]
    met: list[int]
    segment: int | msgspec.UnsetType = msgspec.UNSET


class MeasurementsRecord(msgspec.Struct, frozen=True):
    """The content of ``measurements.json``: the worst series first.

    `left_out` counts the series that are not among the worst `SERIES_KEPT` of their quantity.
    """

    schema_version: int
    quantities: list[QuantityRecord]
    series: list[SeriesRecord]
    left_out: int


def excess(measured: float, limit: float, worse: Side) -> float:
    """Return how far a value is on the wrong side of its limit; larger is worse.

    The excess is relative to a limit other than 0. It is infinite for NaN and for infinite values,
    and -inf if the limit is not finite.

    >>> excess(3.0, 2.0, "above"), excess(1.5, 2.0, "below"), excess(1.0, inf, "above")
    (0.5, 0.25, -inf)
    """
    return _excesses([measured], limit, worse)[0]


def _excesses(values: Sequence[float], limit: float, worse: Side) -> list[float]:
    if not isfinite(limit):
        return [-inf] * len(values)
    scale = (abs(limit) or 1.0) * (1.0 if worse == "above" else -1.0)
    return [inf if isnan(value) else (value - limit) / scale for value in values]


def _excess_array(values: Floats, limit: float, worse: Side) -> Floats:
    """Return `excess` of each value."""
    if not isfinite(limit):
        return np.full(values.shape, -inf)
    scale = (abs(limit) or 1.0) * (1.0 if worse == "above" else -1.0)
    with np.errstate(all="ignore"):
        excesses: Floats = (values - limit) / scale
    excesses[np.isnan(values)] = inf
    return excesses


def _keys_and_limit(measured: Measured) -> tuple[list[Series], float]:
    return [key for key, _, _ in measured.points], measured.limit


class _Points:
    """The points of one series; a long series keeps the worst of neighbouring points."""

    __slots__ = ("_stride", "_taken", "points", "worst")

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.worst = -inf
        self._stride = 1  # measurements to a point
        self._taken = 0  # measurements in the last point

    def add(self, point: Point) -> None:
        """Add a point, of a step after all others."""
        if point[1] > self.worst:  # noqa: PLR1730 - saves a call per tensor and step
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

    def extend(self, points: Sequence[Point]) -> None:
        """Add points of several steps."""
        if self._stride > 1 or len(self.points) + len(points) >= POINTS_KEPT:
            for point in points:
                self.add(point)
            return
        self.points.extend(points)
        self.worst = max(self.worst, *map(itemgetter(1), points))


class _Chart:
    """The worst series of one quantity."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity
        self.series: dict[Series, _Points] = {}
        self.left_out: set[int] = set()
        self._least: tuple[Series, float] | None = None  # the least bad series
        self._pending: list[Measured] = []
        self._num_pending = 0  # points

    def add(self, measured: Measured) -> None:
        """Add points of a step after all others, sooner or later; see `add_pending`."""
        self._pending.append(measured)
        self._num_pending += len(measured.points)
        if self._num_pending >= PENDING:
            self.add_pending()

    def add_pending(self) -> None:
        """Add the points of all steps so far."""
        pending, self._pending, self._num_pending = self._pending, [], 0
        for (keys, limit), group in groupby(pending, key=_keys_and_limit):
            self._add_steps(keys, limit, [*group])

    def _add_steps(self, keys: Sequence[Series], limit: float, steps: Sequence[Measured]) -> None:
        """Add points of the same series at several steps."""
        if len(steps) == 1 or len({*keys}) < len(keys):
            for measured in steps:
                self._add(measured)
            return
        values = np.array([[value for _, value, _ in measured.points] for measured in steps])
        excesses = _excess_array(values, limit, self.quantity.worse)
        start = 0
        while start < len(steps):
            stop = start + self._steps_alike(keys, excesses[start:])
            if stop > start:
                part = slice(start, stop)
                self._extend(keys, limit, steps[part], values[part], excesses[part])
            if stop < len(steps):  # it may change which series are kept
                self._add(steps[stop])
            start = stop + 1

    def _steps_alike(self, keys: Sequence[Series], excesses: Floats) -> int:
        """Return the number of steps before one at which another series may be kept."""
        omitted = [position for position, key in enumerate(keys) if key not in self.series]
        if not omitted:
            return len(excesses)
        if len(self.series) < SERIES_KEPT:
            return 0
        is_worse = (excesses[:, omitted] > self._least_bad()[1]).any(axis=1)
        return int(is_worse.argmax()) if is_worse.any() else len(excesses)

    def _extend(
        self,
        keys: Sequence[Series],
        limit: float,
        steps: Sequence[Measured],
        values: Floats,
        excesses: Floats,
    ) -> None:
        """Add points of the kept series at several steps, and omit the others."""
        omitted = [key for key in keys if key not in self.series]
        if omitted:
            self._leave_out(omitted)
        numbers = [measured.step for measured in steps]
        limits = [limit] * len(steps)
        met = [[is_met for _, _, is_met in measured.points] for measured in steps]
        columns = zip(*met, strict=True), excesses.T.tolist(), values.T.tolist()
        for key, its_met, its_excesses, its_values in zip(keys, *columns, strict=True):
            if key in self.series:
                points = zip(its_met, its_excesses, numbers, its_values, limits, strict=True)
                self.series[key].extend([*points])

    def _add(self, measured: Measured) -> None:
        """Add points of a step after all others."""
        series, step, limit = self.series, measured.step, measured.limit
        values = [value for _, value, _ in measured.points]
        excesses = _excesses(values, limit, self.quantity.worse)
        floor = self._least_bad()[1] if len(series) == SERIES_KEPT else nan  # it only rises
        omitted: list[Series] = []
        for (key, value, met), over in zip(measured.points, excesses, strict=True):
            points = series.get(key)
            if points is None:
                if over <= floor or not self._make_room(key, over):
                    omitted.append(key)
                    continue
                points = series[key] = _Points()
            points.add((met, over, step, value, limit))
        if omitted:
            self._leave_out(omitted)

    def _make_room(self, key: Series, over: float) -> bool:
        """Return whether to keep a new series, after dropping the least bad one if needed."""
        if len(self.series) < SERIES_KEPT:
            return True
        dropped, least = self._least_bad()
        if over <= least:
            return False
        del self.series[dropped]
        self.left_out.discard(hash(key))
        self._leave_out([dropped])
        return True

    def _leave_out(self, keys: Sequence[Series]) -> None:
        if len(self.left_out) < COUNTED:
            self.left_out.update(map(hash, keys[:COUNTED]))

    def _least_bad(self) -> tuple[Series, float]:
        """Return the least bad series, the first of several, and its largest excess."""
        points = self.series.get(self._least[0]) if self._least is not None else None
        if self._least is None or points is None or points.worst != self._least[1]:
            key, points = min(self.series.items(), key=lambda item: item[1].worst)
            self._least = key, points.worst
        return self._least


class Measurements:
    """The measurements of one rule: the worst series of each quantity, in bounded memory.

    A series that replaces another one starts at the step where it became worse.
    """

    def __init__(self, quantities: Sequence[Quantity] = ()) -> None:
        self._charts = {quantity.name: _Chart(quantity) for quantity in quantities}

    def add(self, measurements: Iterable[Measured]) -> None:
        """Add the measurements of a step; steps come in ascending order."""
        for measured in measurements:
            name = measured.quantity
            chart = self._charts.get(name)
            if chart is None:
                chart = self._charts[name] = _Chart(Quantity(name, name))
            chart.add(measured)

    def record(self) -> MeasurementsRecord:
        """Return the content of ``measurements.json``."""
        charts = self._charts.values()
        for chart in charts:
            chart.add_pending()
        quantities = [chart.quantity for chart in charts]
        return MeasurementsRecord(
            SCHEMA_VERSION,
            [QuantityRecord(q.name, q.label, q.worse, q.log) for q in quantities],
            [record for chart in charts for record in _series(chart)],
            sum(min(len(chart.left_out), COUNTED) for chart in charts),
        )


def _series(chart: _Chart) -> Iterable[SeriesRecord]:
    """Yield the series of a chart: those that met the condition first, then by excess."""

    def badness(item: tuple[Series, _Points]) -> tuple[bool, float]:
        return not any(map(itemgetter(0), item[1].points)), -item[1].worst

    for (tensor, worker), kept in sorted(chart.series.items(), key=badness):
        for segment, points in _by_segment(kept.points):
            met, _, steps, values, limits = map(list, zip(*points, strict=True))
            own = [numbers_of(step)[1] for step in steps] if segment else steps
            yield SeriesRecord(
                chart.quantity.name,
                tensor,
                worker,
                own,
                _numbers(values),
                _numbers(limits[:1] if len({*limits}) == 1 else limits),
                [*compress(own, met)],
                segment or msgspec.UNSET,
            )


def _by_segment(points: Sequence[Point]) -> Iterable[tuple[int, Iterable[Point]]]:
    """Return the points of each segment; most trials have one."""
    if points[-1][2] < SEGMENT_STEPS:
        return [(0, points)]
    return groupby(points, key=lambda point: numbers_of(point[2])[0])


def _numbers(values: list[float]) -> list[JsonScalar]:
    """Return numbers as JSON values, rounded to the digits that charts can show."""
    rounded = [float(f"{value:.7g}") for value in values]
    return [*rounded] if all(map(isfinite, rounded)) else [*map(json_scalar, rounded)]
