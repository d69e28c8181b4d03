"""What people read: verdict, coverage, evidence; and names that do nothing to a terminal."""

import io
import re
from typing import Any

import msgspec
import outcomes
import pytest
from rich.console import Console

from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.report.text import evidence, headline, lines, print_table, sentence
from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult, TrialSummary
from rule_runner.results.state import Coverage
from rule_runner.results.status import NOT_ENOUGH, FindingState

ODD = "a\x1b[31mb\r\n\x07c\u202ed\u200e[bold]\x9b\ud800\u2028é"
HARMLESS = "a\\x1b[31mb\\r\\n\\x07c\\u202ed\\u200e[bold]\\x9b\\ud800\\u2028é"


def rule(**more: Any) -> RuleResult:
    plain: dict[str, Any] = {
        "configuration_name": "AllZero",
        "coverage": Coverage(judged=3, known=4, first=0, last=9),
        "trial": "/trial",
        "duration_s": 1.0,
        "rule_time_s": 0.5,
    }
    return outcomes.result(**(plain | more))


def of(*rules: RuleResult) -> EvaluationResult:
    summary = TrialSummary(
        name="t", path="/t", ended=True, steps=0, first_step=None, last_step=None, workers=[]
    )
    return EvaluationResult(trial=summary, rules=list(rules))


def shown(**more: Any) -> list[str]:
    return list(lines(of(rule(**more))))


def test_issues_stand_below_their_root_cause_and_name_it() -> None:
    loss = outcomes.met("loss", rule="LossNotDecreasing")
    told = [*lines(of(rule(), loss, outcomes.met("spike", rule="LossSpike")))]
    verdicts = [line for line in told if "Found" in line]
    assert verdicts == [
        "spike (LossSpike): IssuesFound at step 3",
        "loss (LossNotDecreasing): IssuesFound at step 3, may follow from spike",
        "AllZero: NoIssuesFound",
        "2 IssuesFound, 1 NoIssuesFound",
    ]
    assert told[-1] == "t: broken since step 3, judged by 3 of 3 rules"


def test_rules_that_were_left_out_were_not_evaluated_either() -> None:
    result = of(rule(), rule(outcome="NotEvaluated", configuration_name="Silent"))
    result = msgspec.structs.replace(result, left_out={"A": "No.", "B": "No."})
    assert [*lines(result, folded=True)][:3] == [
        "NoIssuesFound: AllZero",
        "NotEvaluated: 3 rules; the report has the reasons.",
        "1 NoIssuesFound, 3 NotEvaluated",
    ]


def test_the_same_advice_is_given_once() -> None:
    advised = [
        Evidence(step, name, None, 9.0, 2.0, None, summary=f"{name} is up.", advice=advice)
        for step, name, advice in ((3, "a", "Mend."), (3, "b", "Mend."), (4, "c", "End."))
    ]
    told = [*lines(of(outcomes.met(evidence=advised, findings_count=3)))]
    assert [line.partition(" (")[0] for line in told[2:]] == [
        *("  a is up. Mend.", "  b is up.", "  c is up. End.")
    ]


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([outcomes.mild()], "suspicious since step 3"),
        ([rule(), rule(outcome="Error")], "cannot tell"),
        ([rule(), rule(outcome="NotEvaluated")], "looks healthy"),
    ],
)
def test_the_state_of_a_run_is_that_of_its_rules(rules: list[RuleResult], told: str) -> None:
    judged = sum(rule.outcome.endswith("IssuesFound") for rule in rules)
    assert headline(rules) == f"{told}, judged by {judged} of {counted(len(rules), 'rule')}"


def test_a_problem_of_the_results_leaves_the_state_open() -> None:
    assert headline([rule()], problem="The disk is full.") == "cannot tell, judged by 1 of 1 rule"


def test_an_issue_speaks_through_its_first_finding_that_holds() -> None:
    first, second = (
        Evidence(step, name, None, 9.0, 2.0, None, summary=f"{name} is up.")
        for step, name in ((3, "a"), (7, "b"))
    )
    back = msgspec.structs.replace(first, state=FindingState.RECOVERED, recovered_at=5)
    held = outcomes.met(evidence=[back, second], state=FindingState.OPEN)
    assert (sentence(held), held.since) == ("b is up.", 7)
    assert headline([held]).startswith("broken since step 7,")
    over = outcomes.met(evidence=[back], state=FindingState.RECOVERED, recovered_at=5)
    assert (sentence(over), over.since) == ("a is up.", 3)
    assert (sentence(outcomes.met(evidence=[])), outcomes.met(evidence=[]).since) == ("", 3)


def test_a_healthy_run_says_what_its_verdict_rests_on() -> None:
    trial = msgspec.structs.replace(
        of().trial, saved=["losses", "weights"], not_saved=["gradients", "learning rates"]
    )
    rests = "looks healthy, judged by 1 of 3 rules from losses and weights"
    unseen = "; gradients and learning rates were not saved"
    assert headline([rule()], trial, ["A", "B"]) == rests + unseen
    whole = msgspec.structs.replace(trial, not_saved=[])
    assert headline([rule()], whole, ["A", "B"]) == rests


def test_healthy_rule_takes_two_lines() -> None:
    assert shown() == ["AllZero: NoIssuesFound", "  judged 3 of 4 steps (0 to 9)"]


def test_name_of_the_rule_is_reported_where_it_differs() -> None:
    assert shown(configuration_name="mine")[0] == "mine (AllZero): NoIssuesFound"


def test_coverage_tells_what_was_not_judged_and_why() -> None:
    coverage = Coverage(
        judged=0, known=4, skipped={"nothing read": 3, "odd": 1}, missing_workers={"worker_1": 2}
    )
    assert shown(coverage=coverage)[1] == (
        "  judged 0 of 4 steps; skipped 3: nothing read; skipped 1: odd; 2 steps without worker_1"
    )


def test_windows_are_called_windows() -> None:
    finding = Evidence(step=7, tensor="gpu0", worker="algo-1", measured=3.0, limit=70, note=None)
    coverage = Coverage(judged=3, known=4, first=0, last=9, missing_workers={"algo-2": 2})
    found = {"evidence": [finding], "findings_count": 1, "outcome": "IssuesFound", "step": 7}
    assert shown(unit="window", coverage=coverage, **found) == [
        "AllZero: IssuesFound at window 7",
        "  judged 3 of 4 windows (0 to 9); 2 windows without algo-2",
        "  window 7, gpu0 of algo-1, measured 3, limit 70",
    ]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "It is bad at step 7. Mend it. (measured 3, limit 2, Odd)"),
        ({"mode": "EVAL"}, "It is bad at step 7. Mend it. (EVAL, measured 3, limit 2, Odd)"),
        ({"note": "It is bad at step 7."}, "It is bad at step 7. Mend it. (measured 3, limit 2)"),
        ({"summary": "It is bad."}, "It is bad. Mend it. (step 7, measured 3, limit 2, Odd)"),
        (
            {"advice": msgspec.UNSET, "measured": None, "limit": None, "note": None},
            "It is bad at step 7.",
        ),
        (
            {"muted": "Known."},
            "muted (Known): It is bad at step 7. Mend it. (measured 3, limit 2, Odd)",
        ),
    ],
)
def test_the_sentence_of_a_finding_stands_before_its_numbers(
    more: dict[str, Any], line: str
) -> None:
    said = {"note": "Odd.", "summary": "It is bad at step 7.", "advice": "Mend it."}
    where = {"step": 7, "tensor": "loss", "worker": "worker_0", "measured": 3.0, "limit": 2.0}
    assert evidence(Evidence(**(where | said | more))) == line


def test_what_a_trial_of_windows_holds_is_reported_once() -> None:
    held = "Trial '/p' holds 3 windows of 60 s, the nodes 'algo-1' and no framework metrics."
    sought = f"{NOT_ENOUGH} It looked for framework metrics. {held}"
    none = f"{NOT_ENOUGH} Rule 'R' judged none of 4 known steps (skipped for no GPU: 4). {held}"
    told = list(
        lines(
            of(
                *(
                    rule(outcome="NotEvaluated", status_details=text, unit="window")
                    for text in (sought, none)
                )
            )
        )
    )
    assert told == [
        "AllZero: NotEvaluated",
        "  judged 3 of 4 windows (0 to 9)",
        "  It looked for framework metrics.",
        "AllZero: NotEvaluated",
        "  judged 3 of 4 windows (0 to 9)",
        "2 NotEvaluated",
        held,
        "t: cannot tell, nothing was judged",
    ]


@pytest.mark.parametrize(("seconds", "text"), [(4.9, ""), (65.04, " in 65.0 s")])
def test_slow_rule_is_reported(seconds: float, text: str) -> None:
    assert shown(rule_time_s=seconds)[1] == f"  judged 3 of 4 steps (0 to 9){text}"


def test_hit_is_shown_with_its_evidence_and_not_with_the_wire_text() -> None:
    evidence = [
        Evidence(4, "fc/w", "worker_0", 0.00012345678, 1e-3, "Small."),
        Evidence(4, None, None, "NaN", None, None),
        Evidence(5, "fc/b", None, 3, True, None),
        Evidence(6, None, None, None, None, None),
        Evidence(7, None, None, None, None, None),
    ]
    assert shown(
        outcome="IssuesFound",
        status="IssuesFound",
        status_details="RuleEvaluationConditionMet: ...\n",
        step=4,
        evidence=evidence,
        findings_count=7,
    ) == [
        "AllZero: IssuesFound at step 4",
        "  judged 3 of 4 steps (0 to 9)",
        "  step 4, fc/w of worker_0, measured 1.23457e-4, limit 0.001, Small.",
        "  step 4, measured NaN",
        "  step 5, fc/b, measured 3, limit True",
        "  and 4 more findings",
    ]


def test_details_and_notes_are_shown_once_each() -> None:
    notes = ["Stopped by signal SIGTERM.", "one", "two", "three", "four", "five"]
    details = "Stopped by signal SIGTERM. Nothing was judged.\n"
    assert shown(outcome="Stopped", status_details=details, notes=notes)[2:] == [
        "  Stopped by signal SIGTERM. Nothing was judged.",
        "  note: one",
        "  note: two",
        "  note: three",
        "  and 2 more notes",
    ]


def test_names_do_nothing_to_a_terminal() -> None:
    assert printable(ODD) == HARMLESS
    odd = rule(
        configuration_name=ODD,
        rule=ODD,
        outcome="Error",
        status_details=ODD,
        evidence=[Evidence(1, ODD, ODD, ODD, ODD, ODD)],
        coverage=Coverage(skipped={ODD: 1}, missing_workers={ODD: 1}),
        notes=[ODD + "!"],
    )
    text = "\n".join(lines(of(odd)))
    assert printable(text.replace("\n", " ")) == text.replace("\n", " ")
    stream = io.StringIO()
    print_table(Console(file=stream, force_terminal=True, width=400), of(odd))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert printable(plain.replace("\n", " ")) == plain.replace("\n", " ")
    assert "[bold]" in plain


def test_table_has_a_row_for_each_rule() -> None:
    stream = io.StringIO()
    failed = rule(configuration_name="other", outcome="Strange", status_details="Odd.")
    print_table(Console(file=stream, width=100), of(rule(), failed))
    text = stream.getvalue()
    for part in ("rule and verdict", "coverage and evidence", "NoIssuesFound", "other", "Odd."):
        assert part in text


def test_rules_without_issues_are_folded_into_a_line_each() -> None:
    unjudged = [
        rule(configuration_name=name, outcome="NotEvaluated", status_details="No inputs.")
        for name in ("first", "second")
    ]
    noted = [rule(configuration_name=name, notes=["Odd."]) for name in ("fine", "well")]
    told = [
        "NoIssuesFound: fine, well",
        "note: Odd.",
        "NotEvaluated: 2 rules; the report has the reasons.",
        "2 NoIssuesFound, 2 NotEvaluated",
        "t: looks healthy, judged by 2 of 4 rules",
    ]
    assert [*lines(of(*noted, *unjudged), folded=True)] == told
    stream = io.StringIO()
    print_table(Console(file=stream, width=100), of(*noted, *unjudged), folded=True)
    assert stream.getvalue().splitlines() == told
    found = [*lines(of(*noted, *unjudged, outcomes.met("Bad")), folded=True)]
    assert found[0] == "Bad (AllZero): IssuesFound at step 3"
