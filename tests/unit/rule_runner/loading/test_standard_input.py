"""standard_input: what is piped is judged as it arrives, and its end ends the trial."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rule_core.format.paths import END_OF_JOB
from rule_runner.loading.standard_input import _copy

RULE = [sys.executable, "-m", "rule_runner"]


def log(steps: range) -> str:
    return "".join(f"iter {step}: loss {'nan' if step == 9 else 1}\n" for step in steps)


def test_a_pipe_is_copied_up_to_its_end(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "wb") as pipe:
        pipe.write(b"\xfe one\n")
        pipe.close()
        _copy(reader, tmp_path)
    assert (tmp_path / "stdin.log").read_bytes() == b"\xfe one\n"
    assert (tmp_path / END_OF_JOB).exists()


def test_a_folder_that_was_removed_ends_the_copy(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "wb"):
        _copy(reader, tmp_path / "removed")


def test_findings_arrive_while_the_pipe_is_open(tmp_path: Path) -> None:
    options = ["--rule", "ExplodingTensor", "--sink", "stdout", "--output", "out", "--no-report"]
    command = [*RULE, "evaluate", "--trial", "-", *options]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - for mypy
        process.stdin.write(log(range(1, 20)))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["detail"]
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("printed", "code"), [(log(range(1, 20)), 0), ("no training\n", 1)])
def test_check_judges_what_is_piped(printed: str, code: int, tmp_path: Path) -> None:
    command = [*RULE, "check", "-", "--output", "out", "--format", "json"]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, input=printed, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    assert trial["path"].endswith("/standard-input")
