"""Training scripts for `rule-runner train` that meet the test at pipes: nobody sleeps."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Saves losses 0, 1, 2, ... with a hook of its own, framework or not; the names have a space.
LOSSES = """
import os, signal, sys
from smdebug.core.hook import Hook
from smdebug.core.save_config import SaveConfig

hook = Hook("own trial", save_config=SaveConfig(save_interval=1))
def save(first, last):
    for step in range(first, last):
        hook.save_tensor("loss", float(step), "losses")
        hook.step()
    hook.flush()
    print("saved", last, flush=True)
"""
# Finds the loss 3; what becomes of it then is told by `then`, a statement.
RULE = """
import os, signal
from smdebug.rules import Rule

class Three(Rule):
    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss").value(step)[0]
        if loss == 3:
            {then}
            return self.found(step, tensor="loss", measured=loss, limit=2.0)
        return False
"""


def command(options: list[str], script: list[str]) -> list[str]:
    """Return the command line that runs a script."""
    return [sys.executable, "-m", "rule_runner", "train", *options, "--", *script]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which everything finds this checkout."""
    paths = [*filter(None, [(more or {}).get("PYTHONPATH")]), str(ROOT)]
    return {**os.environ, **(more or {}), "PYTHONPATH": os.pathsep.join(paths)}


def train(
    folder: Path, options: list[str], script: list[str], more: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a script to its end."""
    return subprocess.run(
        command(options, script),
        cwd=folder,
        env=environment(more),
        capture_output=True,
        text=True,
        check=False,
    )


def start(folder: Path, options: list[str], script: list[str]) -> "subprocess.Popen[str]":
    """Start a script; SIGINT is as a terminal leaves it."""
    return subprocess.Popen(
        command(options, script),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 - nothing else of this process runs then
    )


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def python(folder: Path, text: str, more: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a script without `rule-runner train` around it."""
    return subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env=environment(more),
        capture_output=True,
        text=True,
        check=False,
    )


def said(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return our sentences on stderr."""
    lines = done.stderr.splitlines()
    return [
        line.removeprefix("rule-runner: ") for line in lines if line.startswith("rule-runner: ")
    ]
