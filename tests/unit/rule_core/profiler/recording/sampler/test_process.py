"""The sampler as a process: it follows its parent, and leaves whole files."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fleets import wait_until

from rule_core.profiler.recording.sampler import process as module
from rule_core.profiler.recording.sampler.process import Sampler, is_first_of_node, node_number
from rule_core.profiler.recording.sampler.system_files import END_MARK
from rule_core.trials.profiler_trial import ProfilerTrial

PARENT = """
import os, sys, time
from rule_core.profiler.recording.sampler.process import Sampler
sampler = Sampler(sys.argv[1], 50, 1)
sampler.start()
print(sampler._process.pid, flush=True)
time.sleep(60)
"""


def drafts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.algo-1.json.tmp") if path.stat().st_size]


def count(folder: Path) -> int:
    trial = ProfilerTrial("job", str(folder))
    trial.refresh()
    return len({*trial.system_samples(0, 1 << 60).time_us.tolist()})


def test_it_samples_until_it_is_stopped(tmp_path: Path) -> None:
    sampler = Sampler(str(tmp_path), 50, 1)
    sampler.start()
    wait_until(lambda: drafts(tmp_path))
    sampler.stop()
    assert count(tmp_path) >= 1
    assert (tmp_path / END_MARK).exists()
    assert not drafts(tmp_path)
    sampler.stop()  # again, for nothing


def test_a_second_sampler_of_the_node_ends(tmp_path: Path) -> None:
    first, second = Sampler(str(tmp_path), 50, 1), Sampler(str(tmp_path), 50, 1)
    first.start()
    wait_until(lambda: drafts(tmp_path))
    second.start()
    assert second._process is not None
    assert second._process.wait(60) == 0
    assert not (tmp_path / END_MARK).exists()
    first.stop()
    second.stop()


def test_it_ends_with_its_parent_and_leaves_no_end_mark(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        sampler = int(parent.stdout.readline())
        wait_until(lambda: drafts(tmp_path))
        parent.kill()
    wait_until(lambda: not Path(f"/proc/{sampler}").exists())
    assert count(tmp_path) >= 1
    assert not (tmp_path / END_MARK).exists()


def test_a_kill_leaves_whole_lines_and_one_draft(tmp_path: Path) -> None:
    sampler = Sampler(str(tmp_path), 10, 1)
    sampler.start()
    wait_until(lambda: drafts(tmp_path))
    assert sampler._process is not None
    os.kill(sampler._process.pid, signal.SIGKILL)
    sampler.stop()
    assert len(drafts(tmp_path)) == 1
    assert not (tmp_path / END_MARK).exists()


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "system").write_text("in the way")
    sampler = Sampler(str(tmp_path), 50, 1)
    sampler.start()
    assert sampler._process is not None
    assert sampler._process.wait(60) == 0
    sampler.stop()
    assert "rule-runner: System metrics are no longer sampled: " in capfd.readouterr().err


def test_a_forked_process_does_not_stop_it(tmp_path: Path) -> None:
    sampler = Sampler(str(tmp_path), 50, 1)
    sampler.start()
    child = os.fork()
    if child == 0:
        sampler.stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert sampler._process is not None
    assert sampler._process.poll() is None
    sampler.stop()


def test_it_does_not_wait_for_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT_S", 0.1)
    sampler = Sampler(str(tmp_path), 50, 1)
    sampler.start()
    assert sampler._process is not None
    os.kill(sampler._process.pid, signal.SIGSTOP)
    sampler.stop()
    assert sampler._process is None


def test_who_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (is_first_of_node(0), is_first_of_node(3)) == (True, False)
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert is_first_of_node(3)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert not is_first_of_node(0)


def test_the_number_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert node_number() == 1
    monkeypatch.setenv("GROUP_RANK", "2")
    assert node_number() == 3
    hosts = {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]}
    monkeypatch.setattr(module.layout, "resources", lambda: hosts)
    assert node_number() == 2
