"""Scoring: verdicts beside what is known of runs, and tables of them."""

import math
from pathlib import Path

import pytest
from measuring import LITERAL, SHIPPED, Measured, Verdict
from scoring import Is, healthy_pairs, macro_f1, scores, what_it_is, wrong
from tables import cells, filled, markdown
from training_runs import Run


def _train(_: Path) -> int:
    return 0


FAULTY = Run("bad", "", _train, "a fault", frozenset({"AllZero"}), {"DeadRelu": "why"})
HEALTHY = Run("good", "", _train)
RUNS = {"bad": FAULTY, "good": HEALTHY}


def verdict(run: str, rule: str, outcome: str, step: int | None = None) -> Verdict:
    return Verdict(run, rule, SHIPPED, outcome, step)


@pytest.mark.parametrize(
    ("run", "rule", "outcome", "step", "expected"),
    [
        pytest.param(FAULTY, "AllZero", "IssuesFound", 10, Is.FOUND, id="fault-found-at-once"),
        pytest.param(FAULTY, "AllZero", "IssuesFound", 9, Is.FALSE, id="found-before-the-fault"),
        pytest.param(FAULTY, "AllZero", "NoIssuesFound", None, Is.MISSED, id="fault-missed"),
        pytest.param(FAULTY, "AllZero", "NotEvaluated", None, Is.MISSED, id="fault-not-judged"),
        pytest.param(FAULTY, "DeadRelu", "IssuesFound", 12, Is.CONSEQUENCE, id="consequence"),
        pytest.param(FAULTY, "DeadRelu", "IssuesFound", 3, Is.FALSE, id="consequence-too-early"),
        pytest.param(FAULTY, "DeadRelu", "NoIssuesFound", None, Is.CONSEQUENCE, id="none"),
        pytest.param(FAULTY, "TreeDepth", "IssuesFound", 12, Is.FALSE, id="of-another-rule"),
        pytest.param(HEALTHY, "AllZero", "NoIssuesFound", None, Is.SILENT, id="silent"),
        pytest.param(HEALTHY, "AllZero", "NotEvaluated", None, Is.UNJUDGED, id="not-judged"),
    ],
)
def test_what_a_verdict_is(
    run: Run, rule: str, outcome: str, step: int | None, expected: Is
) -> None:
    onset = 0 if run.healthy else 10
    assert expected is what_it_is(run, onset, verdict(run.name, rule, outcome, step))


def test_scores_count_delays_and_shares() -> None:
    measured = [
        Measured("bad", 10, (verdict("bad", "AllZero", "IssuesFound", 14),)),
        Measured("good", 0, (verdict("good", "AllZero", "IssuesFound", 3),)),
    ]
    found = scores(RUNS, measured, SHIPPED)
    assert cells(found["AllZero"]) == ("1", "1", "0", "0", "0.50", "1.00", "0.67", "4")
    assert math.isclose(2 / 3, macro_f1(found))
    assert list(scores(RUNS, measured, LITERAL)) == []


def test_wrong_verdicts_and_healthy_findings_are_listed() -> None:
    false = verdict("good", "AllZero", "IssuesFound", 3)
    silent = verdict("good", "TreeDepth", "NotEvaluated")
    missed = verdict("bad", "AllZero", "NoIssuesFound")
    measured = [Measured("bad", 0, (missed,)), Measured("good", 0, (false, silent))]
    assert [(Is.MISSED, missed), (Is.FALSE, false)] == wrong(RUNS, measured, SHIPPED)
    assert ([false], 1) == healthy_pairs(RUNS, measured, SHIPPED)


def test_tables_stand_between_their_markers() -> None:
    page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
    table = markdown(["k", "v"], [["1", "\\2"]])
    expected = "a\n<!-- x -->\n\n| k | v |\n| --- | --- |\n| 1 | \\2 |\n\n<!-- /x -->\nb\n"
    assert expected == filled(page, {"x": table})
    assert expected == filled(expected, {"x": table})


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="one place for the table 'x', got 0"):
        filled("a", {"x": ""})
