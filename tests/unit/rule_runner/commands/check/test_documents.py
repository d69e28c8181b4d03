"""check --format junit and sarif: one valid document that keeps the trials apart."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, fromstring

import evaluating
import numpy as np
import pytest
import xmlschema
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from rule_runner.cli import main

SCHEMAS: Final = Path(__file__).parents[4] / "data" / "schemas"
JUNIT: Final = xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd")
SARIF: Final = Draft202012Validator(json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text()))
RULE: Final = "LossNotDecreasing"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    evaluating.log_nothing()
    yield
    evaluating.log_nothing()


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write three runs into folders of one name: healthy, recovered, and still diverged."""
    fall, high = np.linspace(3.0, 1.0, 100), [2.9] * 40
    curves = {"good": fall, "back": [*fall, *high, *np.full(100, 1.0)], "lost": [*fall, *high]}
    for name, losses in curves.items():
        rows = [f"{step},{loss}" for step, loss in enumerate(losses)]
        path = tmp_path / "runs" / name / "log" / "train.csv"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(["step,loss", *rows, ""]))
    monkeypatch.chdir(tmp_path)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments], catch_exceptions=False)


def junit(*arguments: str) -> tuple[int, Element]:
    done = check(*arguments, "--format", "junit")
    JUNIT.validate(done.stdout)
    return done.exit_code, fromstring(done.stdout)


def sarif(*arguments: str) -> tuple[int, Any]:
    done = check(*arguments, "--format", "sarif")
    log = json.loads(done.stdout)
    SARIF.validate(log)
    (run,) = log["runs"]
    return done.exit_code, run


def test_junit_has_a_suite_for_each_trial_and_a_failure_for_what_still_holds() -> None:
    code, root = junit("runs", "--fail-on-issues")
    assert code == 10
    assert [suite.get("name") for suite in root] == [
        *("runs/back/log", "runs/good/log", "runs/lost/log")
    ]
    cases = [case for case in root.iter("testcase") if case.get("name") == RULE]
    assert [case.get("classname") for case in cases] == [
        f"{suite.get('name')}.{RULE}" for suite in root
    ]
    back, good, lost = cases
    assert back.find("failure") is good.find("failure") is None
    assert "(recovered at step 145)" in (back.findtext("system-out") or "")
    failure = lost.find("failure")
    assert failure is not None
    assert "loss" in (failure.text or "")
    assert (root.get("failures"), root.get("errors")) == ("1", "0")


@pytest.mark.parametrize(
    ("options", "code", "failures"),
    [
        pytest.param([], 0, 1, id="no severity"),
        pytest.param(["--fail-on", "warning"], 10, 1, id="warning"),
        pytest.param(["--fail-on", "error"], 0, 0, id="error"),
    ],
)
def test_junit_fails_for_what_the_exit_code_fails_for(
    options: list[str], code: int, failures: int
) -> None:
    path = Path("runs/over.csv")
    pairs = zip(np.linspace(1.0, 0.1, 40), np.linspace(1.0, 2.0, 40), strict=True)
    rows = [f"{epoch},{train},{held_out}" for epoch, (train, held_out) in enumerate(pairs)]
    path.write_text("\n".join(["epoch,loss,val_loss", *rows, ""]))
    assert junit(str(path), *options)[0] == code
    assert junit(str(path), "--again", *options)[1].get("failures") == str(failures)


def test_sarif_has_the_findings_of_all_trials_with_their_places() -> None:
    code, run = sarif("runs", "--fail-on-issues")
    assert code == run["invocations"][0]["exitCode"] == 10
    assert run["invocations"][0]["executionSuccessful"] is True
    found = {
        entry["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: entry["level"]
        for entry in run["results"]
        if entry["ruleId"] == RULE
    }
    assert found == {
        "runs/back/log/step/117": "note",
        "runs/back/log/step/145": "note",
        "runs/lost/log/step/117": "error",
    }
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(entry["ruleId"] == names[entry["ruleIndex"]] for entry in run["results"])


def test_what_is_wrong_with_paths_is_an_error_of_its_own() -> None:
    code, root = junit("runs/good", "nowhere")
    assert (code, root.get("errors")) == (1, "1")
    error = root.find("testsuite[@name='paths']/testcase/error")
    assert error is not None
    assert error.get("message") == "Trial 'nowhere' does not exist."
    code, run = sarif("runs/good", "nowhere")
    (invocation,) = run["invocations"]
    assert (code, invocation["executionSuccessful"]) == (1, False)
    errors = [
        entry["message"]["text"]
        for entry in invocation["toolExecutionNotifications"]
        if entry["level"] == "error"
    ]
    assert errors == ["Trial 'nowhere' does not exist."]


def test_a_trial_that_cannot_be_judged_is_an_error() -> None:
    Path("out").mkdir()
    Path("out/good-log").write_text("no folder")
    code, root = junit("runs", "--output", "out")
    assert (code, root.get("errors")) == (73, "1")
    error = root.find("testsuite[@name='runs/good/log']/testcase/error")
    assert error is not None
    assert "good-log" in (error.get("message") or "")
