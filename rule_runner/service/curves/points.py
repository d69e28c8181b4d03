"""Points: one curve in bounded memory, whose extremes stay."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from rule_core.analysis.thinning import thinned
from rule_runner.results.schema import WindowTimes

POINTS_KEPT: Final = 4096
MARKS_KEPT: Final = 100
_GROUP: Final = 4  # points, on average, of which the lowest and the highest stay


class Mark(NamedTuple):
    """A value that no axis shows: ``NaN``, ``inf`` or ``-inf``."""

    step: int
    value: str


class Points:
    """The values of a curve over ascending steps.

    When there are too many, the lowest and the highest of equally long parts of the steps stay. A
    value that is not finite is None, and a mark that stays.

    Parameters
    ----------
    kept
        How many values stay at most.

    Attributes
    ----------
    marks
        The first `MARKS_KEPT` values that are not finite.
    thinned
        How many values were dropped.
    """

    def __init__(self, kept: int = POINTS_KEPT) -> None:
        self._kept = kept
        self.steps: list[int] = []
        self.values: list[float | None] = []
        self.marks: list[Mark] = []
        self.thinned = 0

    def add(self, step: int, value: float) -> None:
        """Add a value; one of an earlier step replaces that step and all later ones."""
        if self.steps and step <= self.steps[-1]:
            self._cut(step)
        self.steps.append(step)
        if math.isfinite(value):
            self.values.append(value)
        else:
            self.values.append(None)
            if len(self.marks) < MARKS_KEPT:
                self.marks.append(Mark(step, "NaN" if math.isnan(value) else str(value)))
        if len(self.steps) > self._kept:
            self._keep(of_even_groups(self.steps, self.values, len(self.steps) // _GROUP))

    def _cut(self, step: int) -> None:
        """Forget what a training that was resumed repeats."""
        end = bisect_left(self.steps, step)
        del self.steps[end:], self.values[end:]
        self.marks = [mark for mark in self.marks if mark.step < step]

    def _keep(self, kept: Sequence[int]) -> None:
        self.thinned += len(self.steps) - len(kept)
        self.steps = [self.steps[index] for index in kept]
        self.values = [self.values[index] for index in kept]

    def after(self, step: int | None, count: int) -> tuple[list[int], list[float | None]]:
        """Return steps and values after a step, at most about `count` of them."""
        first = 0 if step is None else bisect_right(self.steps, step)
        steps, values = self.steps[first:], self.values[first:]
        if len(steps) <= count:
            return steps, values
        kept = of_even_groups(steps, values, max(count // 2, 1))
        return [steps[index] for index in kept], [values[index] for index in kept]


class SeriesItem(msgspec.Struct, frozen=True):
    """A curve.

    Attributes
    ----------
    kind
        A `CurveKind`, a `ProfileKind`, or ``measured`` for what a rule measured.
    steps
        Of a profile, times in milliseconds since the epoch.
    values
        None where a value is not finite; `marks` has the value.
    rule, quantity, limit, worse, log, met, windows
        Of what a rule measured; see `MeasuredCurve`. `rule` is the name of the rule job.
    """

    name: str
    kind: str
    unit: str
    steps: list[int]
    values: list[float | None]
    marks: list[Mark] = []
    rule: str | None = None
    quantity: str | None = None
    limit: float | None = None
    worse: str | None = None
    log: bool = False
    met: list[int] = []
    windows: WindowTimes | None = None


class CurveItem(NamedTuple):
    """A curve with its name, kind and unit."""

    name: str
    kind: str
    unit: str
    points: Points


def of_even_groups(steps: Sequence[int], values: Sequence[float | None], groups: int) -> list[int]:
    """Return the indices of the points to keep, with the steps divided evenly into groups.

    >>> of_even_groups(range(8), [0.0, 9.0, 1.0, 2.0, -5.0, 3.0, 3.0, 4.0], 2)
    [0, 1, 4, 7]
    """
    first, width = steps[0], steps[-1] + 1 - steps[0]
    starts = {bisect_left(steps, first + -(-group * width // groups)) for group in range(groups)}
    kept: list[int] = thinned(values, sorted(starts)).tolist()
    return kept
