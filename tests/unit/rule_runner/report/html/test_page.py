"""The page of a report as text: what stands in it, and what a stranger's names cannot do."""

import re
from html.parser import HTMLParser
from pathlib import Path

import outcomes
import pytest
import reports

from builtin_rules import RULES
from builtin_rules.rule_page import rule_page
from rule_runner.errors import OutputError
from rule_runner.report import write_report
from rule_runner.results.schema import ActionResult, Evidence, RuleResult
from rule_runner.results.state import Coverage
from rule_runner.results.status import FindingState
from smdebug.rules.extensions import Page

HOSTILE = '</script><img src=x onerror="hit()">\u202e\x1b[31m{{ 7 * 7 }}&amp;'
HARMLESS = '</script><img src=x onerror="hit()">\\u202e\\x1b[31m{{ 7 * 7 }}&amp;'
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Collects elements, and texts outside scripts and styles; checks that tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in {"script", "style"}:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def written(folder: Path, title: str = "mine") -> tuple[str, Reader]:
    path = write_report(folder, title)
    assert path == folder / "report.html"
    html = path.read_text("utf-8")
    reader = Reader()
    reader.feed(html)
    reader.close()
    return html, reader


def page_of(tmp_path: Path, *results: RuleResult) -> Reader:
    for one in results:
        reports.save(tmp_path / one.configuration_name, one)
    return written(tmp_path)[1]


def test_a_verdict_with_its_coverage_and_evidence(tmp_path: Path) -> None:
    text = page_of(tmp_path, reports.fired()).text
    assert "Issues found 1" in text
    assert "VanishingGradient ✕ Issues found at step 20" in text
    assert "1 finding." in text
    assert (
        "Coverage, parameters and versions Judged 3 of 4 steps (0 to 20); skipped 1: no gra" in text
    )
    assert "20 gradient/fc worker_0 1e-8 1e-7" in text


def test_what_to_do_stands_where_a_built_in_rule_fired(tmp_path: Path) -> None:
    remedy = rule_page(RULES["VanishingGradient"]).remedy
    assert "Find the last layer above the threshold" in remedy
    text = page_of(tmp_path, reports.fired()).text
    assert "What to do Find the last layer above the threshold: the cause is" in text


@pytest.mark.parametrize("one", [reports.result(), reports.fired("MyRule")])
def test_no_advice_without_a_finding_of_a_rule_that_has_some(
    tmp_path: Path, one: RuleResult
) -> None:
    assert "What to do" not in page_of(tmp_path, one).text


def test_a_rule_without_a_page_gives_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtin_rules.rule_page.FOLDER", tmp_path)
    assert "What to do" not in page_of(tmp_path, reports.fired()).text


def test_advice_cannot_bring_html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(why="", save="", missing="", remedy="- <b>do</b> `it`")
    monkeypatch.setattr(RULES["VanishingGradient"], "PAGE", page)
    reader = page_of(tmp_path, reports.fired())
    assert "<b>do</b> it" in reader.text


def test_silence_never_reads_as_health(tmp_path: Path) -> None:
    one = reports.result(
        outcome="NotEvaluated",
        status_details="InsufficientInformationForRuleInvocation: It looked for 'gradients'.",
        coverage=Coverage(0, {"no gradients": 4}, 4),
    )
    text = page_of(tmp_path, one).text
    assert "Not evaluated 1" in text
    assert (
        "No step was judged, so the training may still be faulty. It looked for 'gradients'."
    ) in text
    assert "Judged 0 of 4 steps; skipped 4: no gradients." in text


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (reports.result(outcome="Error", status_details="It is bad."), "Error. It is bad."),
        (reports.result(outcome="Stopped", status_details="A stop."), "Stopped. A stop."),
        (reports.result(outcome="Unheard"), "! Error"),
        (reports.result(mode="observe"), "observe only"),
        (reports.result(notes=["A note."]), "Notes A note."),
        (
            reports.result(actions=[ActionResult("sms", "+1***", "failed", "No.", "now")]),
            "Actions sms (+1***): failed. No.",
        ),
        (reports.result(rule="Other"), "rule Other"),
        (reports.result(trial_ended=False), "it had not ended"),
        (reports.result(parameters={"threshold": None}), "threshold not given"),
        (reports.result(coverage=Coverage(1, {}, 1, 0, 0, {"worker_1": 2})), "2 without worker_1"),
    ],
)  # fmt: skip
def test_what_else_is_reported(tmp_path: Path, one: RuleResult, said: str) -> None:
    assert said in page_of(tmp_path, one).text


def test_no_results_are_reported(tmp_path: Path) -> None:
    assert "No results." in written(tmp_path)[1].text


def test_notes_and_muted_findings_do_not_count(tmp_path: Path) -> None:
    text = page_of(tmp_path, outcomes.mild()).text
    assert "▲ Warning" in text
    assert "1 notes and 1 muted findings, which do not count" in text
    assert "muted: Known." in text
    assert "The first finding Step" in text


def test_an_issue_that_has_recovered_is_no_issue_of_the_page(tmp_path: Path) -> None:
    found = Evidence(3, "t", None, 1, 0, None, state=FindingState.RECOVERED, recovered_at=7)
    facts = {"step": 3, "evidence": [found], "state": FindingState.RECOVERED, "recovered_at": 7}
    text = page_of(tmp_path, reports.result(outcome="IssuesFound", **facts)).text
    assert "Recovered 1" in text
    assert "○ Recovered at step 3, until step 7" in text
    assert "Issues found" not in text


def test_a_run_begins_with_its_state_and_its_root_cause(tmp_path: Path) -> None:
    loss = outcomes.met("Loss", rule="LossNotDecreasing")
    text = page_of(tmp_path, loss, outcomes.met("Spike", rule="LossSpike")).text
    assert "Broken since step 3, judged by 2 of 2 rules." in text
    assert text.index("Spike") < text.index("Loss")
    assert "at step 3, may follow from Spike" in text


def test_a_healthy_run_says_what_was_not_saved(tmp_path: Path) -> None:
    reports.save(tmp_path, reports.result("Fine"), saved=["losses"], not_saved=["weights"])
    text = written(tmp_path)[1].text
    assert "judged by 1 of 1 rule from losses; weights were not saved." in text


def test_many_findings_are_folded(tmp_path: Path) -> None:
    found = [Evidence(step, "t", None, 1, 0, None) for step in range(100)]
    one = reports.result(outcome="IssuesFound", evidence=found, findings_count=999)
    text = page_of(tmp_path, one).text
    assert "95 more" in text
    assert "All 999 are in findings.jsonl." in text


def test_lines_beyond_those_kept_are_counted(tmp_path: Path) -> None:
    record = reports.measurements(
        *(reports.series({0: 1}, tensor=f"t{n}") for n in range(10)), left_out=2
    )
    reports.save(tmp_path, reports.result(), record)
    text = written(tmp_path)[1].text
    assert "2 more Less severe" in text
    assert "2 less severe lines are not shown." in text


def test_one_page_for_many_runs(tmp_path: Path) -> None:
    reports.save(tmp_path / "a" / "AllZero", reports.result("AllZero", trial="/runs/a"))
    reports.save(tmp_path / "a" / "TreeDepth", reports.fired("TreeDepth", trial="/runs/a"))
    reports.save(tmp_path / "b", reports.result("AllZero", trial="/runs/b"))
    reports.save(tmp_path / "c", reports.result("AllZero", trial="/runs/b"))
    text = written(tmp_path)[1].text
    assert "Verdict of each rule on each run Run AllZero TreeDepth a" in text
    assert f"a {tmp_path}/a ✓ AllZero No issues found ✕ TreeDepth Issues found at step 20" in text
    assert f"b in b {tmp_path}/b ✓ AllZero No issues found - not requested" in text
    assert f"b in c {tmp_path}/c ✓ AllZero No issues found - not requested" in text


def test_healthy_rules_are_folded_up_where_there_are_many(tmp_path: Path) -> None:
    for number in range(6):
        reports.save(tmp_path / f"r{number}", reports.result(f"r{number}"))
    reports.save(tmp_path / "bad", reports.fired("bad"))
    _, reader = written(tmp_path)
    jobs = [one for tag, one in reader.elements if tag == "details" and "id" in one]
    assert ["open" in one for one in jobs] == [True] + [False] * 6


def test_rules_that_were_not_evaluated_are_one_line_unless_there_is_no_other(
    tmp_path: Path,
) -> None:
    for number in range(2):
        one = reports.result(f"r{number}<b>", "NotEvaluated", status_details=f"Why{number}<b>.")
        reports.save(tmp_path / f"r{number}<b>", one)
    alone, reader = written(tmp_path)
    assert "rules were not evaluated" not in reader.text
    assert alone.count("<article") == 2
    reports.save(tmp_path / "fine", reports.result("fine"))
    html, reader = written(tmp_path)
    assert "2 rules were not evaluated: r0<b>, r1<b> These rules judged no step" in reader.text
    assert "r0<b> Why0<b>. r1<b> Why1<b>." in reader.text
    assert (html.count("<article"), "<b>." in html) == (1, False)


def test_a_strangers_names_stay_texts(tmp_path: Path) -> None:
    found = Evidence(1, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    one = reports.result(
        rule=HOSTILE,
        outcome="IssuesFound",
        evidence=[found],
        status_details=HOSTILE,
        trial=HOSTILE,
        mode=HOSTILE,
        notes=[HOSTILE],
        parameters={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        coverage=Coverage(1, {HOSTILE: 1}, 2, 0, 1, {HOSTILE: 1}),
        started_at=HOSTILE,
        ended_at=HOSTILE,
    )
    lines = [reports.series({0: 1}, tensor=HOSTILE, worker=f"{HOSTILE}{n}") for n in range(2)]
    reports.save(tmp_path, one, reports.measurements(*lines))
    html, reader = written(tmp_path, HOSTILE)
    assert [one for one in reader.elements if one[0] == "img"] == []
    assert {
        name for _, given in reader.elements for name in given if name.startswith("on")
    } == set()
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert reader.text.count(HARMLESS) >= 15
    scripts = [given for tag, given in reader.elements if tag == "script"]
    assert scripts == [{"type": "application/json"}, {}]


def test_the_page_allows_nothing_but_its_own_script_and_style(tmp_path: Path) -> None:
    html, reader = written(reports.save(tmp_path, reports.fired()))
    (policy,) = (one["content"] for tag, one in reader.elements if "http-equiv" in one)
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; script-src 'sha256-[\w+/=]+'; "
        r"base-uri 'none'; form-action 'none'",
        policy or "",
    )
    assert not re.search(r"\b(src|href)=\"(?!#)", html)
    assert "url(" not in html
    assert "style=" not in html


def test_ids_are_unique_and_all_links_lead_somewhere(tmp_path: Path) -> None:
    for name in ("a", "b"):
        reports.save(tmp_path / name / "x", reports.fired("x", trial=name), reports.measurements(
            reports.series({0: 1})))  # fmt: skip
    _, reader = written(tmp_path)
    ids = [one["id"] for _, one in reader.elements if "id" in one]
    assert len(ids) == len(set(ids))
    for _, one in reader.elements:
        for name in ("href", "aria-labelledby", "aria-describedby"):
            for target in (one.get(name) or "").split():
                assert target.removeprefix("#") in ids


def test_the_page_can_have_a_name_of_its_own(tmp_path: Path) -> None:
    folder = reports.save(tmp_path / "in", reports.result())
    path = tmp_path / "out" / "mine.html"
    assert write_report(folder, "mine", path) == path
    assert path.exists()


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"is a link or not a folder\. Choose another\.$"):
        write_report(tmp_path, "mine", tmp_path / "file" / "report.html")
