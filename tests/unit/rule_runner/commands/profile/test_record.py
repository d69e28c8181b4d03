"""`profile record`: any command is sampled, and trainings in its processes have a timeline."""

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from recorded_profiles import events

from rule_core.profiler.files.file_names import END_MARKS
from rule_core.profiler.recording.layout import DRAFT
from rule_runner.commands.profile.record import record
from rule_runner.commands.profile.recording_options import RecordingOptions
from rule_runner.errors import OutputError, UsageError

STEP = "Step:ModeKeys.GLOBAL"
FOLDER = "profile"
# A training without a framework, by the hook that the script creates itself.
HOOK = """
import os, shutil, signal, sys, time
from pathlib import Path
sys.path[:0] = {paths!r}
from smdebug.core.hook import Hook

def train(steps):
    hook = Hook("unused", include_workers="none")
    for _ in range(steps):
        hook.step()
    return hook

def wait_for_draft():
    while not any(path.stat().st_size for path in Path("profile/framework").glob("*.tmp")):
        time.sleep(0.01)
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def recorded(*command: str, interval: str = "10ms", **options: str) -> int:
    return record(command, FOLDER, RecordingOptions(interval=interval, **options))


def python(text: str) -> list[str]:
    Path("script.py").write_text(HOOK.format(paths=sys.path) + text)
    return [sys.executable, "script.py"]


def steps(folder: Path) -> int:
    return len(events(folder, STEP))


def samples(folder: Path) -> list[str]:
    paths = sorted((folder / FOLDER / "system" / "incremental").rglob("*.json"))
    return [json.loads(line)["Name"] for path in paths for line in path.read_text().splitlines()]


def has_ended(folder: Path) -> list[bool]:
    return [(folder / FOLDER / mark).exists() for mark in END_MARKS]


def drafts(folder: Path) -> list[Path]:
    return list((folder / FOLDER).rglob(f"*{DRAFT}"))


def said(capture: Capture) -> list[str]:
    lines = capture.readouterr().err.splitlines()
    return [line.strip().removeprefix("rule-runner: ") for line in lines]


def test_system_metrics_of_any_command(tmp_path: Path, capsys: Capture) -> None:
    assert recorded("sh", "-c", "exit 7") == 7
    assert "cpu0" in samples(tmp_path)
    assert has_ended(tmp_path) == [True, False]
    texts = said(capsys)
    assert texts[0] == "The command ended with exit code 7."
    assert texts[1].startswith("Only system metrics were recorded. No Python of it that has ")
    assert texts[2:] == [
        "Profile: profile",
        "Show it with: rule-runner profile show profile",
        "Judge it with: rule-runner profile report profile --output DIR",
    ]


def test_steps_of_a_hook_that_the_script_creates(tmp_path: Path, capsys: Capture) -> None:
    assert recorded(*python("os.chdir('/'); train(5).close()")) == 0
    assert steps(tmp_path) == 5
    assert has_ended(tmp_path) == [True, True]
    assert not (tmp_path / "unused").exists()
    assert "Only system metrics" not in " ".join(said(capsys))


@pytest.mark.parametrize(
    ("end", "code"), [("os.kill(os.getpid(), signal.SIGKILL)", 137), ("os._exit(3)", 3)]
)
def test_timelines_of_a_process_that_ends_early_are_completed(
    tmp_path: Path, end: str, code: int
) -> None:
    assert recorded(*python(f"train(5)\nwait_for_draft()\n{end}")) == code
    assert 0 < steps(tmp_path) <= 5
    assert (has_ended(tmp_path), drafts(tmp_path)) == ([True, True], [])


def test_forked_processes_have_timelines_of_their_own(tmp_path: Path) -> None:
    text = "hook = train(3)\nif not os.fork():\n    train(4).close()\n    os._exit(0)\n"
    assert recorded(*python(f"{text}os.wait()\nhook.close()")) == 0
    processes = [(event.event_args or {})["pid"] for event in events(tmp_path, STEP)]
    assert sorted(map(processes.count, set(processes))) == [3, 4]


def test_a_script_may_remove_the_folder(tmp_path: Path) -> None:
    text = "shutil.rmtree('profile')\ntrain(5).close()\nsys.exit(4)"
    assert recorded(*python(text)) == 4
    assert (steps(tmp_path), has_ended(tmp_path)) == (5, [True, True])


@contextmanager
def small_files(nbytes: int) -> Iterator[None]:
    """Let files of this process and its children grow to a size only, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_the_recording_only(tmp_path: Path, capfd: Capture) -> None:
    python("import logging\nfor _ in range(3):\n    train(200).close()\nsys.exit(6)")
    with small_files(9000):
        assert recorded(sys.executable, "script.py", interval="10ms") == 6
    text = capfd.readouterr().err
    assert text.count("The profiler is off for the rest of the training job") <= 3
    assert "The profiler is off for the rest of the training job: OSError" in text
    for path in tmp_path.rglob("*.json"):
        assert path.stat().st_size <= 9000


def test_signals_reach_the_command() -> None:
    text = "import signal, os, sys\nsignal.signal(15, lambda *_: sys.exit(5))\n"
    Path("script.py").write_text(f"{text}os.kill(os.getppid(), 15)\nsignal.pause()")
    assert recorded(sys.executable, "script.py") == 5


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        recorded("./missing")
    assert drafts(tmp_path) == []


def test_a_recording_is_not_mixed_with_another() -> None:
    assert recorded("true") == 0
    with pytest.raises(OutputError, match="holds a recording"):
        recorded("true")


def test_nothing_is_recorded_if_it_is_disabled(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"DisableProfiler": true}')
    assert record(python("train(5).close()"), FOLDER, RecordingOptions(file=file)) == 0
    assert said(capsys) == [
        "Profiling is disabled by the configuration.",
        "The command ended with exit code 0.",
        f"Nothing was recorded in {os.fspath(tmp_path / FOLDER)!r}.",
    ]
