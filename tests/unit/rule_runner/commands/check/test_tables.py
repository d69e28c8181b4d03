"""What `check` prints: one table of trials and verdicts, findings last."""

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
    verdict_lines,
)
from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult, TrialSummary
from rule_runner.results.state import Coverage
from rule_runner.results.status import FindingState

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


def test_trials_with_findings_come_first_in_the_report() -> None:
    assert [trial.path for trial in ranked(ALL.trials)] == [
        *("/runs/bad", HOSTILE, "/runs/gone", "/runs/wrong", "/runs/fine")
    ]
    states = ["looks healthy", "cannot tell", "cannot tell", "broken", "cannot tell"]
    assert [trial.state for trial in ALL.trials] == states


def test_a_trial_whose_results_were_not_written_does_not_look_healthy() -> None:
    full = trial("/runs/full", reports.result("Fine"), problem="The disk is full.")
    stream = io.StringIO()
    print_results(CheckResult(trials=[full]), stream)
    assert stream.getvalue().splitlines()[:2] == [
        "/runs/full: cannot tell, judged by 1 of 1 rule",
        "  The disk is full.",
    ]


def test_each_verdict_has_the_lines_that_it_needs() -> None:
    assert [*verdict_lines(FINE)] == []
    assert [*verdict_lines(BAD)] == [
        "Bad (error): step 20, gradient/fc of worker_0, measured 1e-8, limit 1e-7",
        "no issues: Fine",
    ]
    assert [*verdict_lines(WRONG)] == ["Wrong: Error. Why."]
    assert [*verdict_lines(EMPTY)] == ["It looked for x. The trial holds no steps."]
    assert [*verdict_lines(GONE)] == ["It is gone."]
    noted = reports.result("Fine", notes=[f"note {number}" for number in range(5)])
    assert [*verdict_lines(trial("/runs/x", noted))] == [
        *("note: note 0", "note: note 1", "note: note 2")
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


def test_what_follows_from_a_root_cause_stands_below_it_in_a_sentence() -> None:
    ratio = reports.fired("WeightUpdateRatio")
    loss = outcomes.met(
        "LossNotDecreasing",
        rule="LossNotDecreasing",
        evidence=[Evidence(3, "loss", None, 9.0, 2.0, "Up.", summary="It is up.", advice="Mend.")],
    )
    assert [*verdict_lines(trial("/runs/x", loss, ratio))] == [
        "WeightUpdateRatio (error): step 20, gradient/fc of worker_0, measured 1e-8, limit 1e-7",
        "  follows: LossNotDecreasing (error): It is up.",
    ]
    assert [*verdict_lines(trial("/runs/x", loss))] == [
        "LossNotDecreasing (error): It is up. Mend. (step 3, measured 9, limit 2, Up)"
    ]


def test_a_warning_makes_a_trial_suspicious_and_a_recovered_one_does_not() -> None:
    stream = io.StringIO()
    recovered = outcomes.mild(state=FindingState.RECOVERED, recovered_at=9)
    trials = [trial("/runs/mild", outcomes.mild()), trial("/runs/back", recovered)]
    print_results(CheckResult(trials=trials), stream)
    assert stream.getvalue().splitlines()[:4] == [
        "/runs/back: looks healthy, judged by 1 of 1 rule",
        "  recovered: Mild (step 3 to 9)",
        "/runs/mild: suspicious since step 3, judged by 1 of 1 rule",
        "  Mild (warning): step 3, a, measured 5, limit 2",
    ]


def test_many_healthy_trials_are_one_line_but_those_with_something_to_say() -> None:
    stream = io.StringIO()
    healthy = [trial(f"/runs/{number}", reports.result("Fine")) for number in range(200)]
    noted = trial("/runs/noted", reports.result("Fine", notes=["Odd."]))
    print_results(CheckResult(trials=[*healthy, noted, BAD]), stream)
    assert stream.getvalue().splitlines() == [
        "200 trials look healthy: /runs/0, /runs/1, /runs/2 and 197 more.",
        "/runs/noted: looks healthy, judged by 1 of 1 rule",
        "  note: Odd.",
        "/runs/bad: broken since step 20, judged by 2 of 2 rules",
        "  Bad (error): step 20, gradient/fc of worker_0, measured 1e-8, limit 1e-7",
        "  no issues: Fine",
        "Checked 202 trials: 1 broken, 201 healthy.",
    ]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_output_leaves_out_healthy_trials_and_the_summary(stream: io.StringIO) -> None:
    print_results(ALL, stream, quiet=True)
    text = COLORS.sub("", stream.getvalue())
    assert all(name in text for name in ("/runs/bad", "/runs/gone", "/runs/wrong", "1mx"))
    assert not any(name in text for name in ("/runs/fine", "NotEvaluated", "Checked", "/out"))
    assert text.endswith("Trial 'x' does not exist.\n")


def test_quiet_output_is_empty_if_all_is_well() -> None:
    for stream in (io.StringIO(), Terminal()):
        print_results(CheckResult(trials=[FINE] * 9, results="/out"), stream, quiet=True)
        assert stream.getvalue() == ""


def test_plain_lines_elsewhere_than_on_a_terminal() -> None:
    stream = io.StringIO()
    print_results(ALL, stream)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "/runs/fine: looks healthy, judged by 1 of 7 rules"
    assert "/runs/bad: broken since step 20, judged by 2 of 2 rules" in lines
    assert "/runs/wrong: cannot tell, nothing was judged" in lines
    assert "/runs/\\x1b[31mx: cannot tell, nothing was judged (may still grow)" in lines
    explanation = (
        "NotEvaluated: rules that found no inputs in the trial or lack a parameter; "
        "results.json has their names and the reasons."
    )
    assert lines[-5:] == [
        explanation,
        "Trial 'x' does not exist.",
        "Checked 5 trials: 1 broken, 3 not judged, 1 healthy.",
        "Results: /out",
        "Report: /out/report.html",
    ]


def test_rules_without_verdicts_are_explained_only_if_any() -> None:
    stream = io.StringIO()
    print_results(CheckResult(trials=[BAD, GONE]), stream)
    assert "NotEvaluated" not in stream.getvalue()
    print_results(CheckResult(trials=[FINE], results="/out"), stream)
    assert "; results.json has their names and the reasons." in stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_on_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal()
    print_results(ALL, stream)
    text = COLORS.sub("", stream.getvalue())
    assert text.count("NotEvaluated: ") == 1
    assert max(map(len, text.partition("NotEvaluated: ")[0].splitlines())) <= width
    assert "looks healthy, judged by 1 of 7" in text
    assert "may still grow" in text
    assert text.index("/runs/fine") < text.index("/runs/gone") < text.index("/runs/bad")
    assert "\x1b[31mx" not in stream.getvalue()
    assert "verdicts" in text.splitlines()[1]
    assert text.endswith("Report: /out/report.html\n")
