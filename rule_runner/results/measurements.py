"""Measurements: the values that a rule measured, kept in bounded memory for the report."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import compress, groupby
from math import inf, isfinite, isnan, nan
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rule_core.model.segments import SEGMENT_STEPS, numbers_of
from rule_core.rules.evidence import Measured, Quantity, Series
from rule_runner.results.json_text import JsonScalar, json_scalar

SCHEMA_VERSION: Final = 2
_ONLY_RULE: Final = ""  # in version 0.1.0 each rule job had a file
SERIES_KEPT: Final = 30  # of each quantity
POINTS_KEPT: Final = 1000  # of each series
COUNTED: Final = 100_000  # omitted series that are counted, at most
PENDING: Final = 1 << 12  # points that are added to a chart together, at most
LEAST_BATCH: Final = 4  # steps from which that is faster

Side = Literal["above", "below"]
Floats = NDArray[np.float64]


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
    """The measurements of one rule job, the worst series first.

    `left_out` counts the series that are not among the worst `SERIES_KEPT` of their quantity.
    """

    quantities: list[QuantityRecord]
    series: list[SeriesRecord]
    left_out: int


class MeasurementsFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``measurements.json``: the measurements of rule jobs, by their names."""

    schema_version: int = SCHEMA_VERSION
    rules: dict[str, MeasurementsRecord]

    def of(self, rule_job: str) -> MeasurementsRecord | None:
        """Return the measurements of a rule job; None if it has none."""
        return self.rules.get(rule_job, self.rules.get(_ONLY_RULE))


def decode_measurements(text: bytes | memoryview) -> MeasurementsFile:
    """Return the content of ``measurements.json``, also of version 0.1.0.

    Raises
    ------
    DecodeError
        If it is neither.
    """
    try:
        return msgspec.json.decode(text, type=MeasurementsFile)
    except msgspec.ValidationError:
        record = msgspec.json.decode(text, type=MeasurementsRecord)
        return MeasurementsFile(rules={_ONLY_RULE: record})


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


def _excess_columns(values: Floats, limit: float, worse: Side) -> Floats:
    """Return `excess` of each value."""
    if not isfinite(limit):
        return np.full(values.shape, -inf)
    scale = (abs(limit) or 1.0) * (1.0 if worse == "above" else -1.0)
    with np.errstate(all="ignore"):
        excesses: Floats = (values - limit) / scale
    excesses[np.isnan(values)] = inf
    return excesses


class _Points:
    """The points of one series, in columns; a long series keeps the worst of neighbouring points.

    The points to keep are ranked by whether the condition was `met`, then by excess.
    """

    __slots__ = ("_stride", "_taken", "excesses", "limits", "met", "steps", "values", "worst")

    def __init__(self) -> None:
        self.met = bytearray()
        self.excesses = array("d")
        self.steps: list[int] = []
        self.values = array("d")
        self.limits: list[float] = []
        self.worst = -inf
        self._stride = 1  # measurements to a point
        self._taken = 0  # measurements in the last point

    def add(self, met: bool, excess: float, step: int, value: float, limit: float) -> None:
        """Add a point, of a step after all others."""
        if excess > self.worst:  # noqa: PLR1730 - saves a call per tensor and step
            self.worst = excess
        if self._taken == 0:
            self.met.append(met)
            self.excesses.append(excess)
            self.steps.append(step)
            self.values.append(value)
            self.limits.append(limit)
        elif (self.met[-1], self.excesses[-1]) < (met, excess):
            self.met[-1], self.excesses[-1] = met, excess
            self.steps[-1], self.values[-1], self.limits[-1] = step, value, limit
        self._taken += 1
        if self._taken == self._stride:
            self._taken = 0
            if len(self.steps) >= POINTS_KEPT:
                self._halve()

    def _halve(self) -> None:
        """Keep the worse of each two points."""
        ranks = [*zip(self.met, self.excesses, strict=True)]
        kept = [at + (ranks[at] < ranks[at + 1]) for at in range(0, len(ranks), 2)]
        self.met = bytearray(self.met[at] for at in kept)
        self.excesses = array("d", [self.excesses[at] for at in kept])
        self.steps = [self.steps[at] for at in kept]
        self.values = array("d", [self.values[at] for at in kept])
        self.limits = [self.limits[at] for at in kept]
        self._stride *= 2

    def extend(
        self, met: bytes, excesses: Floats, steps: Sequence[int], values: Floats, limit: float
    ) -> None:
        """Add points of several steps against one limit."""
        limits = [limit] * len(steps)
        if self._stride > 1 or len(self.steps) + len(steps) >= POINTS_KEPT:
            columns = excesses.tolist(), steps, values.tolist(), limits
            for is_met, *point in zip(met, *columns, strict=True):
                self.add(bool(is_met), *point)
            return
        self.met += met
        self.excesses.frombytes(excesses.tobytes())
        self.steps += steps
        self.values.frombytes(values.tobytes())
        self.limits += limits
        self.worst = max(self.worst, float(excesses.max()))


class _Pending(NamedTuple):
    """Measurements of the same series against one limit that are not in a chart yet."""

    keys: tuple[Series, ...]
    limit: float
    steps: list[int]
    values: list[tuple[float, ...]]
    met: list[tuple[bool, ...]]


class _Chart:
    """The worst series of one quantity."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity
        self.series: dict[Series, _Points] = {}
        self.left_out: set[int] = set()
        self._least: tuple[Series, float] | None = None  # the least bad series
        self._pending = _Pending((), nan, [], [], [])

    def add(self, measured: Measured) -> None:
        """Add points of a step after all others, sooner or later; see `add_pending`."""
        if not measured.points:
            return
        keys, values, met = zip(*measured.points, strict=True)
        pending = self._pending
        if keys != pending.keys or measured.limit != pending.limit:
            self.add_pending()
            pending = self._pending = _Pending(keys, measured.limit, [], [], [])
        pending.steps.append(measured.step)
        pending.values.append(values)
        pending.met.append(met)
        if len(pending.steps) * len(keys) >= PENDING:
            self.add_pending()

    def add_pending(self) -> None:
        """Add the points of all steps so far."""
        keys, limit, steps, values, met = self._pending
        self._pending = _Pending(keys, limit, [], [], [])
        if len(steps) < LEAST_BATCH or len({*keys}) < len(keys):
            for at, step in enumerate(steps):
                self._add(keys, limit, step, values[at], met[at])
            return
        columns = np.array(values).T
        excesses = _excess_columns(columns, limit, self.quantity.worse)
        is_met = np.array(met).T.astype(np.uint8)
        start = 0
        while start < len(steps):
            stop = start + self._steps_alike(keys, excesses[:, start:])
            if stop > start:
                part = slice(start, stop)
                self._extend(
                    keys, limit, steps[part], columns[:, part], excesses[:, part], is_met[:, part]
                )
            if stop < len(steps):  # it may change which series are kept
                self._add(keys, limit, steps[stop], values[stop], met[stop])
            start = stop + 1

    def _steps_alike(self, keys: Sequence[Series], excesses: Floats) -> int:
        """Return the number of steps before the first at which another series may be kept."""
        omitted = [position for position, key in enumerate(keys) if key not in self.series]
        if not omitted:
            return len(excesses[0])
        if len(self.series) < SERIES_KEPT:
            return 0
        (worse,) = (excesses[omitted].max(axis=0) > self._least_bad()[1]).nonzero()
        return int(worse[0]) if len(worse) else len(excesses[0])

    def _extend(
        self,
        keys: Sequence[Series],
        limit: float,
        steps: Sequence[int],
        values: Floats,
        excesses: Floats,
        met: NDArray[np.uint8],
    ) -> None:
        """Add points of the kept series at several steps, and omit the others."""
        omitted = []
        for at, key in enumerate(keys):
            if key in self.series:
                self.series[key].extend(met[at].tobytes(), excesses[at], steps, values[at], limit)
            else:
                omitted.append(key)
        if omitted:
            self._leave_out(omitted)

    def _add(
        self,
        keys: Sequence[Series],
        limit: float,
        step: int,
        values: Sequence[float],
        met: Sequence[bool],
    ) -> None:
        """Add points of one step."""
        series = self.series
        excesses = _excesses(values, limit, self.quantity.worse)
        floor = self._least_bad()[1] if len(series) == SERIES_KEPT else nan  # it only rises
        omitted: list[Series] = []
        for key, value, over, is_met in zip(keys, values, excesses, met, strict=True):
            points = series.get(key)
            if points is None:
                if over <= floor or not self._make_room(key, over):
                    omitted.append(key)
                    continue
                points = series[key] = _Points()
            points.add(is_met, over, step, value, limit)
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
        """Return the measurements so far."""
        charts = self._charts.values()
        for chart in charts:
            chart.add_pending()
        quantities = [chart.quantity for chart in charts]
        return MeasurementsRecord(
            [QuantityRecord(q.name, q.label, q.worse, q.log) for q in quantities],
            [record for chart in charts for record in _series(chart)],
            sum(min(len(chart.left_out), COUNTED) for chart in charts),
        )


def _series(chart: _Chart) -> Iterable[SeriesRecord]:
    """Yield the series of a chart: those that met the condition first, then by excess."""

    def badness(item: tuple[Series, _Points]) -> tuple[bool, float]:
        return not any(item[1].met), -item[1].worst

    for (tensor, worker), points in sorted(chart.series.items(), key=badness):
        for segment, part in _segments(points.steps):
            steps, limits = points.steps[part], points.limits[part]
            own = [numbers_of(step)[1] for step in steps] if segment else steps
            yield SeriesRecord(
                chart.quantity.name,
                tensor,
                worker,
                own,
                _numbers(points.values[part]),
                _numbers(limits[:1] if len({*limits}) == 1 else limits),
                [*compress(own, points.met[part])],
                segment or msgspec.UNSET,
            )


def _segments(steps: Sequence[int]) -> Iterable[tuple[int, slice]]:
    """Return each segment of ascending global steps, and where its steps are."""
    if steps[-1] < SEGMENT_STEPS:  # as in most trials
        return [(0, slice(None))]
    groups = groupby(range(len(steps)), key=lambda position: numbers_of(steps[position])[0])
    parts = [(segment, [*positions]) for segment, positions in groups]
    return [(segment, slice(part[0], part[-1] + 1)) for segment, part in parts]


def _numbers(values: Sequence[float]) -> list[JsonScalar]:
    """Return numbers as JSON values, rounded to the digits that charts can show."""
    rounded = [float(f"{value:.7g}") for value in values]
    return [*rounded] if all(map(isfinite, rounded)) else [*map(json_scalar, rounded)]
