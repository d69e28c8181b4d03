"""Lines of charts: a quantity over the steps, from the measurements of a rule."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from rule_core.model.segments import global_step, resumed_at
from rule_runner.escape import printable
from rule_runner.results.json_text import JsonScalar
from rule_runner.results.measurements import QuantityRecord, SeriesRecord, Side, excess
from rule_runner.results.schema import Evidence

NAME_LENGTH: Final = 200  # displayed characters of a name
REPORTED: Final = QuantityRecord("reported", "measured, where the rule reported something")


class Point(NamedTuple):
    """The measured value and the limit at a step, and whether the condition was met.

    Attributes
    ----------
    step
        The training's own step; see `segment`.
    is_repeated
        Whether the run was resumed later, so that it repeated the step.
    """

    step: int
    measured: float
    limit: float
    met: bool
    segment: int = 0
    is_repeated: bool = False

    @property
    def label(self) -> str:
        """The step for users."""
        return step_label(self.step, self.segment)


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One quantity of one tensor and worker; its points are ordered by segment and step.

    Attributes
    ----------
    name
        Display name of tensor and worker.
    """

    name: str
    points: tuple[Point, ...]

    def worst(self, worse: Side) -> Point:
        """Return the first of the points farthest on the wrong side of the limit."""
        return max(
            self.points, key=lambda point: (point.met, excess(point.measured, point.limit, worse))
        )

    @property
    def met(self) -> list[Point]:
        """The points at which the condition was met."""
        return [point for point in self.points if point.met]


@dataclass(frozen=True)
class Drawing:
    """The content of a chart: a quantity, and its lines, the worst first."""

    quantity: QuantityRecord
    lines: tuple[ChartLine, ...]

    @cached_property
    def limit(self) -> float | None:
        """The one limit of all points; None if they have different ones."""
        limits = {point.limit for line in self.lines for point in line.points}
        return limits.pop() if len(limits) == 1 else None


def display_name(name: object) -> str:
    """Return a name with control characters escaped, cut to `NAME_LENGTH` characters."""
    text = printable(name)
    return text if len(text) <= NAME_LENGTH else f"{text[: NAME_LENGTH - 1]}…"


def step_label(step: int, segment: int = 0) -> str:
    """Return a step for users, who count segments from 1.

    >>> step_label(1200), step_label(1200, 1)
    ('1,200', '1,200 of segment 2')
    """
    return f"{step:,} of segment {segment + 1}" if segment else f"{step:,}"


def drawings(
    quantities: Iterable[QuantityRecord],
    series: Sequence[SeriesRecord],
    segments: Sequence[int] = (),
) -> list[Drawing]:
    """Return a drawing of each measured quantity.

    Parameters
    ----------
    segments
        The first global step of each segment, if there are several.
    """
    workers = {record.worker for record in series}
    result = []
    for quantity in quantities:
        by_name: dict[tuple[str | None, str | None], list[SeriesRecord]] = {}
        for record in series:
            if record.quantity == quantity.name and record.steps:
                by_name.setdefault((record.tensor, record.worker), []).append(record)
        lines = tuple(
            _line(records, segments, several=len(workers) > 1) for records in by_name.values()
        )
        if lines:
            result.append(Drawing(quantity, lines))
    return result


def reported(evidence: Iterable[Evidence], segments: Sequence[int] = ()) -> list[Drawing]:
    """Return the drawing of the findings of a rule without measurements; see `drawings`."""
    series: dict[tuple[str | None, str | None, int], SeriesRecord] = {}
    for finding in evidence:
        measured, limit = _float(finding.measured), _float(finding.limit)
        if measured is None or limit is None:
            continue
        key = (finding.tensor, finding.worker, finding.segment or 0)
        empty = SeriesRecord(
            REPORTED.name, *key[:2], steps=[], measured=[], limit=[], met=[], segment=key[2]
        )
        record = series.setdefault(key, empty)
        record.steps.append(finding.step)
        record.measured.append(measured)
        record.limit.append(limit)
        record.met.append(finding.step)
    return drawings([REPORTED], list(series.values()), segments)


def _line(records: Sequence[SeriesRecord], segments: Sequence[int], *, several: bool) -> ChartLine:
    points = tuple(point for record in records for point in _points(record, segments))
    record = records[0]
    name = display_name("all tensors" if record.tensor is None else record.tensor)
    worker = f" of {display_name(record.worker)}" if several and record.worker is not None else ""
    return ChartLine(name + worker, points)


def _points(record: SeriesRecord, segments: Sequence[int]) -> Iterator[Point]:
    met, segment = set(record.met), record.segment or 0
    limits = record.limit * len(record.steps) if len(record.limit) == 1 else record.limit
    for step, measured, limit in zip(record.steps, record.measured, limits, strict=False):
        is_repeated = resumed_at(global_step(segment, step), segments) is not None
        numbers = _number(measured), _number(limit)
        yield Point(step, *numbers, step in met, segment, is_repeated)


def _number(value: JsonScalar) -> float:
    """Return a recorded value as a number; NaN if it is not a number."""
    recorded = _float(value)
    return float("nan") if recorded is None else recorded


def _float(value: JsonScalar) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
