"""A rule container exits as its result says, whatever a rule does to the process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import saved
import vanishing

ROOT = Path(__file__).parents[3]
RULE = """
import atexit, os, signal, subprocess, sys, threading, time
from pathlib import Path
from smdebug.rules import Rule

MESSAGE = Path(os.environ["RULE_RUNNER_ROOT"], "output/message")


def exit_after_the_message():
    while not MESSAGE.exists():
        time.sleep(0.001)
    os._exit(0)


def linger():
    atexit.register(time.sleep, 3600)
    threading.Thread(target=time.sleep, args=(3600,)).start()


def ignore_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(3600)


class Mine(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        if step == 30:
            {act}
        return step >= 30
"""
PROGRAM = """
import sys
from rule_runner.__main__ import main
from rule_runner.cli.program import supervised

supervised._STOP_S = 0.2
main()
"""
MET = (
    "RuleEvaluationConditionMet: Evaluation of the rule Mine at step 30 "
    "resulted in the condition being met\n"
)
ENDED = "ClientError: Rule 'Mine' {} before its evaluation ended."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return what stands for /opt/ml, with an ended trial."""
    vanishing.write_trial(tmp_path / "processing/input/tensors")
    return tmp_path


def run(
    root: Path, act: str, *arguments: str, program: str = PROGRAM
) -> subprocess.CompletedProcess[str]:
    """Run a rule; `act` is what it does at step 30, or a whole file."""
    rule = root / "mine.py"
    rule.write_text(act if "\n" in act else RULE.replace("{act}", act))
    environment = {"RULE_RUNNER_ROOT": str(root)}
    if not arguments:
        environment |= {"rule_to_invoke": "Mine", "source_s3_uri": str(rule)}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def left(root: Path) -> tuple[str | None, Any, list[str]]:
    """Return the message, the result, and the statuses in events that a container has left."""
    message, output = root / "output/message", root / "processing/output/rule"
    events = output / "events.jsonl"
    lines = events.read_text().splitlines() if events.exists() else []
    statuses = [json.loads(line)["detail"]["DebugRuleEvaluationStatuses"] for line in lines]
    return (
        message.read_text() if message.exists() else None,
        saved.result(output),
        [entry["RuleEvaluationStatus"] for (entry,) in statuses],
    )


@pytest.mark.parametrize(
    ("act", "manner"),
    [
        pytest.param("os._exit(0)", "ended its process with exit code 0", id="exit"),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGKILL)",
            "was ended by SIGKILL, perhaps because memory was short,",
            id="kill",
        ),
        pytest.param(
            "os.execv('/bin/true', ['true'])", "ended its process with exit code 0", id="exec"
        ),
        pytest.param("os.abort()", "was ended by SIGABRT", marks=pytest.mark.nightly, id="abort"),
        pytest.param(
            "os.closerange(3, 999); os._exit(0)",
            "ended its process with exit code 0",
            marks=pytest.mark.nightly,
            id="closed",
        ),
    ],
)
def test_a_rule_that_ends_the_process_is_no_healthy_rule(root: Path, act: str, manner: str) -> None:
    done = run(root, act)
    message, result, statuses = left(root)
    assert (done.returncode, message) == (1, ENDED.format(manner)), done.stderr
    assert (result["status"], result["status_details"]) == ("Error", message)
    assert result["ended_at"] is not None
    assert statuses[-1] == "Error"


def test_a_rule_file_that_ends_the_process_is_no_healthy_rule(root: Path) -> None:
    done = run(root, "import os\nos._exit(0)\nclass Mine: pass\n")
    message, result, _ = left(root)
    assert (done.returncode, result["status"]) == (1, "Error")
    assert message == ENDED.format("ended its process with exit code 0")


@pytest.mark.parametrize(
    "act",
    [
        "linger(); subprocess.Popen(['sleep', '3600'])",
        "threading.Thread(target=exit_after_the_message).start()",
    ],
)
def test_a_verdict_stands_whatever_a_rule_leaves_behind(root: Path, act: str) -> None:
    done = run(root, act)
    message, result, statuses = left(root)
    assert (done.returncode, message) == (0, MET), done.stderr
    assert (result["status"], statuses[-1]) == ("IssuesFound", "IssuesFound")


def test_a_rule_that_ignores_sigterm_is_stopped(root: Path) -> None:
    done = run(root, "ignore_sigterm()")
    message, result, statuses = left(root)
    assert (done.returncode, message) == (128 + signal.SIGTERM, None)
    assert (result["status"], statuses[-1]) == ("Stopped", "Stopped")
    assert result["status_details"] == "Rule 'Mine' did not stop after SIGTERM, and was killed."


def test_a_command_ends_with_its_verdict_whatever_a_rule_leaves_behind(root: Path) -> None:
    paths = ("--trial", str(root / "processing/input/tensors"), "--output", str(root / "out"))
    options = ("--source", str(root / "mine.py"), *paths, "--fail-on-issues")
    done = run(root, "linger()", "evaluate", *options)
    assert (done.returncode, "Mine: IssuesFound at step 30" in done.stdout) == (10, True)
