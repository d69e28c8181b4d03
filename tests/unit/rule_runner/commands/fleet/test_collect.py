import gc
import json
import os
import re
import shutil
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import evaluating
import fleets
import pytest
import reports
import s3_objects
import xmlschema
from jsonschema import Draft202012Validator

from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.commands.fleet import collect as collecting
from rule_runner.commands.fleet import judging
from rule_runner.results.acknowledgements import (
    ACKNOWLEDGEMENTS,
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from rule_runner.results.output_folder import read_results_file
from rule_runner.results.status import FindingState

DATA = Path(__file__).parents[4] / "data"
OLD = DATA / "outputs-0.1.0"
SCHEMAS = DATA / "schemas"
JUNIT = xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd")
LINK = re.compile('href="([^"]+)"')


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a plan of four trials, and their outputs."""
    root = tmp_path_factory.mktemp("fleet")
    fleets.write_runs(root / "runs", 4)
    plan = fleets.plan(root / "runs", root / "out", root / "plan.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "LONG_AGO_S", -60.0)
        assert fleets.fleet("run", "--plan", plan).exit_code == 0
    return root


@pytest.fixture
def fleet(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a plan whose outputs, in the working directory, may be damaged."""
    shutil.copytree(judged / "out", tmp_path / "out")
    text = (judged / "plan.jsonl").read_text().replace(str(judged / "out"), str(tmp_path / "out"))
    (tmp_path / "plan.jsonl").write_text(text)
    monkeypatch.chdir(tmp_path)
    evaluating.log_nothing()
    yield tmp_path / "plan.jsonl"
    evaluating.log_nothing()


def test_trials_whose_issues_have_recovered_count_apart(tmp_path: Path) -> None:
    back: dict[str, Any] = {"state": FindingState.RECOVERED, "recovered_at": 60}
    for name, *rules in (
        ("a", reports.fired("A", **back), reports.result("B")),
        ("b", reports.fired("A", **back), reports.fired("B")),
        ("c", reports.fired("A", **back), reports.result("B", "Error")),
        ("d", reports.result("A"), reports.result("B")),
    ):
        for rule in rules:
            reports.save(tmp_path / "out" / name / rule.configuration_name, rule)
    page = tmp_path / "index.html"
    result = fleets.fleet("collect", tmp_path / "out", "--report", page)
    assert result.stdout.splitlines()[0] == (
        "4 trials: 1 IssuesFound, 1 Error, 1 NoIssuesFound, 1 recovered."
    )
    text = page.read_text()
    assert text.count("</span> Recovered</span>") == 1
    assert "A at step 20, recovered at step 60" in text
    (tmp_path / "out" / "c" / "B" / "results.json").unlink()
    arguments = ("collect", tmp_path / "out", "--fail-on-issues")
    assert fleets.fleet(*arguments).exit_code == 10
    shutil.rmtree(tmp_path / "out" / "b")
    assert fleets.fleet(*arguments).exit_code == 0


@pytest.mark.parametrize(("severity", "failures"), [("warning", "2"), ("error", "1")])
def test_junit_fails_for_what_the_exit_code_fails_for(
    tmp_path: Path, severity: str, failures: str
) -> None:
    for name in ("warning", "error"):
        reports.save(tmp_path / "out" / name, reports.fired("A", severity=name))
    report = tmp_path / "all.xml"
    targets = ("--junit", report, "--fail-on", severity)
    assert fleets.fleet("collect", tmp_path / "out", *targets).exit_code == 10
    assert ET.parse(report).getroot().get("failures") == failures


def result_of(trial: str) -> Path:
    return next(Path("out").glob(f"{trial}-*/results.json"))


@pytest.mark.parametrize("place", ["plan.jsonl", "out"])
@pytest.mark.usefixtures("fleet")
def test_files_hold_all_trials(place: str) -> None:
    targets = ("--report", "out/index.html", "--junit", "all.xml", "--sarif", "all.sarif")
    result = fleets.fleet("collect", place, *targets)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "4 trials: 2 IssuesFound, 2 NoIssuesFound."
    JUNIT.validate("all.xml")
    suites = ET.parse("all.xml").getroot()
    assert suites.attrib == {"name": "rule-runner", "tests": "4", "failures": "2", "errors": "0"}
    assert [suite.get("name") for suite in suites] == ["t000", "t001", "t002", "t003"]
    log = json.loads(Path("all.sarif").read_text())["runs"][0]
    assert len(log["results"]) == sum(
        rule["findings_count"]
        for path in Path("out").rglob("results.json")
        for rule in json.loads(path.read_text())["rules"]
    )
    assert log["invocations"][0]["executionSuccessful"] is True
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["VanishingGradient"]
    page = Path("out/index.html").read_text()
    links = {link.partition("#")[0] for link in LINK.findall(page)} - {""}
    assert len(links) == 4
    assert all((Path("out") / link).is_file() for link in links)


def test_links_lead_to_the_finding(fleet: Path) -> None:
    fleets.fleet("collect", fleet, "--report", "index.html")
    page = Path("index.html").read_text()
    link, _, place = next(text for text in LINK.findall(page) if "#rule" in text).partition("#")
    assert f'id="{place}"' in Path(link).read_text()


def test_results_that_are_missing_cut_off_or_unfinished_are_named(fleet: Path) -> None:
    shutil.rmtree(result_of("t000").parent)
    cut, unfinished, foreign = map(result_of, ("t001", "t002", "t003"))
    cut.write_bytes(cut.read_bytes()[:200])
    content = json.loads(unfinished.read_text())
    content["rules"][0] |= {"ended_at": None, "outcome": "InProgress"}
    unfinished.write_text(json.dumps(content))
    content["rules"][0]["outcome"] = 3
    foreign.write_text(json.dumps(content))
    targets = ("--report", "index.html", "--junit", "all.xml", "--sarif", "all.sarif")
    result = fleets.fleet("collect", fleet, *targets)
    assert result.exit_code == 1
    assert "the trial was not judged. Run the plan again." in result.stderr
    assert "results.json' cannot be read: Input data was" in result.stderr
    assert "is not final: its evaluation has not ended, or was killed." in result.stderr
    assert "Expected `str`, got `int`" in result.stderr
    assert result.stdout.startswith("4 trials: 4 Error.")
    suites = ET.parse("all.xml").getroot()
    assert all(suite.find("testcase/error") is not None for suite in suites)
    invocation = json.loads(Path("all.sarif").read_text())["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    errors = [
        entry for entry in invocation["toolExecutionNotifications"] if entry["level"] == "error"
    ]
    assert len(errors) >= 4
    assert "was not judged" in Path("index.html").read_text()


def test_missing_rule_of_a_plan_is_named(fleet: Path) -> None:
    text = fleet.read_text().replace(
        '[{"name":"VanishingGradient"}]', '[{"name":"VanishingGradient"},{"id":"mine","name":"X"}]'
    )
    fleet.write_text(text)
    result = fleets.fleet("collect", fleet)
    assert result.exit_code == 1
    assert result.stderr.count("No result of rule 'mine'") == 4


@pytest.mark.parametrize(
    ("options", "code"), [((), 0), (("--fail-on-issues",), 10), (("--fail-on", "error"), 0)]
)
def test_issues_set_the_exit_code_if_asked_for(
    fleet: Path, options: tuple[str, ...], code: int
) -> None:
    assert fleets.fleet("collect", fleet, *options).exit_code == code


def test_each_output_counts_once(fleet: Path) -> None:
    result = fleets.fleet("collect", fleet, fleet)
    assert result.stdout.startswith("4 trials")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("none", "No result in 'none': File 'none' does not exist. Give an output folder or"),
        ("empty", "No result in 'empty'. Give a plan or an output folder."),
        ("s3://no-such-bucket/x", "no-such-bucket"),
    ],
)
@pytest.mark.usefixtures("fleet", "aws_endpoint")
def test_place_without_results_is_one_sentence(place: str, message: str) -> None:
    Path("empty").mkdir()
    result = fleets.fleet("collect", place)
    assert result.exit_code == 1
    assert message in result.stderr


def test_file_that_cannot_be_written_is_named(fleet: Path) -> None:
    Path("folder").mkdir()
    result = fleets.fleet("collect", fleet, "--junit", "folder")
    assert result.exit_code == 73
    assert "'folder' cannot be written" in result.stderr


@pytest.mark.usefixtures("fleet")
def test_hostile_names_reach_no_page_unescaped() -> None:
    path = result_of("t001")
    name = '<script>alert("x")</script>\x1b[31m\ud800'
    content = json.loads(path.read_text())
    content |= {"trial": f"/runs/{name}", "configuration_name": name}
    path.write_text(json.dumps(content))
    targets = ("--report", "index.html", "--junit", "all.xml", "--sarif", "all.sarif")
    fleets.fleet("collect", "out", *targets)
    for file in ("index.html", "all.xml", "all.sarif"):
        text = Path(file).read_text()
        assert "\x1b" not in text
    assert "<script>alert" not in Path("index.html").read_text()
    ET.parse("all.xml")


@pytest.mark.usefixtures("fleet")
def test_outputs_and_report_in_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    for path in Path("out").rglob("*"):
        if path.is_file() and ".sagemaker-ignore" not in path.parts:
            s3_objects.put(aws_endpoint, "", {path.as_posix(): path.read_bytes()})
    result = fleets.fleet("collect", "s3://bucket/out", "--report", "s3://bucket/out/index.html")
    assert result.exit_code == 0, result.output
    objects = s3_objects.content(aws_endpoint, "out/")
    links = {link.partition("#")[0] for link in LINK.findall(objects["index.html"].decode())}
    assert {link for link in links if link} <= {*objects}
    assert len(links) == 5


def test_sarif_is_valid(fleet: Path) -> None:
    fleets.fleet("collect", fleet, "--sarif", "all.sarif")
    schema = json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text())
    Draft202012Validator(schema).validate(json.loads(Path("all.sarif").read_text()))


@pytest.mark.usefixtures("fleet")
def test_memory_does_not_grow_with_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = read_results_file(result_of("t001").parent).rules

    def peak(count: int) -> int:
        trials = (CollectedTrial(f"/runs/{n}", f"/out/{n}", [rule]) for n in range(count))
        monkeypatch.setattr(collecting, "below", lambda _: trials)
        targets = collecting.Targets("index.html", "all.xml", "all.sarif")
        tracemalloc.start()
        collecting.collect(["x"], targets, None)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    gc.freeze()  # with many objects of other tests, garbage is collected later
    gc.collect()
    try:
        peak(10)
        few = peak(100)
        assert peak(300) < few + 200 * 1000  # bytes; a result has some 3,000
    finally:
        gc.unfreeze()


@pytest.mark.skipif(os.geteuid() == 0, reason="Only an ordinary user is denied to read.")
def test_result_without_permission_costs_only_itself(fleet: Path) -> None:
    result_of("t001").chmod(0)
    result = fleets.fleet("collect", fleet)
    assert result.exit_code == 1
    assert result.stdout.startswith("4 trials: 1 IssuesFound, 1 Error, 2 NoIssuesFound.")


@pytest.mark.usefixtures("fleet")
def test_muted_rules_fail_nothing_and_are_shown_as_muted() -> None:
    assert fleets.fleet("collect", "plan.jsonl", "--fail-on-issues").exit_code == 10
    for kind, code in (("acknowledged", 10), ("muted", 0)):
        for name in ("t000", "t001", "t002", "t003"):
            entry = Acknowledgement(
                kind=AcknowledgementKind(kind),
                who="ann",
                reason="Known.",
                at=datetime.now(UTC),
                rule="VanishingGradient",
            )
            append_acknowledgement(result_of(name).parent, entry)
        targets = ("--report", "index.html", "--junit", "all.xml", "--sarif", "all.sarif")
        result = fleets.fleet("collect", "plan.jsonl", "--fail-on-issues", *targets)
        assert result.exit_code == code, result.output
    assert result.stdout.splitlines()[0] == "4 trials: 2 IssuesFound, 2 NoIssuesFound."
    assert ET.parse("all.xml").getroot().get("failures") == "0"
    results = json.loads(Path("all.sarif").read_text())["runs"][0]["results"]
    assert all(entry["suppressions"][0]["status"] == "accepted" for entry in results)
    assert Path("index.html").read_text().count(", muted") == 2


@pytest.mark.usefixtures("fleet")
def test_unreadable_acknowledgements_are_named() -> None:
    (result_of("t000").parent / ACKNOWLEDGEMENTS).mkdir()
    result = fleets.fleet("collect", "out")
    assert result.exit_code == 1
    assert "Acknowledgements " in result.stderr
    assert "cannot be read" in result.stderr


@pytest.mark.parametrize("layout", ["single", "several"])
def test_results_of_version_0_1_0_are_collected(tmp_path: Path, layout: str) -> None:
    shutil.copytree(OLD / layout, tmp_path / "old")
    result = fleets.fleet("collect", str(tmp_path), "--report", str(tmp_path / "index.html"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("1 trial: 1 IssuesFound.")
    assert "/runs/mnist" in (tmp_path / "index.html").read_text()
