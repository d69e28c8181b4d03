"""Evaluations of a resumed run through the command: live, afterwards, in processes of their own."""

import threading
from pathlib import Path
from typing import Any

import pytest
import saved
from click.testing import CliRunner

from rule_core.clock import SystemClock
from rule_runner.cli import main

RULE = """
from smdebug.rules import Rule

class Rises(Rule):
    before = None

    def invoke_at_step(self, step):
        loss = float(self.base_trial.tensor("loss").value(step)[0])
        before, self.before = self.before, loss
        return before is not None and self.measured(step, "loss", loss, before, met=loss > before)
"""
# Falls to 6, rises at step 4, and goes on at step 2 with 9: no rise for a fresh rule.
ROWS = [(0, 10), (1, 9), (2, 8), (3, 7), (4, 11), (2, 9), (3, 8), (4, 7), (5, 12), (6, 5)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rises.py").write_text(RULE)
    (tmp_path / "run").mkdir()
    return tmp_path


def evaluate(folder: Path, *options: str) -> dict[str, Any]:
    log, output = folder / "run" / "metrics.csv", folder / f"out-{'-'.join(options)}"
    arguments = ["--source", str(folder / "rises.py"), "--keep-going", "--output", str(output)]
    outcome = CliRunner().invoke(main, ["evaluate", "--trial", f"csv:{log}", *arguments, *options])
    assert outcome.exit_code == 0, outcome.output
    found: dict[str, Any] = saved.result(output)
    names = ("outcome", "step", "resumed_from", "evidence", "findings_count", "coverage")
    return {name: found[name] for name in names}


def write(folder: Path, pause: float = 0.0) -> None:
    with (folder / "run" / "metrics.csv").open("w") as log:
        log.write("step,loss\n")
        for step, loss in ROWS:
            SystemClock().sleep(pause)
            log.write(f"{step},{loss}\n")
            log.flush()


@pytest.mark.smoke
def test_live_and_afterwards_are_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_SOURCE_QUIET_S", "1")
    (folder / "run" / "metrics.csv").write_text("step,loss\n")
    writer = threading.Thread(target=write, args=(folder, 0.05))
    writer.start()
    live = evaluate(folder)
    writer.join()
    assert live == evaluate(folder, "--no-wait") == evaluate(folder, "--isolate", "process")
    assert (live["outcome"], live["step"], live["resumed_from"]) == ("IssuesFound", 4, 2)
    marks = [(found["step"], found.get("segment")) for found in live["evidence"]]
    assert marks == [(4, None), (5, 1)]
    assert live["coverage"]["segments"] == [
        {"segment": 0, "first": 0, "last": 4},
        {"segment": 1, "first": 2, "last": 6},
    ]
