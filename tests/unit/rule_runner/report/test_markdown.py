"""Results as Markdown: a table of trials, a line for each finding, and names as code."""

from pathlib import Path
from typing import Any

import pytest
import reports

from rule_runner.report.markdown import MOST_CHARACTERS, MOST_FINDINGS, code, markdown, title
from rule_runner.report.saved_results import Saved, read
from rule_runner.results.schema import Evidence, RuleResult
from rule_runner.results.status import FindingState


def saved(root: Path, *results: RuleResult) -> Saved:
    for number, result in enumerate(results):
        reports.save(root / str(number), result)
    return read([root])


def test_a_table_and_a_line_for_each_finding(tmp_path: Path) -> None:
    failed = reports.result("Overfit", "Error", status_details="ClientError: no loss.", trial="/b")
    text = markdown(saved(tmp_path, reports.fired(trial="/a"), failed, reports.result(trial="/c")))
    assert text.splitlines() == [
        "### rule-runner: 2 of 3 trials with issues",
        "",
        "| trial | outcome |",
        "|---|---|",
        "| `a` | 1 IssuesFound |",
        "| `b` | 1 Error |",
        "| `c` | 1 NoIssuesFound |",
        "",
        (
            "- **issue** `VanishingGradient` in `a`: `step 20, gradient/fc of worker_0, "
            "measured 1e-8, limit 1e-7`"
        ),
        "- **Error** `Overfit` in `b`: `no loss.`",
    ]


def test_what_has_recovered_is_a_note_with_its_step(tmp_path: Path) -> None:
    back: dict[str, Any] = {"state": FindingState.RECOVERED, "recovered_at": 60}
    finding = Evidence(20, "loss", None, 9.0, 3.0, None, **back)
    recovered = reports.result("Spike", "IssuesFound", step=20, evidence=[finding], **back)
    text = markdown(saved(tmp_path, recovered)).splitlines()
    assert text[0] == "### rule-runner: No issues in 1 trial"
    assert text[4:] == [
        "| `mine` | 1 recovered |",
        "",
        (
            "- **recovered** `Spike` in `mine`: `step 20, loss, measured 9, limit 3, "
            "recovered at step 60`"
        ),
    ]


def test_results_without_issues_are_a_title(tmp_path: Path) -> None:
    assert title(saved(tmp_path, reports.result())) == "No issues in 1 trial"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("@team", "`@team`"),
        ("a`b", "`` a`b ``"),
        ("``", "``` `` ```"),
        ("a|b", r"`a\|b`"),
        ("<img>", "`<img>`"),
        ("a\nb", r"`a\nb`"),
    ],
)
def test_names_are_code(name: str, shown: str) -> None:
    assert code(name) == shown


def test_many_findings_are_counted(tmp_path: Path) -> None:
    results = [reports.fired(trial=f"/{number}") for number in range(MOST_FINDINGS + 2)]
    assert markdown(saved(tmp_path, *results)).rstrip().endswith("\n- and 2 more")


def test_a_long_text_is_cut_at_a_line(tmp_path: Path) -> None:
    results = [reports.fired(tensor=f"{number:0>600}") for number in range(150)]
    text = markdown(saved(tmp_path, *results))
    assert MOST_CHARACTERS - 800 < len(text) < MOST_CHARACTERS + 50
    assert text.endswith("`\n\nThe rest is in the report.\n")
