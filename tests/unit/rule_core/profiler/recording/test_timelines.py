"""Timelines on the disk: whole files only, rotated, recovered after a kill, and read back."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import s3_objects
from clocks import PatientClock

from rule_core.profiler.recording import layout
from rule_core.profiler.recording.config import FileLimits
from rule_core.profiler.recording.timelines import Timelines, TraceRecord
from rule_core.trials.profiler_trial import ProfilerTrial

ORIGIN_US = 1_700_000_000_000_000
SUFFIX = "pythontimeline.json"


def record(number: int, phase: str = "Forward", at_us: int = 0) -> TraceRecord:
    start_us = ORIGIN_US + 1000 * number + at_us
    args = {"pid": 7, "step_num": str(number)}
    return TraceRecord(SUFFIX, phase, phase, start_us, start_us + 500, args)


def timelines(folder: Path | str, clock: PatientClock | None = None, **limits: Any) -> Timelines:
    clock = clock or PatientClock(1e9)
    return Timelines(str(folder), "0-box", FileLimits(**limits), clock, ORIGIN_US)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def spans(folder: Path | str) -> list[tuple[str, int, int]]:
    """Return phase, start and end of all events, as our reader sees them."""
    trial = ProfilerTrial("job", str(folder))
    trial.refresh()
    events = trial.framework_events(0, 2 * ORIGIN_US)
    return [(event.event_phase, event.start_time, event.end_time) for event in events]


def test_a_timeline_is_an_array_whose_phases_count_from_one(tmp_path: Path) -> None:
    writer = timelines(tmp_path)
    for number, phase in enumerate(("Forward", "Step:ModeKeys.TRAIN", "Forward")):
        writer.add(record(number, phase))
    writer.close()
    (path,) = files(tmp_path)
    end_us = ORIGIN_US + 2500
    assert path == tmp_path / layout.timeline_key(end_us, "0-box", SUFFIX)
    text = path.read_text()
    assert text.startswith("[\n{")
    assert text.endswith("}\n]")
    records = json.loads(text)
    assert records[0]["args"] == {"start_time_since_epoch_in_micros": ORIGIN_US}
    names = [r["args"]["name"] for r in records[2:] if r["name"] == "process_name"]
    assert names == ["Forward", "Step:ModeKeys.TRAIN"]
    assert [r["pid"] for r in records if r["ph"] == "X"] == [1, 2, 1]
    assert records[4] == {
        "name": "Forward",
        "pid": 1,
        "ph": "X",
        "ts": 0,
        "dur": 500,
        "args": {"pid": 7, "step_num": "0"},
    }


def test_the_reader_returns_what_was_recorded(tmp_path: Path) -> None:
    writer = timelines(tmp_path)
    for number in range(3):
        writer.add(record(number))
    writer.close()
    first_us = ORIGIN_US
    assert spans(tmp_path) == [
        ("Forward", first_us + 1000 * number, first_us + 1000 * number + 500) for number in range(3)
    ]


def test_a_file_is_invisible_until_it_is_closed(tmp_path: Path) -> None:
    writer = timelines(tmp_path)
    writer.add(record(0))
    (draft,) = files(tmp_path)
    assert draft == tmp_path / layout.draft_key("0-box", SUFFIX)
    assert spans(tmp_path) == []
    writer.close()
    assert len(spans(tmp_path)) == 1


def test_large_files_are_closed(tmp_path: Path) -> None:
    writer = timelines(tmp_path, max_bytes=400)
    for number in range(9):
        writer.add(record(number))
    writer.close()
    assert len(files(tmp_path)) > 2
    assert all(json.loads(path.read_text()) for path in files(tmp_path))
    assert len(spans(tmp_path)) == 9


def test_old_files_are_closed_without_a_further_event(tmp_path: Path) -> None:
    clock = PatientClock(1e9)
    writer = timelines(tmp_path, clock, max_age_s=60.0)
    writer.add(record(0))
    clock.sleep(59.0)
    writer.tick()
    assert spans(tmp_path) == []
    clock.sleep(2.0)
    writer.tick()
    assert len(spans(tmp_path)) == 1


def test_each_hour_has_files_of_its_own(tmp_path: Path) -> None:
    writer = timelines(tmp_path)
    writer.add(record(0))
    writer.add(record(1, at_us=3_600_000_000))
    writer.close()
    assert sorted(path.parent.name for path in files(tmp_path)) == ["2023111422", "2023111423"]


def test_a_name_in_use_gets_another_microsecond(tmp_path: Path) -> None:
    for _ in range(2):
        writer = timelines(tmp_path)
        writer.add(record(0))
        writer.close()
    stamps = [int(path.name.partition("_")[0]) for path in files(tmp_path)]
    assert stamps == [ORIGIN_US + 500, ORIGIN_US + 501]


@pytest.mark.parametrize("cut", [0, 1, 7, 60])
def test_the_draft_of_a_killed_process_is_recovered(tmp_path: Path, cut: int) -> None:
    writer = timelines(tmp_path)
    for number in range(3):
        writer.add(record(number))
    draft = tmp_path / layout.draft_key("0-box", SUFFIX)
    writer._open[SUFFIX].flush()
    writer._open[SUFFIX]._file.close()  # as a kill does
    text = draft.read_bytes()
    draft.write_bytes(text[: len(text) - cut])
    again = timelines(tmp_path)
    again.add(record(5))
    again.close()
    # The last record of a draft may be incomplete, so it is never kept.
    assert [start for _, start, _ in spans(tmp_path)] == [
        ORIGIN_US + 1000 * number for number in (0, 1, 5)
    ]
    assert not draft.exists()


@pytest.mark.parametrize("text", [b"", b"[\n", b"nonsense", b"[\n{}\n]", b"\xff" * 99])
def test_a_draft_without_events_is_removed(tmp_path: Path, text: bytes) -> None:
    draft = tmp_path / layout.draft_key("0-box", SUFFIX)
    draft.parent.mkdir(parents=True)
    draft.write_bytes(text)
    writer = timelines(tmp_path)
    writer.add(record(1))
    writer.close()
    assert len(files(tmp_path)) == len(spans(tmp_path)) == 1


def test_two_processes_with_one_name_do_not_share_a_draft(tmp_path: Path) -> None:
    first, second = timelines(tmp_path), timelines(tmp_path)
    first.add(record(0))
    second.add(record(1))
    first.close()
    second.close()
    nodes = sorted(path.name.split("_")[1] for path in files(tmp_path))
    assert nodes == ["0-box", f"0-box-{os.getpid()}"]
    assert len(spans(tmp_path)) == 2


def test_too_many_failures_to_open_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "framework").write_text("in the way")
    writer = timelines(tmp_path, open_failures=3)
    writer.add(record(0))
    writer.add(record(1))
    with pytest.raises(OSError, match="framework"):
        writer.add(record(2))
    assert writer.failures == 3


def test_a_recording_in_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    writer = timelines("s3://bucket/profile")
    writer.add(record(0))
    writer.close()
    assert spans("s3://bucket/profile") == [("Forward", ORIGIN_US, ORIGIN_US + 500)]
