"""Scoring: how the verdicts of the rules agree with what is known of the runs."""

import enum
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from measuring import FOUND, NOT_EVALUATED, Measured, Verdict
from training_runs import Run


class Is(enum.Enum):
    """What a verdict is, beside what is known of the run."""

    FOUND = "found"
    MISSED = "missed"
    FALSE = "false"
    SILENT = "silent"
    UNJUDGED = "unjudged"
    CONSEQUENCE = "consequence"  # of the fault: counted neither way


def what_it_is(run: Run, onset: int, one: Verdict) -> Is:
    """Classify a verdict. A finding before the fault is false, whatever follows."""
    met = one.outcome == FOUND
    early = met and one.step is not None and one.step < onset
    if early:
        return Is.FALSE
    if one.rule in run.fires:
        return Is.FOUND if met else Is.MISSED
    if one.rule in run.may:
        return Is.CONSEQUENCE
    if one.outcome == NOT_EVALUATED:
        return Is.UNJUDGED
    return Is.FALSE if met else Is.SILENT


@dataclass(slots=True)
class Score:
    """How often a rule was right; `delays` are steps from a fault to its finding."""

    counts: dict[Is, int] = field(default_factory=lambda: dict.fromkeys(Is, 0))
    delays: list[int] = field(default_factory=list)

    def add(self, kind: Is, delay: int) -> None:
        """Count one verdict."""
        self.counts[kind] += 1
        if kind is Is.FOUND:
            self.delays.append(delay)

    @property
    def precision(self) -> float:
        found = self.counts[Is.FOUND]
        return _share(found, found + self.counts[Is.FALSE])

    @property
    def recall(self) -> float:
        found = self.counts[Is.FOUND]
        return _share(found, found + self.counts[Is.MISSED])

    @property
    def f1(self) -> float:
        found = 2 * self.counts[Is.FOUND]
        return _share(found, found + self.counts[Is.FALSE] + self.counts[Is.MISSED])

    @property
    def delay(self) -> float:
        """Median of the delays; NaN where nothing was found."""
        return statistics.median(self.delays) if self.delays else math.nan


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def scores(runs: Mapping[str, Run], measured: Iterable[Measured], column: str) -> dict[str, Score]:
    """Return the scores of a column by rule."""
    found: dict[str, Score] = {}
    for one in measured:
        for verdict in one.verdicts:
            if verdict.column == column:
                kind = what_it_is(runs[one.run], one.onset, verdict)
                delay = (verdict.step or 0) - one.onset
                found.setdefault(verdict.rule, Score()).add(kind, delay)
    return dict(sorted(found.items()))


def macro_f1(found: Mapping[str, Score]) -> float:
    """Return the mean F1 over the rules, each as important as any other."""
    return statistics.fmean(score.f1 for score in found.values())


def wrong(
    runs: Mapping[str, Run], measured: Iterable[Measured], column: str
) -> list[tuple[Is, Verdict]]:
    """Return the verdicts of a column that are false or missed, by rule."""
    found = [
        (kind, verdict)
        for one in measured
        for verdict in one.verdicts
        if verdict.column == column
        and (kind := what_it_is(runs[one.run], one.onset, verdict)) in {Is.FALSE, Is.MISSED}
    ]
    return sorted(found, key=lambda pair: (pair[1].rule, pair[1].run))


def healthy_pairs(
    runs: Mapping[str, Run], measured: Iterable[Measured], column: str
) -> tuple[Sequence[Verdict], int]:
    """Return the findings on healthy runs, and how many pairs of rule and run were judged."""
    judged = [
        verdict
        for one in measured
        for verdict in one.verdicts
        if runs[one.run].healthy and verdict.column == column and verdict.outcome != NOT_EVALUATED
    ]
    return [one for one in judged if one.outcome == FOUND], len(judged)
