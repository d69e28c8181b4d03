"""Lets one rule judge the rows of a log in memory, with the collections of its names."""

from collections.abc import Callable, Sequence
from typing import Any

from judging import Judged
from list_source import ListSource, Row, source_index, source_trial

from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from smdebug.core.modes import ModeKeys
from smdebug.rules import Rule
from smdebug.rules.extensions import Severity


def rows_of(**columns: Sequence[float]) -> list[Row]:
    """Return rows 0, 1, 2, ... with a value of each column."""
    return [
        (step, dict(zip(columns, values, strict=True)))
        for step, values in enumerate(zip(*columns.values(), strict=True))
    ]


def judge_rows(
    rule_class: type[Rule],
    *workers: Sequence[Row],
    modes: dict[int, ModeKeys] | None = None,
    **params: Any,
) -> Judged:
    """Let a rule judge each step, then the end, whatever it finds; each list is a worker's."""
    index = source_index(*(ListSource(*rows) for rows in workers), modes=modes)
    index.refresh()
    index.finish()
    trial = source_trial(index)
    invoker = InProcessInvoker(rule_class.__name__, rule_class(trial, **params), [trial])
    results = {step: invoker.judge(step) for step in trial.steps(show_incomplete_steps=True)}
    last = max(results)
    end = invoker.finish(last)
    assert InvocationOutcome.FAILED not in {end.did, *(each.did for each in results.values())}
    findings = [finding for each in (*results.values(), end) for finding in each.findings]
    met = [step for step, each in results.items() if each.did is InvocationOutcome.MET]
    if end.did is InvocationOutcome.MET and last not in met:
        met.append(last)
    skipped = {
        step: each.reason for step, each in results.items() if each.did is InvocationOutcome.SKIPPED
    }
    return Judged(met, skipped, findings)


def verdicts(judged: Judged) -> list[tuple[int, Severity]]:
    """Return the step and the severity of each finding."""
    return [(finding.step, finding.severity) for finding in judged.findings]


def first_of(judged: Judged, severity: Severity | None = None) -> int | None:
    """Return the step of the first finding of a severity, or of the first that is no note."""
    for step, its in verdicts(judged):
        if its is severity or (severity is None and its is not Severity.NOTE):
            return step
    return None


def accused(rule_class: type[Rule], run: Callable[[int], Sequence[Row]], runs: int) -> list[int]:
    """Return the seeds of the runs that a rule accuses: of more than a note."""
    return [seed for seed in range(runs) if judge_rows(rule_class, run(seed)).met]
