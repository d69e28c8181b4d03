"""Standard output carries results only, whatever rules, and programs that they start, write."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import saved
import vanishing

LOUD = """
import atexit, ctypes, os, subprocess, sys, threading

from smdebug.rules import Rule

NOISE = "noise of a rule\\n"


def shout(*_):
    print(NOISE)
    sys.__stdout__.write(NOISE)
    sys.__stdout__.flush()
    os.write(1, NOISE.encode())
    ctypes.CDLL(None).write(1, NOISE.encode(), len(NOISE))
    subprocess.run(["echo", NOISE], check=True)


shout()
atexit.register(shout)


class Loud(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        shout()
        subprocess.Popen(["sh", "-c", "sleep 0.2; echo noise of a rule"])
        threading.Thread(target=lambda: [shout() for _ in range(20)], daemon=True).start()

    def invoke_at_step(self, step):
        shout()
        return self.base_trial.tensor("loss").value(step)[0] < 0
"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return vanishing.write_trial(tmp_path_factory.mktemp("trial") / "trial")


@pytest.fixture
def loud(tmp_path: Path) -> Path:
    file = tmp_path / "loud.py"
    file.write_text(LOUD)
    return file


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rule_runner", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )


def evaluated(trial: Path, loud: Path, *more: str) -> str:
    output = loud.parent / "out"
    result = run("evaluate", "--trial", trial, "--source", loud, "--output", output, *more)
    assert (result.returncode, "noise of a rule" in result.stderr) == (0, True), result.stderr
    return result.stdout


def outcome_in_json(text: str) -> Any:
    return json.loads(text)["rules"][0]["outcome"]


def failures_in_junit(text: str) -> Any:
    return ET.fromstring(text).get("failures")


def results_in_sarif(text: str) -> Any:
    return json.loads(text)["runs"][0]["results"]


@pytest.mark.parametrize(
    ("more", "read", "expected"),
    [
        pytest.param(["--format=json"], outcome_in_json, "NoIssuesFound", id="json"),
        pytest.param(["--format=junit"], failures_in_junit, "0", id="junit"),
        pytest.param(["--format=sarif"], results_in_sarif, [], id="sarif"),
        pytest.param(
            ["--format=json", "--isolate=process"], outcome_in_json, "NoIssuesFound", id="isolated"
        ),
    ],
)
def test_a_rule_that_writes_to_descriptor_1_does_not_spoil_results(
    trial: Path, loud: Path, more: list[str], read: Any, expected: object
) -> None:
    assert read(evaluated(trial, loud, *more)) == expected


def test_a_rule_that_writes_to_descriptor_1_does_not_spoil_the_text_or_events(
    trial: Path, loud: Path
) -> None:
    lines = evaluated(trial, loud, "--sink=stdout").splitlines()
    events = [json.loads(line)["detail"] for line in lines if line.startswith("{")]
    statuses = [one["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] for one in events]
    assert (statuses[0], statuses[-1]) == ("InProgress", "NoIssuesFound")
    assert [line for line in lines if not line.startswith("{")] == [
        "Loud: NoIssuesFound",
        "  judged 10 of 10 steps (0 to 90)",
        f"Results: {loud.parent / 'out'}",
        f"Report: {loud.parent / 'out/report.html'}",
    ]


def test_checking_a_job_prints_its_lines_only(loud: Path) -> None:
    job = loud.with_name("job.py")
    job.write_text(
        "import os\nos.write(1, b'noise of a rule\\n')\n"
        "from rule_runner.debugger import Rule, rule_configs\n"
        "rules = [Rule.sagemaker(rule_configs.vanishing_gradient())]\n"
    )
    result = run("evaluate", "--job", job, "--check", "--allow-code")
    assert (result.stdout, result.stderr) == ("VanishingGradient: ok\n", "noise of a rule\n")


def test_a_rule_container_prints_its_verdict_only(trial: Path, loud: Path) -> None:
    inputs = loud.parent / "ml/processing/input"
    inputs.mkdir(parents=True)
    (inputs / "tensors").symlink_to(trial)
    environment = {"RULE_RUNNER_ROOT": f"{loud.parent / 'ml'}", "rule_to_invoke": "Loud"}
    result = run(**environment, source_s3_uri=str(loud))
    assert result.stdout == "Loud: NoIssuesFound\n  judged 10 of 10 steps (0 to 90)\n"
    assert (result.returncode, "noise of a rule" in result.stderr) == (0, True)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_cost_no_verdict(trial: Path, loud: Path, closed: str) -> None:
    output = loud.parent / "out"
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--trial", str(trial)]
    more = ["--output", str(output), "--rule", "VanishingGradient", "--source", f"loud={loud}"]
    script = f'"$@" {closed}'
    result = subprocess.run(
        ["/bin/sh", "-c", script, "", *command, *more], capture_output=True, timeout=60, check=False
    )
    assert result.returncode == 0
    assert (b"VanishingGradient: IssuesFound" in result.stdout) == (closed == "2>&-")
    verdict = saved.result(output, "VanishingGradient")
    assert verdict["outcome"] == "IssuesFound"
    files = [file.read_bytes() for file in output.rglob("*.json*")]
    assert not any(b"noise of a rule" in text for text in files)
