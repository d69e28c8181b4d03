"""Timelines of Horovod: followed while they are written, with their operations in the range."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed.")

from recorded_profiles import events
from torch_profiles import model, profiled, steps

from rule_core.frameworks.pytorch.profiling import horovod
from rule_core.frameworks.pytorch.profiling.horovod import HorovodTimeline

NAME = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "allreduce.weight"}}
BEGIN: dict[str, Any] = {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 100, "pid": 1}
END = {"ph": "E", "ts": 250, "pid": 1}
WHOLE = {"ph": "X", "name": "MPI_ALLREDUCE", "ts": 300, "dur": 40, "pid": 1}
START = {"name": "process_name", "ph": "M", "pid": 0} | {
    "args": {"start_time_since_epoch_in_micros": 1_000_000}
}


def write(path: Path, *documents: object, end: str = ",\n") -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(document) + end for document in documents)


def found(timeline: HorovodTimeline) -> list[tuple[object, ...]]:
    return [record[1:5] for record in timeline.new_records()]


def test_operations_have_the_names_of_their_tensors(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    path.write_text("[\n")
    write(path, START, NAME, BEGIN, END, WHOLE)
    assert found(HorovodTimeline(path)) == [
        ("allreduce.weight", "NEGOTIATE_ALLREDUCE", 1_000_100, 1_000_250),
        ("allreduce.weight", "MPI_ALLREDUCE", 1_000_300, 1_000_340),
    ]


def test_times_of_the_monotonic_clock(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    write(path, NAME, WHOLE | {"ts": time.monotonic_ns() // 1000})
    now_us = time.time_ns() // 1000
    (record,) = HorovodTimeline(path).new_records()
    assert abs(record.start_us - now_us) < 1_000_000


def test_a_file_is_followed_from_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    timeline = HorovodTimeline(path)
    assert found(timeline) == []  # it does not exist yet
    text = json.dumps(WHOLE) + ",\n"
    write(path, START)
    with path.open("a") as file:
        file.write(text + text[:20])
    assert len(found(timeline)) == 1
    assert found(timeline) == []
    with path.open("a") as file:
        file.write(text[20:])
    assert len(found(timeline)) == 1


def test_operations_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    timeline = HorovodTimeline(path)
    write(path, START, NAME, BEGIN, BEGIN | {"name": "inner", "ts": 120})
    assert found(timeline) == []
    records = [record[2:5] for record in timeline.open_records(1_000_900)]
    assert records == [
        ("NEGOTIATE_ALLREDUCE", 1_000_100, 1_000_900),
        ("inner", 1_000_120, 1_000_900),
    ]


@pytest.mark.parametrize(
    "line", ["{", "]", "null", "7", '{"ph": "X", "ts": "now"}', '{"ph": "B"}', '{"ts": 1}', "\xff"]
)
def test_damaged_lines_cost_themselves(tmp_path: Path, line: str) -> None:
    path = tmp_path / "timeline.json"
    path.write_text(f"{line}\n" + "x" * horovod.LONGEST_EVENT + "\n", encoding="latin-1")
    timeline = HorovodTimeline(path)
    assert found(timeline) == []
    write(path, START, WHOLE)
    assert len(found(timeline)) == 1


def test_events_may_have_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    path.write_text("[\n" + json.dumps(START, indent=1) + "\n,\n" + json.dumps(WHOLE) + "\n]\n")
    assert len(found(HorovodTimeline(path))) == 1


@pytest.mark.parametrize(("rank", "names"), [("0", ["in the range"]), ("1", [])])
def test_operations_in_the_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, names: list[str]
) -> None:
    path = tmp_path / "timeline.json"
    monkeypatch.setenv("HOROVOD_TIMELINE", str(path))
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    module = model()
    hook = profiled(tmp_path, module, HorovodProfilingConfig={"StartStep": 1, "NumSteps": 1})

    def communicate(step: int) -> None:
        name = "in the range" if step == 2 else f"before step {step}"
        write(path, WHOLE | {"name": name, "ts": time.monotonic_ns() // 1000, "dur": 0})

    steps(module, 4, communicate)
    hook.close()
    recorded = [event for event in events(tmp_path) if event.file_type == "HorovodMetrics"]
    assert [event.event_name for event in recorded] == names
    assert all(event.pid == os.getpid() for event in recorded)
