"""What `check` prints: one table of trials and verdicts, findings first."""

import io
import re
from typing import Any

import outcomes
import pytest
import reports

from rule_core.severity import Severity
from rule_runner.commands.check.tables import (
    CheckedTrial,
    CheckResult,
    print_results,
    ranked,
    state,
    verdict_lines,
)
from rule_runner.results.schema import EvaluationResult, RuleResult, TrialSummary
from rule_runner.results.state import Coverage

HOSTILE = "/runs/\x1b[31mx"
COLORS = re.compile(r"\x1b\[[\d;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def trial(path: str, *rules: RuleResult, ended: bool = True, **more: Any) -> CheckedTrial:
    summary = TrialSummary(
        name=path, path=path, ended=ended, steps=4, first_step=0, last_step=3, workers=["worker_0"]
    )
    return CheckedTrial(
        path=path, evaluation=EvaluationResult(trial=summary, rules=[*rules]), **more
    )


def silent(name: str) -> RuleResult:
    details = (
        "InsufficientInformationForRuleInvocation: It looked for x. "
        f"Trial {HOSTILE!r} holds no steps."
    )
    return reports.result(name, "NotEvaluated", status_details=details, coverage=Coverage(known=4))


FINE = trial("/runs/fine", reports.result("Fine"), *map(silent, "ABCDE"), left_out={"F": "No."})
BAD = trial("/runs/bad", reports.result("Fine"), reports.fired("Bad"))
WRONG = trial("/runs/wrong", reports.result("Wrong", "Error", status_details="ClientError: Why."))
EMPTY = trial(HOSTILE, silent("A"), ended=False)
GONE = CheckedTrial(path="/runs/gone", problem="It is gone.", exit_code=1)
ALL = CheckResult(
    trials=[FINE, EMPTY, GONE, BAD, WRONG],
    problems=["Trial 'x' does not exist."],
    results="/out",
    report="/out/report.html",
)


def test_trials_with_findings_come_first() -> None:
    assert [trial.path for trial in ranked(ALL.trials)] == [
        *("/runs/bad", "/runs/gone", "/runs/wrong", HOSTILE, "/runs/fine")
    ]
    states = ["without issues", "not judged", "with errors", "with issues", "with errors"]
    assert [*map(state, ALL.trials)] == states


def test_each_verdict_has_the_lines_that_it_needs() -> None:
    assert [*verdict_lines(FINE)] == ["no issues: Fine"]
    assert [*verdict_lines(BAD)] == [
        "Bad (error): step 20, gradient/fc of worker_0, measured 1e-8, limit 1e-7",
        "no issues: Fine",
    ]
    assert [*verdict_lines(WRONG)] == ["Wrong: Error. Why."]
    assert [*verdict_lines(EMPTY)] == ["It looked for x. The trial holds no steps."]
    assert [*verdict_lines(GONE)] == ["It is gone."]
    noted = reports.result("Fine", notes=[f"note {number}" for number in range(5)])
    assert [*verdict_lines(trial("/runs/x", noted))] == [
        *("no issues: Fine", "note: note 0", "note: note 1", "note: note 2")
    ]


def test_notes_are_listed_on_request_and_warnings_can_be_left_out() -> None:
    mild = trial("/runs/mild", outcomes.mild())
    warning = "Mild (warning): step 3, a, measured 5, limit 2"
    assert [*verdict_lines(mild)] == [warning]
    assert [*verdict_lines(mild, Severity.ERROR)] == ["warnings: Mild"]
    assert [*verdict_lines(mild, Severity.NOTE)] == [
        warning,
        "Mild: noted: step 2, Odd.",
        "Mild: muted (Known): step 3, b, measured 5, limit 2",
    ]


def test_plain_lines_elsewhere_than_on_a_terminal() -> None:
    stream = io.StringIO()
    print_results(ALL, stream)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "/runs/bad: 1 IssuesFound, 1 NoIssuesFound"
    assert "/runs/fine: 1 NoIssuesFound, 6 NotEvaluated" in lines
    assert "/runs/\\x1b[31mx: nothing was judged (may still grow)" in lines
    explanation = (
        "NotEvaluated: rules that found no inputs in the trial or lack a parameter; "
        "results.json has their names and the reasons."
    )
    assert lines[-5:] == [
        explanation,
        "Trial 'x' does not exist.",
        "Checked 5 trials: 1 with issues, 2 with errors, 1 not judged, 1 without issues.",
        "Results: /out",
        "Report: /out/report.html",
    ]


def test_rules_without_verdicts_are_explained_only_if_any() -> None:
    stream = io.StringIO()
    print_results(CheckResult(trials=[BAD, GONE]), stream)
    assert "NotEvaluated" not in stream.getvalue()
    print_results(CheckResult(trials=[FINE]), stream)
    assert "; results.json has their names and the reasons." in stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_on_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal()
    print_results(ALL, stream)
    text = COLORS.sub("", stream.getvalue())
    assert text.count("NotEvaluated: ") == 1
    assert max(map(len, text.partition("NotEvaluated: ")[0].splitlines())) <= width
    assert "1 NoIssuesFound, 6 NotEvaluated" in text
    assert "may still grow" in text
    assert text.index("/runs/bad") < text.index("/runs/gone") < text.index("/runs/fine")
    assert "\x1b[31mx" not in stream.getvalue()
    assert "verdicts" in text.splitlines()[1]
    assert text.endswith("Report: /out/report.html\n")
