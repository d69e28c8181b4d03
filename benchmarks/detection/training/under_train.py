"""Scripts that run under `rule-runner train`, whose hooks see the graph of a loss."""

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parents[1]
ROOT = FOLDER.parents[1]
RULES = ("BroadcastTargets", "MaskedOrShiftedLabels")  # what they read is saved
START = "import importlib, sys; getattr(importlib.import_module(sys.argv[1]), sys.argv[2]).script()"


def under_train(script: Callable[[], object]) -> Callable[[Path], int]:
    """Return a training that runs a function of a module as a script of its own."""

    @functools.wraps(script, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def train(root: Path) -> int:
        paths = os.pathsep.join(map(str, (FOLDER, ROOT)))
        with tempfile.TemporaryDirectory() as output:
            command = ["train", "--no-report", "--output", output, "--trial", str(root)]
            command += [word for rule in RULES for word in ("--rule", rule)]
            started = [sys.executable, "-c", START, script.__module__, script.__name__]
            subprocess.run(
                [sys.executable, "-m", "rule_runner", *command, "--", *started],
                env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
                cwd=output,
                check=True,
                capture_output=True,
            )
        return 0

    train.script = script  # type: ignore[attr-defined]
    return train
