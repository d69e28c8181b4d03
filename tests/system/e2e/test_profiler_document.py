"""docs/profiler.md: its conversion of dumps, and the notebook of a report."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from documents import ROOT
from profiled_job import write_job

from rule_core.profiler.flight_recorder.conversion import CONVERSION
from rule_runner.cli import main


def test_the_conversion_of_dumps_is_the_one_of_the_refusal() -> None:
    text = (ROOT / "docs" / "profiler.md").read_text("utf-8")
    assert CONVERSION.replace("FILES", "dumps/nccl_trace_rank_*") in text


def test_the_notebook_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="The extra 'profiler' is not installed.")
    profile = write_job(tmp_path / "profile", nodes=2)
    (profile / "system" / "training_job_end.ts").touch()
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["profile", "report", str(profile), "-o", "out"]).exit_code == 0
    monkeypatch.chdir(Path("out", "profiler-output"))
    cells = json.loads(Path("profiler-report.ipynb").read_text())["cells"]
    scope: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(cell["source"], scope)
    assert len(scope["rules"]) == 17
    assert len(scope["events"]) == 6 * 4 * 2
