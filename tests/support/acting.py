"""Evaluations with actions, in processes of their own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import rawtrial
import saved

ROOT = Path(__file__).parents[2]
ABOVE = """
from smdebug.rules import Rule

class Above(Rule):
    def invoke_at_step(self, step):
        value = float(self.base_trial.tensor("loss").value(step)[0])
        return self.found(step, tensor="loss", measured=value, limit=2.0) if value > 2 else False
"""
# Kills the process in the middle of an action: before it, or once it is done.
KILLS = """
import os, signal, sys
from importlib import import_module

module, name, when, *arguments = sys.argv[1:]
action = getattr(import_module(module), name)
carry_out = action.carry_out

def killed(self, fired, limits):
    if when == "after":
        carry_out(self, fired, limits)
    os.kill(os.getpid(), signal.SIGKILL)

action.carry_out = killed
sys.argv[1:] = arguments
from rule_runner.cli import main
main()
"""


def prepared(folder: Path) -> list[str]:
    """Write a trial and a rule that is met at its step 3; return the arguments to evaluate it."""
    steps = {step: {"loss": np.array([step], np.float32)} for step in range(6)}
    trial = rawtrial.write(folder / "trial", evaluating.trial(steps, {"losses": ["loss"]}))
    (folder / "above.py").write_text(ABOVE)
    arguments = ["evaluate", "--trial", str(trial), "--source", str(folder / "above.py")]
    return [*arguments, "--output", str(folder / "out")]


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return _run(["-m", "rule_runner", *arguments])


def run_killed(arguments: list[str], action: type, when: str) -> int:
    """Run the command until it kills itself before or after an action; return its exit code."""
    code = ["-c", KILLS, action.__module__, action.__name__, when]
    return _run([*code, *arguments]).returncode


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    """Start the command."""
    return subprocess.Popen(
        [sys.executable, "-m", "rule_runner", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def result(folder: Path) -> dict[str, Any]:
    """Return the result."""
    document: dict[str, Any] = saved.result(folder / "out")
    return document


def actions(folder: Path) -> list[tuple[str, str, str]]:
    """Return name, target and state of each action of the result."""
    return [
        (action["name"], action["target"], action["state"]) for action in result(folder)["actions"]
    ]
