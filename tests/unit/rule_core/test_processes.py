import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rule_core.processes import (
    PACKAGES,
    end,
    environment_with,
    module_command,
    signal_group,
    start,
    start_module,
)

ECHO = "import os, sys; print(os.getsid(0) == os.getpid(), sys.stdin.read())"
PAUSE = "import signal; signal.pause()"


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_program_gets_its_input_in_a_session_of_its_own() -> None:
    large = b"x" * (1 << 20)  # more than a pipe holds
    process = start(python(ECHO), large, stdout=subprocess.PIPE)
    assert process.communicate()[0] == b"True " + large + b"\n"


def test_a_program_without_input_reads_none() -> None:
    process = start(python(ECHO), stdout=subprocess.PIPE)
    assert process.communicate()[0] == b"True \n"


def test_a_module_is_that_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    process = start_module("json.tool", stdin=b"[1]", stdout=subprocess.PIPE)
    assert json.loads(process.communicate()[0]) == [1]
    assert module_command("a.b", 1)[-4:] == ["-P", "-m", "a.b", "1"]


def test_the_folder_precedes_other_paths() -> None:
    assert environment_with(environ={"A": "b"}) == {"A": "b", "PYTHONPATH": str(PACKAGES)}
    own = environment_with(Path("/mine"), {"PYTHONPATH": "/other"})
    assert own == {"PYTHONPATH": f"/mine{os.pathsep}/other"}


def test_a_process_that_does_not_end_is_killed() -> None:
    process = start(python(PAUSE))
    end(process, 0.01)
    assert process.returncode == -signal.SIGKILL


def test_a_process_ends_after_its_last_input() -> None:
    process = start(python("raise SystemExit(len(input()))"), subprocess.PIPE)
    end(process, 60.0, b"abc\n")
    assert process.returncode == 3


def test_a_group_gets_a_signal_and_may_have_ended() -> None:
    process = start(python(PAUSE))
    signal_group(process.pid, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    signal_group(process.pid)
