"""What the command line does not import, because it need not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smdebug.core.writer import TrialWriter

ROOT = Path(__file__).parents[1]
PROGRAM = """
import os, sys
from rule_runner.__main__ import main
os._exit = sys.exit  # which evaluate calls at its end
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
NEVER = {"boto3", "botocore", "docker", "pandas", "bokeh", "matplotlib", "torch", "tensorflow"}
HELPFUL = {
    *("numpy", "ml_dtypes", "structlog", "rich", "asyncio", "msgspec"),
    *("smdebug", "builtin_rules"),
}
# What takes longer to import than a small evaluation takes to judge.
HEAVY = {
    *("jinja2", "markdown_it", "structlog", "rich", "pygments", "asyncio", "yaml"),
    *("email", "ssl", "socket", "http", "multiprocessing", "subprocess", "tempfile", "random"),
}
# The rule that is asked for, and no other.
RULES = {"builtin_rules.tensors.gradients.vanishing_gradient"}
UNUSED = (
    *("rule_core.storage.s3", "rule_core.storage.aws", "rule_core.profiler"),
    *("rule_core.sources.open", "rule_core.sources.safetensors", "rule_core.rules.actions.message"),
    *("rule_runner.notify.sinks.spec", "rule_runner.notify.webhook"),
    *("rule_runner.batch", "rule_runner.executors", "rule_runner.index", "rule_runner.watch"),
    *("rule_runner.engine.isolation", "rule_runner.containers", "rule_runner.service"),
    *("rule_runner.config.fitting_rules", "rule_runner.loading.trial_search"),
)


def modules(*arguments: str) -> set[str]:
    """Return the modules that a command imports."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    names = ended.stderr.splitlines()[-1].split()
    assert "rule_runner" in names
    return set(names)


def imported(*arguments: str) -> set[str]:
    """Return the top-level packages that a command imports."""
    return {name.partition(".")[0] for name in modules(*arguments)}


@pytest.mark.parametrize("command", ["--help", "evaluate --help"])
def test_help_imports_only_what_help_needs(command: str) -> None:
    assert imported(*command.split()) & (NEVER | HELPFUL) == set()


def test_listing_rules_imports_no_service_and_no_plotting() -> None:
    assert imported("rules", "list") & NEVER == set()


def evaluated(tmp_path: Path, *options: str) -> set[str]:
    """Return the modules that the evaluation of a small trial imports; it writes a report."""
    with TrialWriter(tmp_path / "trial", collections={"gradients": "gradient/"}) as writer:
        for step in range(3):
            writer.step(step, {"gradient/a": np.full(8, 0.1 + step, "f4")})
    output = tmp_path / "out"
    names = modules(
        *("evaluate", "--trial", str(tmp_path / "trial"), "--rule", "VanishingGradient"),
        *("--no-wait", "--output", str(output), *options),
    )
    assert (output / "report.html").is_file()
    return names


def test_a_small_evaluation_imports_only_what_it_needs(tmp_path: Path) -> None:
    names = evaluated(tmp_path)
    assert {name.partition(".")[0] for name in names} & (NEVER | HEAVY) == set()
    assert {name for name in names if name.startswith("importlib.metadata")} == set()
    rules = {name for name in names if re.match(r"builtin_rules\.tensors\.\w+\.", name)}
    assert rules == RULES
    assert {name for name in names if name.startswith(UNUSED)} == set()


def test_a_promised_import_brings_no_service(tmp_path: Path) -> None:
    code = "import sys; from smdebug.trials import create_trial; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    names = {name.partition(".")[0] for name in found.stdout.split()}
    assert names & (NEVER | HEAVY | {"click", "rule_runner", "builtin_rules", "regex"}) == set()
