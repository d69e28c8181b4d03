"""The profiler of SageMaker's library for data parallelism, with a fake of the library."""

import json
import logging
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed.")

from recorded_profiles import events
from torch_profiles import model, profiled, steps

CONFIG = {"SMDataParallelProfilingConfig": {"StartStep": 1, "NumSteps": 2}}


class FakeLibrary(ModuleType):
    """Writes a timeline with one event when it is stopped."""

    def __init__(self) -> None:
        super().__init__("smdistributed.dataparallel")
        self.calls: list[Any] = []

    def start_profiler(self, path: str, append_rank: bool = True) -> None:
        self.calls.append((Path(path).name, append_rank))
        self._path, self._start_us = Path(path), time.time_ns() // 1000

    def stop_profiler(self) -> None:
        self.calls.append("stop")
        start = {"start_time_since_epoch_in_micros": self._start_us}
        head = {"name": "process_name", "ph": "M", "pid": 0, "args": start}
        event = {"name": "allreduce", "ph": "X", "ts": 1, "dur": 2, "pid": 0, "args": {}}
        self._path.write_text(json.dumps([head, event]))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    fake = FakeLibrary()
    monkeypatch.setitem(sys.modules, "smdistributed", ModuleType("smdistributed"))
    monkeypatch.setitem(sys.modules, "smdistributed.dataparallel", fake)
    return fake


@pytest.mark.parametrize("count", [2, 5], ids=["closed in the range", "closed after it"])
def test_the_library_profiles_the_range(tmp_path: Path, library: FakeLibrary, count: int) -> None:
    module = model()
    hook = profiled(tmp_path, module, **CONFIG)
    steps(module, count)
    hook.close()
    (started, append_rank), stop = library.calls
    assert started.endswith("smdataparallel_timeline.json.tmp")
    assert (append_rank, stop) == (False, "stop")
    recorded = [event for event in events(tmp_path) if event.file_type == "SMDataParallelMetrics"]
    assert [event.event_name for event in recorded] == ["allreduce"]
    assert not list((tmp_path / "profile").rglob("*.tmp"))


def test_a_missing_library_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "smdebug.hook")
    module = model()
    hook = profiled(tmp_path, module, **CONFIG)
    steps(module, 4)
    hook.close()
    assert caplog.text.count("smdistributed.dataparallel is missing") == 1
    assert events(tmp_path, "Forward")


def test_an_error_stops_the_library(tmp_path: Path, library: FakeLibrary) -> None:
    module = model()
    hook = profiled(tmp_path, module, **CONFIG)
    steps(module, 2)
    assert hook.profiler is not None
    hook.profiler.run(int, "no number")
    steps(module, 1)
    assert library.calls[-1] == "stop"
    hook.close()
