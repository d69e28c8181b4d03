"""docs/profiler.md: its commands and its Python are run, in their order."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import python_profile_writer
from click.testing import CliRunner
from flight_recorder_writer import training, write_all
from kineto_writer import write_training
from profiled_job import write_job
from prometheus_writer import write_node
from recorded_profiles import end_script
from tool_profile_writer import sampled, scalene_entry, write_scalene, write_speedscope

from rule_core.profiler.flight_recorder.conversion import CONVERSION
from rule_runner.cli import main

TEXT = (Path(__file__).parents[3] / "docs" / "profiler.md").read_text()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where the document stands: beside a profiled job."""
    monkeypatch.chdir(tmp_path)
    write_training(tmp_path / "runs" / "traces", 2)
    frames = [("main", "train.py", 1), ("step", "train.py", 5)]
    stacks = sampled([[0], [0, 1]], [1.0, 2.0])
    write_speedscope(tmp_path / "runs", frames, stacks, name="spy.json")
    write_scalene(tmp_path / "runs", [scalene_entry("step", 5, n_peak_mb=3)], name="scalene.json")
    dumps = training(ranks=2)
    dumps[0].join()
    write_all(tmp_path / "runs" / "dumps", dumps)
    write_node(tmp_path / "runs" / "gpus", [[90.0] * 8])
    root = write_job(tmp_path / "runs" / "profile", nodes=2)
    (root / "system" / "training_job_end.ts").touch()
    python_profile_writer.write_job(root)
    (tmp_path / "train.py").write_text("")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_commands() -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 22
    for command in commands:
        program, *arguments = shlex.split(command, comments=True)
        assert program == "rule-runner"
        arguments = [
            sys.executable if word == "python" and "--" in arguments[:n] else word
            for n, word in enumerate(arguments)
        ]
        done = CliRunner().invoke(main, arguments)
        judges_nothing = "StepOutlier" in command  # six steps are too few
        assert done.exit_code == judges_nothing, f"{command}: {done.output}"
    assert Path("out/profiler-output/profiler-report.html").exists()
    assert Path("watched/profiler-output/profiler-report.html").exists()
    assert Path("trace.json").exists()
    assert Path("runs/recorded/system/training_job_end.ts").exists()


def test_the_python(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas", reason="The extra 'profiler' is not installed.")
    trial, frames, charts, record = blocks("python")
    for block in (trial, frames):
        exec(block, {})
    said = capsys.readouterr().out
    assert said.startswith("['algo-1', 'algo-2'] True\n")
    assert "training_loop" in said
    pytest.importorskip("bokeh", reason="The extra 'profiler' is not installed.")
    exec(charts, {})
    assert Path("usage.html").exists()
    assert "train.py:7(forward)" in capsys.readouterr().out
    pytest.importorskip("torch", reason="torch is not installed.")
    scope: dict[str, Any] = {}
    exec(record, scope)
    scope["hook"].close()
    end_script()
    assert any(Path("runs/profile/system").rglob("*.json"))


def test_the_conversion_of_dumps_is_the_one_of_the_refusal() -> None:
    conversion, _ = blocks("bash")
    assert conversion.strip() == CONVERSION.replace("FILES", "/tmp/nccl_trace_rank_*")


def test_the_pages_that_it_names_are_there() -> None:
    here = Path(__file__).parents[3] / "docs"
    for link in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (here / link).exists(), link


def test_the_notebook_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="The extra 'profiler' is not installed.")
    place = str(Path("runs", "profile").resolve())
    assert CliRunner().invoke(main, ["profile", "report", place, "-o", "out"]).exit_code == 0
    monkeypatch.chdir(Path("out", "profiler-output"))
    cells = json.loads(Path("profiler-report.ipynb").read_text())["cells"]
    scope: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(cell["source"], scope)
    assert len(scope["rules"]) == 17
    assert len(scope["events"]) == 6 * 4 * 2
