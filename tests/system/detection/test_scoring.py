"""Scoring: verdicts compared with what is known about runs, and tables of them."""

import math
from pathlib import Path

import pytest
from measuring import Measured, Verdict
from scoring import (
    Is,
    by_kind,
    healthy_findings,
    macro_f1,
    macro_f1_interval,
    scores,
    share_of_accused,
    what_it_is,
    wrong,
)
from tables import Table, cells, filled, rules_by_kind_table, scores_table, write_page
from training_runs import HELD_OUT, Run

PAGE = Path(__file__).parents[3] / "docs" / "detection.md"


def _train(_: Path) -> int:
    return 0


FAULTY = Run("bad", "", _train, "a fault", frozenset({"AllZero"}), {"DeadRelu": "why"})
HEALTHY = Run("good", "", _train, kind="adversarial")
RUNS = {"bad": FAULTY, "good": HEALTHY}


def verdict(run: str, rule: str, outcome: str, step: int | None = None, delay: int = 0) -> Verdict:
    return Verdict(run, rule, outcome, step, delay=delay)


MEASURED = [
    Measured("bad", 10, (verdict("bad", "AllZero", "IssuesFound", 14, delay=2),)),
    Measured("good", 0, (verdict("good", "AllZero", "IssuesFound", 3),)),
]


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
    rule_scores = scores(RUNS, MEASURED)
    assert cells(rule_scores["AllZero"]) == ("1", "1", "0", "0", "0.50", "1.00", "0.67", "2")
    assert (rule_scores["AllZero"].faulty_judged, rule_scores["AllZero"].healthy_judged) == (1, 1)
    assert math.isclose(2 / 3, macro_f1(rule_scores))


def test_scores_by_kind_of_training() -> None:
    kinds = scores(RUNS, MEASURED, by_kind)
    assert {kind: cells(score)[:2] for kind, score in kinds.items()} == {
        "adversarial": ("0", "1"),
        "supervised": ("1", "0"),
    }


def test_notes_are_counted_but_are_no_findings() -> None:
    note = verdict("good", "AllZero", "NoIssuesFound")._replace(notes=3)
    score = scores(RUNS, [Measured("good", 0, (note,))])["AllZero"]
    assert (score.notes, score.counts[Is.FALSE], score.counts[Is.SILENT]) == (1, 0, 1)


def test_interval_of_macro_f1_is_that_of_resampled_runs() -> None:
    # Resamples with the faulty run alone score 1, with the healthy one alone 0.
    interval = macro_f1_interval(RUNS, MEASURED)
    assert interval == (pytest.approx(2 / 3), 0.0, 1.0)
    perfect = [MEASURED[0], MEASURED[0]]
    assert macro_f1_interval(RUNS, perfect) == (1.0, 1.0, 1.0)


def test_share_of_accused_runs_counts_runs_and_has_a_wilson_interval() -> None:
    pytest.importorskip("scipy")
    twice = verdict("a", "AllZero", "IssuesFound", 3)
    findings = {"a": [twice, twice], **{str(number): [] for number in range(24)}}
    # Wilson's interval of 1 in 25, as in statistical tables.
    assert share_of_accused(findings) == pytest.approx((0.04, 0.0071, 0.1954), abs=1e-4)


def test_wrong_verdicts_and_healthy_findings_are_listed() -> None:
    false = verdict("good", "AllZero", "IssuesFound", 3)
    silent = verdict("good", "TreeDepth", "NotEvaluated")
    missed = verdict("bad", "AllZero", "NoIssuesFound")
    measured = [Measured("bad", 0, (missed,)), Measured("good", 0, (false, silent))]
    assert [(Is.MISSED, missed), (Is.FALSE, false)] == wrong(RUNS, measured)
    assert {"good": [false]} == healthy_findings(RUNS, measured)


def test_scores_are_listed_by_rule_and_part() -> None:
    runs = RUNS | {"good": Run("good", "", _train, part=HELD_OUT)}
    assert scores_table(runs, MEASURED).csv().splitlines()[1:] == [
        "AllZero,held-out,0,1,0,0,0.00,,0.00,,0,1,0",
        "AllZero,tuned,1,0,0,0,1.00,1.00,1.00,2,1,0,0",
    ]


def test_counts_are_listed_by_rule_and_kind() -> None:
    assert rules_by_kind_table(RUNS, MEASURED).rows == [
        ["AllZero", "adversarial", "0", "1", "0", "0"],
        ["AllZero", "supervised", "1", "0", "0", "0"],
    ]


def test_tables_stand_between_their_markers() -> None:
    page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
    table = Table(["k", "v"], [["1", "\\2"]])
    expected = "a\n<!-- x -->\n\n| k | v |\n| --- | --- |\n| 1 | \\2 |\n\n<!-- /x -->\nb\n"
    assert expected == filled(page, {"x": table})
    assert expected == filled(expected, {"x": table})


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="one place for the table 'x', got 0"):
        filled("a", {"x": Table(["k"], [])})


def test_summaries_go_to_the_page_and_all_tables_to_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scipy")
    monkeypatch.setattr("tables.RESULTS", tmp_path)
    page = tmp_path / "detection.md"
    page.write_text(PAGE.read_text("utf-8"), "utf-8")
    write_page(page, RUNS, MEASURED)
    assert (
        "| tuned | adversarial | 1 | 1 of 1 = 100.0% (20.7% to 100.0%) | 0.00 |"
        in page.read_text("utf-8")
    )
    names = {path.name for path in tmp_path.glob("*.csv")}
    assert names == {"runs.csv", "scores.csv", "kinds.csv", "rules_by_kind.csv", "wrong.csv"}
    assert {
        path.name for path in (PAGE.parents[1] / "benchmarks/detection/results").iterdir()
    } > names
