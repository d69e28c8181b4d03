"""What the command line does not import, because it need not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEVER = {"boto3", "botocore", "docker", "pandas", "bokeh", "matplotlib", "torch", "tensorflow"}
HELPFUL = {
    *("numpy", "ml_dtypes", "structlog", "rich", "asyncio", "msgspec"),
    *("smdebug", "builtin_rules"),
}


def imported(*arguments: str) -> set[str]:
    """Return the top-level packages that a command imports."""
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "rule_runner", *arguments],
        cwd=ROOT,
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", found.stderr, re.MULTILINE)
    assert "rule_runner" in names
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("command", ["--help", "evaluate --help"])
def test_help_imports_only_what_help_needs(command: str) -> None:
    assert imported(*command.split()) & (NEVER | HELPFUL) == set()


def test_listing_rules_imports_no_service_and_no_plotting() -> None:
    assert imported("rules", "list") & NEVER == set()
