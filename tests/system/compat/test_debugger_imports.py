"""Configuring is light: nothing is imported that only evaluating needs."""

import os
import subprocess
import sys

HEAVY = {"boto3", "botocore", "docker", "numpy", "pandas", "structlog", "smdebug", "builtin_rules"}


def test_the_configuration_imports_nothing_heavy() -> None:
    code = (
        "import sys, rule_runner.debugger; print(*{one.partition('.')[0] for one in sys.modules})"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    names = set(found.stdout.split())
    assert "rule_runner" in names
    assert names & HEAVY == set()
