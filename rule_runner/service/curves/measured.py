"""The curves that rules measured, from the output folder of an evaluation."""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from rule_runner.report.html.series import REPORTED, Drawing
from rule_runner.report.saved_results import read
from rule_runner.results.schema import RuleResult
from rule_runner.service.curves.points import Points, SeriesItem

MEASURED: Final = "measured"
LINES_KEPT: Final = 5  # of each quantity, the worst


class MeasuredCurve(NamedTuple):
    """A quantity of one tensor that a rule measured, with its limit.

    Attributes
    ----------
    item
        The curve without its points: `rule` is the name of the rule job; `worse` is the side of the
        limit that is bad, ``above`` or ``below``; `limit` is None if points have different ones;
        `met` has the steps at which the rule's condition was met; `windows` says when the steps
        begin, if they are windows of time.
    """

    item: SeriesItem
    points: Points


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
    curves: list[MeasuredCurve] = []
    left_out = 0
    for job in (job for run in read([output]).runs for job in run.jobs):
        left_out += job.left_out
        for drawing in filter(_is_curve, job.drawings):
            left_out += max(len(drawing.lines) - LINES_KEPT, 0)
            curves += _of_drawing(job.result, drawing)
    return MeasuredCurves(tuple(curves), left_out)


def _is_curve(drawing: Drawing) -> bool:
    """Return whether a drawing is more than the place of a finding."""
    return drawing.quantity != REPORTED or any(len(line.points) > 1 for line in drawing.lines)


def _of_drawing(result: RuleResult, drawing: Drawing) -> Iterator[MeasuredCurve]:
    quantity, limit = drawing.quantity, drawing.limit
    for line in drawing.lines[:LINES_KEPT]:
        points = Points()
        for point in line.points:
            points.add(point.step, point.measured)
        item = SeriesItem(
            name=line.name,
            kind=MEASURED,
            unit="",
            steps=[],
            values=[],
            rule=result.configuration_name,
            quantity=quantity.label,
            limit=limit if limit is not None and math.isfinite(limit) else None,
            worse=quantity.worse,
            log=quantity.log,
            met=sorted({point.step for point in line.met}),
            windows=None if result.windows is msgspec.UNSET else result.windows,
        )
        yield MeasuredCurve(item, points)
