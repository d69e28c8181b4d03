"""The pages on the built-in rules: whole, current, and of what the rules declare."""

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
import reports
from rich.console import Console

from builtin_rules import RULES
from builtin_rules.rule_page import finding_texts, rule_page, rule_summary
from rule_core.rules.evidence import Finding
from rule_core.rules.params import FloatParam, PatternsParam
from rule_core.severity import Severity
from rule_runner.commands import rules as catalogue
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation
from rule_runner.errors import UnknownRuleError
from rule_runner.loading.loader import every_builtin
from rule_runner.report import rule_pages
from rule_runner.report.html.series import drawings
from rule_runner.report.html.svg_chart import COLOURED
from rule_runner.report.text import evidence
from rule_runner.results.schema import Evidence, RuleResult
from smdebug.rules import Rule
from smdebug.rules.extensions import Page, Quantity

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "scripts" / "rule_pages"
PICTURE = ROOT / "scripts" / "rule_picture.py"
FOLDER = ROOT / "docs" / "rules"


class Declared(Rule):
    """Met when ``x > limit``."""

    READS = "the collection losses."
    QUANTITIES = (Quantity("x", "x in units"),)
    PARAMS = (
        FloatParam("limit", "Where it ends.", default=1.0, minimum=0.0, unit="units"),
        PatternsParam(
            "names", "What is judged.", default="a|b", also=("c|d",), collection="losses"
        ),
    )
    PAGE = Page(why="Why.", save="Save it.", missing="Missing.", remedy="- Do it.", limits="Blind.")

    def invoke_at_step(self, step: int) -> bool:
        return bool(step)


class Bare(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(step)


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtin_rules.RULES", {"Declared": Declared, "Bare": Bare})


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(SCRIPT.parent)  # as when it is run
    return runpy.run_path(str(SCRIPT))


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.usefixtures("declared")
def test_a_page_says_what_a_rule_declares() -> None:
    assert rule_pages.page("Declared", "x.svg") == (
        "# Declared\n\nWhole, current, and of what the rules declare.\n\n"
        "## Why it matters\n\nWhy.\n\n"
        "## A typical finding\n\n![Chart of a finding of Declared](x.svg)\n\n"
        "## What to do when it fires\n\n- Do it.\n\n"
        "## The exact condition\n\nMet when ``x > limit``.\n\n"
        "## What it measures\n\n- x in units; bad is what lies above the limit.\n\n"
        "## What it reads\n\nIt reads the collection losses.\n\n"
        "## How to save that\n\nSave it.\n\n"
        "## Parameters\n\n"
        "| name | takes | default | what it does |\n"
        "|---|---|---|---|\n"
        "| `limit` | float, >= 0, units | `1.0` | Where it ends. |\n"
        "| `names` | patterns | `a\\|b` | What is judged. |\n\n"
        "Where `names` is not given, these are looked for too:\n\n"
        "- the collection `losses`\n- `c|d`\n\n"
        "## NaN, missing data, too few steps\n\nMissing.\n\n"
        "## Where it is blind or noisy\n\nBlind.\n"
    )


@pytest.mark.usefixtures("declared")
def test_a_rule_without_further_words_has_a_page_too() -> None:
    assert rule_pages.page("Bare").endswith("## Parameters\n\nIt takes none.\n")


def test_there_is_no_page_of_an_unknown_rule() -> None:
    with pytest.raises(UnknownRuleError, match=r"^Unknown rule 'Bar'\."):
        rule_pages.page("Bar")


def test_the_index_leads_to_every_rule() -> None:
    text = (FOLDER / "README.md").read_text("utf-8")
    assert [name for name in RULES if f"| [{name}]({name}.md) | " not in text] == []


@pytest.mark.parametrize("name", RULES)
def test_every_rule_says_all_that_a_page_has(name: str) -> None:
    rule = RULES[name]
    page = rule_page(rule)
    assert all((rule.READS, page.why, page.save, page.missing, page.remedy))
    assert rule_summary(rule).endswith(".")


def test_a_terminal_shows_a_page_set(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(Console, "print", lambda _, what: shown.append(what))
    catalogue.show("VanishingGradient")
    assert [one.markup for one in shown] == [rule_pages.page("VanishingGradient")]


def test_the_pages_in_docs_are_current() -> None:
    done = run("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# They only write reports: their condition is never met, whatever the data.
SILENT = {"CreateXgboostReport", "OverallFrameworkMetrics", "OverallSystemUsage"}


def test_the_page_of_each_rule_that_can_find_something_shows_what_is_printed() -> None:
    pages = {name: (FOLDER / f"{name}.md").read_text("utf-8") for name in every_builtin()}
    shown = {name for name, text in pages.items() if "prints, for example:\n\n> " in text}
    assert pages.keys() - shown == SILENT
    assert [name for name in SILENT if "\n\nNever met: " not in pages[name]] == []


def test_the_cases_of_the_pages_pass() -> None:
    assert (
        run_rule_tests([str(ROOT / "examples" / "rules")], None, Isolation.NONE, update=False) == 0
    )


def test_what_is_not_current_is_named_and_mended(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    shutil.copytree(FOLDER, folder)
    (folder / "VanishingGradient.md").write_text("old")
    (folder / "README.md").unlink()
    (folder / "Gone.md").write_text("no rule's")
    done = run("--check", "--folder", folder)
    stale = [folder / name for name in ("README.md", "VanishingGradient.md", "Gone.md")]
    said = "".join(f"{path} is not current. Run scripts/rule_pages.\n" for path in stale)
    assert (done.returncode, done.stdout) == (1, said)
    assert (run("--folder", folder).returncode, run("--check", "--folder", folder).returncode) == (
        0,
        0,
    )
    assert not (folder / "Gone.md").exists()


def found(quantity: str, where: str, **more: Any) -> RuleResult:
    """Return the result of a rule of profiler data with a finding in today's words."""
    finding = Finding(3, "gpu0", "algo-1", 1 / 3, 0.1, quantity=quantity, **more)
    summary, advice = finding_texts("LowGPUUtilization").explain(finding, where, "window 3")
    fields = finding.step, finding.tensor, finding.worker, finding.measured, finding.limit
    note = Evidence(0, None, None, None, None, "Noted.", severity=Severity.NOTE)
    said = Evidence(*fields, finding.note, summary=summary, advice=advice)
    return reports.result("LowGPUUtilization", "IssuesFound", evidence=[note, said], unit="window")


def test_an_example_becomes_a_picture(tmp_path: Path) -> None:
    output, folder = tmp_path / "out", tmp_path / "rules"
    values = {step: 1 / (3 + step) for step in range(1000)}
    many = [reports.series(values, met=[997], tensor=f"t{n}", segment=1) for n in range(9)]
    result = found("p5", "gpu0 of algo-1")
    reports.save(output, result, reports.measurements(reports.series({3: 1.0}, met=[3]), *many))
    done = run("--example", "LowGPUUtilization", output, "--folder", folder)
    assert (done.returncode, done.stderr) == (0, "")
    example = json.loads((folder / "examples" / "LowGPUUtilization.json").read_text())
    assert [one["tensor"] for one in example["series"]] == [f"t{n}" for n in range(6)]
    first = example["series"][0]
    assert (first["steps"][:2], first["measured"][0], first["met"]) == ([0, 5], 0.33333, [997])
    assert (997 in first["steps"], first["segment"]) == (True, 1)
    assert (folder / "LowGPUUtilization.svg").read_text().startswith("<svg ")
    page = (folder / "LowGPUUtilization.md").read_text()
    assert "(LowGPUUtilization.svg)" in page
    printed = evidence(result.evidence[1], "window")
    assert "(window 3, measured 0.333333, limit 0.1)" in printed
    assert f"prints, for example:\n\n> {printed}\n" in page


@pytest.mark.parametrize("quantity", ["p95", "p5"])
@pytest.mark.parametrize("where", ["gpu0", "gpu0 of algo-1"])
def test_the_finding_of_an_example_is_put_into_words_again(
    tmp_path: Path, script: dict[str, Any], quantity: str, where: str
) -> None:
    result = found(quantity, where, note="Fluctuates.")
    script["take_example"]("LowGPUUtilization", reports.save(tmp_path / "out", result), tmp_path)
    example = script["read_example"](tmp_path, "LowGPUUtilization")
    stored = example.finding
    assert (stored.quantity, stored.where, example.series) == (quantity, where, [])
    assert not stored.evidence.sentences
    assert script["explained"]("LowGPUUtilization", stored) == result.evidence[1]


def test_a_picture_is_a_file_of_its_own() -> None:
    records = [reports.series({0: 1}, tensor=f"</title><script>{n}") for n in range(COLOURED + 2)]
    (drawing,) = drawings([reports.MEAN], records)
    text = runpy.run_path(str(PICTURE))["picture"](drawing)
    root = fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "<script" not in text
    texts = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert texts[0] == "mean |gradient|"
    assert "the condition is met; pale: 2 more" in texts
    assert sum("script" in (one or "") for one in texts) == COLOURED


@pytest.mark.parametrize("summary", [None, "What was said in earlier versions."])
def test_a_rule_job_without_a_finding_in_todays_words_is_no_example(
    tmp_path: Path, script: dict[str, Any], summary: str | None
) -> None:
    findings = [Evidence(1, None, "worker_0", 1.0, 0.5, None, summary=summary)] if summary else []
    output = reports.save(tmp_path / "out", reports.result("AllZero", evidence=findings))
    said = f"Rule job {str(output)!r} has no finding in today's words. Evaluate the rule again."
    with pytest.raises(SystemExit, match=re.escape(said)):
        script["take_example"]("AllZero", output, tmp_path)
    assert not (tmp_path / "examples").exists()
