"""Scoring: how the verdicts of the rules agree with what is known about the runs."""

import enum
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from measuring import FOUND, NOT_EVALUATED, Measured, Verdict
from training_runs import Run

RESAMPLES: Final = 2000


class Is(enum.Enum):
    """What a verdict is, compared with what is known about the run."""

    FOUND = "found"
    MISSED = "missed"
    FALSE = "false"
    SILENT = "silent"
    UNJUDGED = "unjudged"
    CONSEQUENCE = "consequence"  # of the fault: counted neither way


def what_it_is(run: Run, onset: int, verdict: Verdict) -> Is:
    """Classify a verdict. A finding before the fault is false, whatever follows."""
    met = verdict.outcome == FOUND
    early = met and verdict.step is not None and verdict.step < onset
    if early:
        return Is.FALSE
    if verdict.rule in run.fires:
        return Is.FOUND if met else Is.MISSED
    if verdict.rule in run.may:
        return Is.CONSEQUENCE
    if verdict.outcome == NOT_EVALUATED:
        return Is.UNJUDGED
    return Is.FALSE if met else Is.SILENT


@dataclass(slots=True)
class Score:
    """How often verdicts were right.

    Attributes
    ----------
    delays
        Saved steps from a fault to its finding.
    faulty_judged, healthy_judged
        Number of judged runs that have a fault to find, and that have no fault at all.
    notes
        Number of runs with a note.
    """

    counts: dict[Is, int] = field(default_factory=lambda: dict.fromkeys(Is, 0))
    delays: list[int] = field(default_factory=list)
    faulty_judged: int = 0
    healthy_judged: int = 0
    notes: int = 0

    def add(self, run: Run, kind: Is, verdict: Verdict) -> None:
        """Count one verdict."""
        self.counts[kind] += 1
        if kind is Is.FOUND:
            self.delays.append(verdict.delay)
        if verdict.outcome != NOT_EVALUATED:
            self.faulty_judged += verdict.rule in run.fires
            self.healthy_judged += run.healthy
        self.notes += verdict.notes > 0

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


Key = Callable[[Run, Verdict], str]


def by_rule(_: Run, verdict: Verdict) -> str:
    """Return the key of a score for each rule."""
    return verdict.rule


def by_kind(run: Run, _: Verdict) -> str:
    """Return the key of a score for each kind of training."""
    return run.kind


def scores(
    runs: Mapping[str, Run], measured: Iterable[Measured], key: Key = by_rule
) -> dict[str, Score]:
    """Return the scores, by rule unless `key` says otherwise."""
    found: dict[str, Score] = {}
    for measurement in measured:
        run = runs[measurement.run]
        for verdict in measurement.verdicts:
            kind = what_it_is(run, measurement.onset, verdict)
            found.setdefault(key(run, verdict), Score()).add(run, kind, verdict)
    return dict(sorted(found.items()))


def macro_f1(rule_scores: Mapping[str, Score]) -> float:
    """Return the mean F1 over the rules that have one, each as important as any other."""
    return statistics.fmean(score.f1 for score in rule_scores.values() if not math.isnan(score.f1))


class Interval(NamedTuple):
    """A share or mean, and its 95 % interval."""

    value: float
    low: float
    high: float


def macro_f1_interval(runs: Mapping[str, Run], measured: Sequence[Measured]) -> Interval:
    """Return the macro F1 and its bootstrap percentile interval; runs are resampled."""
    rule_scores = scores(runs, measured)
    rules = {rule: at for at, rule in enumerate(rule_scores)}
    twice_found, wrong_count = np.zeros((2, len(measured), len(rules)))
    for row, measurement in enumerate(measured):
        for verdict in measurement.verdicts:
            kind = what_it_is(runs[measurement.run], measurement.onset, verdict)
            twice_found[row, rules[verdict.rule]] = 2 * (kind is Is.FOUND)
            wrong_count[row, rules[verdict.rule]] = kind in {Is.FALSE, Is.MISSED}
    count = len(measured)
    weights = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    with np.errstate(invalid="ignore"):
        f1 = weights @ twice_found / (weights @ (twice_found + wrong_count))
    low, high = np.quantile(np.nanmean(f1, axis=1), (0.025, 0.975))
    return Interval(macro_f1(rule_scores), float(low), float(high))


def wrong(runs: Mapping[str, Run], measured: Iterable[Measured]) -> list[tuple[Is, Verdict]]:
    """Return the verdicts that are false or missed, by rule."""
    pairs = [
        (kind, verdict)
        for measurement in measured
        for verdict in measurement.verdicts
        if (kind := what_it_is(runs[measurement.run], measurement.onset, verdict))
        in {Is.FALSE, Is.MISSED}
    ]
    return sorted(pairs, key=lambda pair: (pair[1].rule, pair[1].run))


def healthy_findings(
    runs: Mapping[str, Run], measured: Iterable[Measured]
) -> dict[str, list[Verdict]]:
    """Return the errors and warnings on each healthy run."""
    return {
        measurement.run: [verdict for verdict in measurement.verdicts if verdict.outcome == FOUND]
        for measurement in measured
        if runs[measurement.run].healthy
    }


def share_of_accused(findings: Mapping[str, Sequence[Verdict]]) -> Interval:
    """Return the share of healthy runs with an error or warning, and its Wilson interval."""
    return wilson(sum(map(bool, findings.values())), len(findings))


def wilson(part: int, whole: int) -> Interval:
    """Return a share and its Wilson interval."""
    from scipy.stats import binomtest

    interval = binomtest(part, whole).proportion_ci(0.95, method="wilson")
    return Interval(part / whole, interval.low, interval.high)
