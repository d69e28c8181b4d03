"""action.yml: valid, and its steps run as GitHub runs them, against a stand-in for GitHub."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import github_server
import numpy as np
import pytest
import yaml
from github_server import REPOSITORY, TOKEN, GitHub
from judging import save

ROOT = Path(__file__).parents[3]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, JUDGE, SHOW, FAIL = ACTION["runs"]["steps"]


def run_action(tmp_path: Path, server: GitHub, **inputs: str) -> tuple[int, dict[str, str]]:
    """Run the steps after the installation; return the exit code of the last, and the outputs."""
    temporary = tmp_path / "runner"
    (temporary / "rule-runner").mkdir(parents=True)
    (temporary / "rule-runner" / "bin").symlink_to(Path(sys.executable).parent)
    event, output, summary = (tmp_path / name for name in ("event", "output", "summary"))
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "c" * 40}}}))
    given = {name: field.get("default", "") for name, field in ACTION["inputs"].items()}
    given |= {"token": TOKEN} | {name.replace("_", "-"): text for name, text in inputs.items()}
    values = {f"inputs.{name}": text for name, text in given.items()}
    environment = os.environ | {
        "RUNNER_TEMP": str(temporary),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_API_URL": server.url,
        "GITHUB_SHA": "d" * 40,
        "GITHUB_EVENT_PATH": str(event),
    }
    outputs: dict[str, str] = {}
    for step in (JUDGE, SHOW, FAIL):
        own = {name: _filled(text, values) for name, text in step["env"].items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        code = subprocess.run(command, check=False, cwd=tmp_path, env=environment | own).returncode
        if output.exists():
            lines = output.read_text().splitlines()
            outputs = dict(line.split("=", 1) for line in lines)
            values |= {f"steps.judge.outputs.{name}": text for name, text in outputs.items()}
        if code:
            break
    return code, outputs


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: values[match[1]], text)


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    """A trial whose loss blows up, and one whose loss falls."""
    losses = {"my runs/bad": [1.0, 20.0, 30.0, 40.0, 50.0], "my runs/good": [5.0, 4.0, 3.0, 2.0]}
    for name, values in losses.items():
        save(tmp_path / name, {step: {"loss": np.array([v])} for step, v in enumerate(values)})
    return tmp_path / "my runs"


def test_it_is_valid() -> None:
    command = ["check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"]
    program = Path(sys.executable).parent / command[0]
    done = subprocess.run([program, *command[1:]], check=False, cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stdout


def test_no_input_is_part_of_a_script() -> None:
    assert [step["name"] for step in ACTION["runs"]["steps"] if "${{" in step["run"]] == []


def test_it_installs_itself() -> None:
    assert 'pip install --quiet "$GITHUB_ACTION_PATH"' in INSTALL["run"]


def test_an_error_fails_the_step_after_it_was_shown(tmp_path: Path, trials: Path) -> None:
    with github_server.serving() as server:
        code, outputs = run_action(tmp_path, server, path=f"\n  {trials.name}  \n", comment="true")
    assert code == 10
    (check_run,) = server.check_runs
    assert (check_run["name"], check_run["conclusion"]) == ("rule-runner", "failure")
    (comment,) = server.comments.values()
    assert "**error** `LossNotDecreasing` in `bad`" in comment
    assert "1 of 2 trials with issues" in (tmp_path / "summary").read_text()
    assert (tmp_path / outputs["report"]).is_file()


def test_nothing_fails_if_nothing_may(tmp_path: Path, trials: Path) -> None:
    with github_server.serving() as server:
        code, _ = run_action(tmp_path, server, path=trials.name, fail_on="none", check="")
    assert (code, server.check_runs, server.comments) == (0, [], {})


def test_a_wrong_path_fails_at_once(tmp_path: Path) -> None:
    with github_server.serving() as server:
        code, outputs = run_action(tmp_path, server, path="none")
    assert (code, outputs["code"], server.check_runs) == (1, "1", [])
