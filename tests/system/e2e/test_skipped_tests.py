"""On a plain machine the tests pass, and one line at their end names what was skipped."""

import subprocess
import sys
from pathlib import Path

import needs
import uncounted

ROOT = Path(__file__).parents[3]
REASONS = [
    "Skipped: torch is not installed.",
    "Skipped: RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.",
    "Skipped: keras is not installed.",
]


def test_what_has_the_same_remedy_is_named_together() -> None:
    assert needs.summary(REASONS) == (
        "an image (scripts/build_image rule-runner; export RULE_RUNNER_IMAGE=rule-runner); "
        "keras, torch (.venv/bin/python -m pip install --requirement requirements-frameworks.txt)"
    )


def test_an_unknown_reason_is_named_as_it_is() -> None:
    assert needs.summary(["Skipped: the moon is down."]) == "the moon is down"


def test_nothing_skipped_needs_nothing() -> None:
    assert needs.summary([]) == ""


def test_the_line_stands_above_the_closing_one() -> None:
    test = "tests/system/e2e/test_image.py"
    environment = uncounted.environment()
    environment.pop("RULE_RUNNER_IMAGE", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--numprocesses=1", test],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    *_, line, closing = done.stdout.splitlines()
    assert line.startswith("Skipped tests need: an image (scripts/build_image ")
    assert line.endswith(". Longer tests are left to .ci/nightly.")
    assert " skipped in " in closing
    assert done.returncode == 0
