"""The calls of a warm step stay below the limits of ``scripts/warm_step``."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "warm_step.py"


@pytest.mark.skipif(
    find_spec("rule_core.kernels._sweep") is None,
    reason="the compiled kernel is not built: numpy takes more calls.",
)
@pytest.mark.parametrize("rule", ["VanishingGradient", "LossNotDecreasing"])
def test_a_warm_step_takes_few_calls(rule: str) -> None:
    command = [sys.executable, SCRIPT, "--rule", rule]
    counted = subprocess.run(command, capture_output=True, check=False)
    assert (counted.returncode, counted.stderr) == (0, b"")


def test_more_calls_than_the_limit_fail() -> None:
    command = [sys.executable, SCRIPT, "--rule", "LossNotDecreasing", "--limit", "50"]
    counted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert counted.returncode == 1
    assert counted.stderr == "LossNotDecreasing may take 50 calls in 28 files; see --list.\n"
