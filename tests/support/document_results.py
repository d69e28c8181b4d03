"""What the commands of the documentation leave behind, beyond their exit codes and output."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import fromstring

from builtin_rules import RULES


def evaluate(folder: Path) -> None:
    """Check the files in formats for other tools."""
    suites = fromstring((folder / "out" / "all.xml").read_text())
    assert (suites.get("tests"), suites.get("failures")) == (str(len(RULES)), "0")
    (log,) = json.loads((folder / "out" / "ci.sarif").read_text())["runs"]
    assert [(result["ruleId"], result["level"]) for result in log["results"]] == [
        ("VanishingGradient", "warning")
    ]
    assert "VanishingGradient" in (folder / "runs.html").read_text()


def write_a_rule(folder: Path) -> None:
    """Check the expectation that was recorded."""
    recorded = (folder / "recorded.rules.yaml").read_text()
    assert "expect: {status: IssuesFound, step: 0" in recorded


def profiler(folder: Path) -> None:
    """Check the reports, the trace and the recording."""
    for name in (
        *("out/profiler-output/profiler-report.html", "trace.json", "usage.html"),
        *("watched/profiler-output/profiler-report.html", "dumps/nccl_trace_rank_0.json"),
        "runs/recorded/system/training_job_end.ts",
    ):
        assert (folder / name).exists(), name


CHECKS: Final[dict[str, Callable[[Path], None]]] = {
    "docs/evaluate.md": evaluate,
    "docs/profiler.md": profiler,
    "docs/write-a-rule.md": write_a_rule,
}
