"""Lines: what one quantity did over the steps, as a chart draws it, from what a rule recorded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from rule_runner.measurements import QuantityRecord, SeriesRecord, Side, excess
from rule_runner.results import Evidence, JsonScalar
from rule_runner.show import printable

NAME_LENGTH: Final = 200  # characters of a name that are shown
REPORTED: Final = QuantityRecord("reported", "measured, where the rule reported something")


class Point(NamedTuple):
    """What was measured at a step, against which limit, and whether the condition was met."""

    step: int
    measured: float
    limit: float
    met: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity of one tensor and worker; its points are in the order of their steps.

    Attributes
    ----------
    name
        For people: of tensor and worker, harmless and not too long.
    """

    name: str
    points: tuple[Point, ...]

    def worst(self, worse: Side) -> Point:
        """Return the first of the points that are the farthest on the wrong side."""
        return max(self.points, key=lambda one: (one.met, excess(one.measured, one.limit, worse)))

    @property
    def met(self) -> list[Point]:
        """The points at which the condition was met."""
        return [one for one in self.points if one.met]


@dataclass(frozen=True)
class Drawing:
    """What a chart shows: a quantity, and its lines, the worst first."""

    quantity: QuantityRecord
    lines: tuple[Line, ...]

    @cached_property
    def limit(self) -> float | None:
        """The one limit of all points; None if they have different ones."""
        limits = {point.limit for line in self.lines for point in line.points}
        return limits.pop() if len(limits) == 1 else None


def shown(name: object) -> str:
    """Return a name of a stranger's, harmless and cut to `NAME_LENGTH` characters."""
    text = printable(name)
    return text if len(text) <= NAME_LENGTH else f"{text[: NAME_LENGTH - 1]}…"


def drawings(quantities: Iterable[QuantityRecord], series: Sequence[SeriesRecord]) -> list[Drawing]:
    """Return a drawing of each quantity that was measured."""
    workers = {one.worker for one in series}
    found = []
    for quantity in quantities:
        own = [one for one in series if one.quantity == quantity.name and one.steps]
        lines = tuple(_line(one, several=len(workers) > 1) for one in own)
        if lines:
            found.append(Drawing(quantity, lines))
    return found


def reported(evidence: Iterable[Evidence]) -> list[Drawing]:
    """Return the drawing of what a rule only reported: it recorded no measurements."""
    series: dict[tuple[str | None, str | None], SeriesRecord] = {}
    for one in evidence:
        measured, limit = _float(one.measured), _float(one.limit)
        if measured is None or limit is None:
            continue
        key = (one.tensor, one.worker)
        empty = SeriesRecord(REPORTED.name, *key, steps=[], measured=[], limit=[], met=[])
        record = series.setdefault(key, empty)
        record.steps.append(one.step)
        record.measured.append(measured)
        record.limit.append(limit)
        record.met.append(one.step)
    return drawings([REPORTED], list(series.values()))


def _line(record: SeriesRecord, *, several: bool) -> Line:
    met = set(record.met)
    values = zip(record.steps, record.measured, record.limit, strict=False)
    points = tuple(
        Point(step, _number(measured), _number(limit), step in met)
        for step, measured, limit in values
    )
    name = shown("all tensors" if record.tensor is None else record.tensor)
    worker = f" of {shown(record.worker)}" if several and record.worker is not None else ""
    return Line(name + worker, points)


def _number(value: JsonScalar) -> float:
    """Return what a recorded number stands for; NaN for what is none."""
    number = _float(value)
    return float("nan") if number is None else number


def _float(value: JsonScalar) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def thinned(points: Sequence[Point], places: Sequence[int], columns: int, span: int) -> list[int]:
    """Return the indices of the points that a line of `columns` pixels needs, ascending.

    Of each column: the first and the last, the lowest and the highest, and one without a finite
    value. `places` are those of the points on an axis that is `span` long.
    """
    groups: dict[int, list[int]] = {}
    for index, place in enumerate(places):
        groups.setdefault(place * columns // (span + 1), []).append(index)
    kept: set[int] = set()
    for group in groups.values():
        finite = [index for index in group if abs(points[index].measured) < float("inf")]
        odd = next(
            (index for index in group if not abs(points[index].measured) < float("inf")), group[0]
        )
        kept |= {group[0], group[-1], odd}
        if finite:
            kept.add(min(finite, key=lambda index: points[index].measured))
            kept.add(max(finite, key=lambda index: points[index].measured))
    return sorted(kept)
