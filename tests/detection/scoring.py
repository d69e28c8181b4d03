"""Scoring: how the verdicts of the rules agree with what is known of the runs."""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from measuring import FOUND, JUDGING, NOT_EVALUATED, Verdict
from training_runs import Run


@dataclass(slots=True)
class Score:
    """How often a rule was right.

    Attributes
    ----------
    delays
        Steps from the beginning of a fault to its finding.
    false
        Findings where there is nothing to find.
    missed
        What was not found though it is there.
    """

    delays: list[int] = field(default_factory=list)
    silent: int = 0
    unjudged: int = 0
    false: list[Verdict] = field(default_factory=list)
    missed: list[Verdict] = field(default_factory=list)

    @property
    def found(self) -> int:
        return len(self.delays)

    @property
    def precision(self) -> float:
        return _share(self.found, self.found + len(self.false))

    @property
    def recall(self) -> float:
        return _share(self.found, self.found + len(self.missed))

    @property
    def f1(self) -> float:
        return _share(2 * self.found, 2 * self.found + len(self.false) + len(self.missed))

    @property
    def delay(self) -> float:
        """Median of the delays; NaN where nothing was found."""
        return statistics.median(self.delays) if self.delays else math.nan


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def scores(
    runs: Mapping[str, Run], onsets: Mapping[str, int], verdicts: Iterable[Verdict], column: str
) -> dict[str, Score]:
    """Return the scores of a column by rule; consequences of faults count neither way."""
    found = {rule: Score() for rule in JUDGING}
    for one in verdicts:
        if one.column == column:
            _count(found[one.rule], runs[one.run], onsets[one.run], one)
    return found


def _count(score: Score, run: Run, onset: int, one: Verdict) -> None:
    met = one.outcome == FOUND
    if one.rule in run.fires:
        # A finding before the fault began is none of this fault.
        if met and one.step is not None and one.step >= onset:
            score.delays.append(one.step - onset)
        elif met:
            score.false.append(one)
        else:
            score.missed.append(one)
    elif one.rule in run.may:
        return
    elif met:
        score.false.append(one)
    elif one.outcome == NOT_EVALUATED:
        score.unjudged += 1
    else:
        score.silent += 1


def macro_f1(found: Mapping[str, Score]) -> float:
    """Return the mean F1 over the rules that have positives."""
    return statistics.fmean(score.f1 for score in found.values() if score.found or score.missed)


def healthy_findings(
    runs: Mapping[str, Run], verdicts: Iterable[Verdict], column: str
) -> tuple[list[Verdict], int]:
    """Return the findings on healthy runs, and how many pairs of rule and run were judged."""
    judged = [
        one
        for one in verdicts
        if one.column == column and runs[one.run].healthy and one.outcome != NOT_EVALUATED
    ]
    return [one for one in judged if one.outcome == FOUND], len(judged)
