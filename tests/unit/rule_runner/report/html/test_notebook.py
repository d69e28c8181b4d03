"""Results as HTML for notebooks: sentences and small curves, and nothing from a trial as HTML."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import outcomes
import pytest
import reports

from rule_core.severity import Severity
from rule_runner.report.html.notebook import (
    RUNS_IN_FULL,
    NotebookRun,
    ShownResult,
    evaluation_html,
    runs_html,
)
from rule_runner.results.file_names import MEASUREMENTS
from rule_runner.results.issues.incidents import RunState
from rule_runner.results.json_text import dump_json
from rule_runner.results.measurements import MeasurementsFile
from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult, summary_of_trial

MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{0}$\\href{javascript:x}{y}$"
TAGS = {
    *("div", "style", "section", "p", "b", "figure", "figcaption", "span", "i", "details"),
    *("summary", "table", "tr", "th", "td", "svg", "title", "desc", "line", "text", "rect"),
    *("g", "path"),
}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words += data


def parsed(page: str) -> _Tags:
    parser = _Tags()
    parser.feed(page)
    return parser


def evaluation(*rules: RuleResult, name: str = "mine", **more: Any) -> EvaluationResult:
    summary = summary_of_trial(name, f"/runs/{name}", rules)
    return EvaluationResult(trial=summary, rules=[*rules], **more)


def said(name: str, sentence: str, advice: str, **more: Any) -> RuleResult:
    finding = Evidence(20, "fc", None, 1e-8, 1e-7, None, summary=sentence, advice=advice)
    return reports.result(name, "IssuesFound", step=20, evidence=[finding], **more)


def measured(result: EvaluationResult, folder: Path, tensor: str = "fc") -> ShownResult:
    """Return a result with a curve of each of its rules."""
    record = reports.measurements(
        reports.series({0: 1.0, 10: 0.1, 20: 1e-8}, met=[20], tensor=tensor)
    )
    rules = {rule.configuration_name: record for rule in result.rules}
    (folder / MEASUREMENTS).write_text(dump_json(MeasurementsFile(rules=rules)))
    return ShownResult.of(result, folder)


def test_a_run_is_its_line_and_its_incidents_with_curves(tmp_path: Path) -> None:
    root = said("ExplodingTensor", "The loss is NaN.", "Lower the learning rate.")
    later = said("LossNotDecreasing", "The loss does not fall.", "Look at the data.")
    result = measured(evaluation(root, later, reports.result("AllZero")), tmp_path)
    words = parsed(evaluation_html(result)).words
    assert "mine: broken since step 20, judged by 3 of 3 rules" in words
    assert "ExplodingTensor (error): The loss is NaN." in words
    assert "Lower the learning rate." in words
    assert "follows: LossNotDecreasing: The loss does not fall." in words
    assert "2 IssuesFound, 1 NoIssuesFound" in words
    page = result._repr_html_()
    assert page.count('class="plot"') == 1  # of the root cause
    assert "mean |gradient|" in page


def test_without_measurements_the_findings_are_drawn(tmp_path: Path) -> None:
    result = ShownResult.of(evaluation(reports.fired("Mine")), tmp_path)  # which holds none
    assert "measured, where the rule reported something" in evaluation_html(result)
    nothing = evaluation(reports.result("Mine"))
    assert "<svg" not in evaluation_html(nothing)


def test_measurements_that_cannot_be_read_cost_the_curve_only(tmp_path: Path) -> None:
    (tmp_path / MEASUREMENTS).write_text("{")
    result = ShownResult.of(evaluation(reports.fired("Mine")), tmp_path)
    assert "Mine" in evaluation_html(result)


def test_only_measurements_of_issues_are_kept(tmp_path: Path) -> None:
    result = measured(evaluation(reports.result("Fine"), reports.fired("Bad")), tmp_path)
    assert [*vars(result)["measurements"].rules] == ["Bad"]


@pytest.mark.parametrize("hostile", [MARKUP, outcomes.HOSTILE], ids=["markup", "controls"])
def test_nothing_from_a_trial_is_html(tmp_path: Path, hostile: str) -> None:
    finding = Evidence(20, hostile, hostile, 1e-8, 1e-7, hostile, summary=hostile, advice=hostile)
    bad = reports.result(hostile, "IssuesFound", step=20, evidence=[finding], notes=[hostile])
    wrong = reports.result(f"x{hostile}", "Error", status_details=hostile)
    result = ShownResult.of(evaluation(bad, wrong, name=hostile, notes=[hostile]), tmp_path)
    vars(result)["measurements"] = MeasurementsFile(
        rules={hostile: reports.measurements(reports.series({20: 1e-8}, met=[20], tensor=hostile))}
    )
    page = runs_html(
        [NotebookRun(hostile, hostile, RunState.BROKEN, result, [hostile])], [hostile]
    ) + evaluation_html(result)
    found = parsed(page)
    assert found.tags <= TAGS
    assert not {name for name in found.attributes if name.startswith("on")}
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert not re.search(r"<(?:img|script|a|iframe)\b", page)
    # JupyterLab typesets formulas, in which links may be scripts, outside of this class only.
    assert page.startswith('<div class="rule-runner tex2jax_ignore mathjax_ignore">')


def test_a_failed_rule_is_shown_open() -> None:
    page = evaluation_html(evaluation(reports.result("Wrong", "Error", status_details="It broke.")))
    assert "<details open>" in page
    assert "It broke." in page
    assert 'class="run cannot-tell"' in page


def test_a_rule_has_its_own_severity() -> None:
    page = evaluation_html(evaluation(reports.fired("Odd", severity=Severity.WARNING)))
    assert "<b>Odd</b> (warning)" in page


def test_of_many_runs_the_later_ones_are_lines() -> None:
    result = evaluation(reports.fired("Bad"))
    run = NotebookRun("mine", "broken", RunState.BROKEN, result)
    page = runs_html([run] * (RUNS_IN_FULL + 5))
    assert page.count('class="run broken"') == RUNS_IN_FULL + 5
    assert page.count("<details") == RUNS_IN_FULL
