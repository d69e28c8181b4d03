"""The curves that rules measured, from the output folder of an evaluation."""

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from rule_runner.report.html.series import REPORTED, ChartLine, Drawing
from rule_runner.report.saved_results import SavedRuleJob, read
from rule_runner.results.schema import RuleResult, WindowTimes
from rule_runner.service.curves.points import Points

LINES_KEPT: Final = 5  # of each quantity, the worst


class MeasuredCurve(NamedTuple):
    """A quantity of one tensor that a rule measured, with its limit.

    Attributes
    ----------
    job
        The name of the rule job.
    worse
        Which side of the limit is bad: ``above`` or ``below``.
    limit
        The limit of all points; None if they have different ones.
    met
        The steps at which the rule's condition was met.
    windows
        When the steps begin, if they are windows of time; None otherwise.
    """

    name: str
    job: str
    quantity: str
    worse: str
    log: bool
    limit: float | None
    met: tuple[int, ...]
    points: Points
    windows: WindowTimes | None = None


class MeasuredCurves(NamedTuple):
    """What an output folder holds, and how many lines it leaves out."""

    curves: tuple[MeasuredCurve, ...]
    left_out: int


def read_measured(output: str) -> MeasuredCurves:
    """Return the curves in a local output folder, or below an address in S3.

    Raises
    ------
    ClientError
        If the address cannot be read.
    """
    return _curves(job for run in read([output]).runs for job in run.jobs)


def _curves(jobs: Iterable[SavedRuleJob]) -> MeasuredCurves:
    curves: list[MeasuredCurve] = []
    left_out = 0
    for job in jobs:
        left_out += job.left_out
        for drawing in filter(_is_curve, job.drawings):
            left_out += max(len(drawing.lines) - LINES_KEPT, 0)
            curves += _of_drawing(job.result, drawing)
    return MeasuredCurves(tuple(curves), left_out)


def _is_curve(drawing: Drawing) -> bool:
    """Return whether a drawing is more than the place of a finding."""
    return drawing.quantity != REPORTED or any(len(line.points) > 1 for line in drawing.lines)


def _of_drawing(result: RuleResult, drawing: Drawing) -> Iterator[MeasuredCurve]:
    windows = None if result.windows is msgspec.UNSET else result.windows
    quantity = drawing.quantity
    limit = drawing.limit if drawing.limit is not None and math.isfinite(drawing.limit) else None
    for line in drawing.lines[:LINES_KEPT]:
        yield MeasuredCurve(
            name=line.name,
            job=result.configuration_name,
            quantity=quantity.label,
            worse=quantity.worse,
            log=quantity.log,
            limit=limit,
            met=tuple(sorted({point.step for point in line.met})),
            points=_points(line),
            windows=windows,
        )


def _points(line: ChartLine) -> Points:
    points = Points()
    for point in line.points:
        points.add(point.step, point.measured)
    return points
