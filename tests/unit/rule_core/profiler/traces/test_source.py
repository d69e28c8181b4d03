"""Framework events of a range of time: each in one window, parsed once, kept small."""

import json
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest
import timeline_writer
from memory_store import MemoryStore
from profiler_writer import BEGIN_US, END, MINUTE_US
from timeline_writer import HOROVOD, PYTHON, Event

from rule_core.exceptions import SMDebugRuntimeError
from rule_core.profiler.files.file_problems import PROBLEMS_KEPT, ProfilerFileProblems
from rule_core.profiler.files.profiler_files import ProfilerFiles
from rule_core.profiler.traces import packed_events
from rule_core.profiler.traces.event import ProcessInfo, TraceEvent
from rule_core.profiler.traces.packed_events import PackedEvents
from rule_core.profiler.traces.source import TraceSource
from rule_core.storage.base import ByteRange

S = 1_000_000


def timeline(
    events: Sequence[Event], node: str = "1-algo-1", kind: str = PYTHON
) -> dict[str, bytes]:
    """Return a file of events whose times count from the begin of the job."""
    end = BEGIN_US + int(max(one.ts + one.dur for one in events))
    text = timeline_writer.text(timeline_writer.records(events, BEGIN_US))
    return {timeline_writer.key(end, node, kind): text.encode()}


def steps(first: int, last: int) -> list[Event]:
    """Return steps of 1.5 s, one after the other."""
    return [timeline_writer.step(at, at * 1.5 * S, 1.5 * S) for at in range(first, last)]


class Store(MemoryStore):
    """Counts what is read."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.reads: list[str] = []

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        self.reads.append(key)
        return super().read(key, byte_range)


class Made:
    """A source over a store, and its parts."""

    def __init__(self, files: dict[str, bytes], **more: int) -> None:
        self.store = Store(files)
        self.files = ProfilerFiles(self.store, ProfilerFileProblems("job"))
        self.source = TraceSource(self.files, **more)
        self.files.refresh()

    def ending(self, minute: int) -> list[TraceEvent]:
        start = BEGIN_US + minute * MINUTE_US
        return self.source.ending(start, start + MINUTE_US)


def job() -> dict[str, bytes]:
    """Return ten minutes of steps, a file a minute."""
    found: dict[str, bytes] = {}
    for minute in range(10):
        found |= timeline(steps(40 * minute, 40 * minute + 40))
    return found


def number(event: TraceEvent) -> int:
    assert event.event_args is not None
    return int(event.event_args["step_num"])


@pytest.mark.parametrize("cached", [0, 1 << 25])
def test_each_event_ends_in_one_window(cached: int) -> None:
    made = Made(job(), cached_bytes=cached)
    found = [[number(one) for one in made.ending(at)] for at in range(11)]
    # One that ends with a window belongs to the next.
    assert found[0] == list(range(39))
    assert found[1] == list(range(39, 79))
    assert found[10] == [399]
    assert [one for window in found for one in window] == list(range(400))
    reads = [made.store.reads.count(one) for one in set(made.store.reads)]
    assert max(reads) == (3 if cached == 0 else 1)


def test_events_are_in_the_order_of_their_ends_then_of_starts_and_nodes() -> None:
    events = [
        Event("p", "a", 5, 10, None),
        Event("p", "b", 2, 13, {}),
        Event("p", "c", 1, 3, {"x": [1]}),
    ]
    made = Made(timeline(events) | timeline(events[:1], "1-algo-2"))
    found = made.ending(0)
    assert [(one.event_name, one.node_id) for one in found] == [
        *(("c", "algo-1-1"), ("b", "algo-1-1"), ("a", "algo-1-1"), ("a", "algo-2-1")),
    ]
    assert [one.event_args for one in found] == [{"x": [1]}, {}, None, None]
    assert found[0].end_time == BEGIN_US + 4


def test_a_zero_length_event_and_one_of_a_steps_length() -> None:
    made = Made(timeline([Event("p", "a", 0, 0), Event("p", "b", 0, 2 * MINUTE_US)]))
    assert [[one.event_name for one in made.ending(at)] for at in range(3)] == [["a"], [], ["b"]]


def test_events_that_overlap_come_kind_by_kind() -> None:
    horovod = timeline([Event("p", "h", 10, 10)], kind=HOROVOD)
    made = Made(horovod | timeline([Event("p", "a", 0, 10), Event("p", "b", 20, 5)]))
    found = made.source.overlapping(BEGIN_US + 10, BEGIN_US + 15)
    assert [one.event_name for one in found] == ["a", "h"]
    assert list(made.source.overlapping(BEGIN_US + 26, BEGIN_US + 30)) == []


def test_an_event_comes_back_as_it_was() -> None:
    process = ProcessInfo(3, "Forward")
    given = TraceEvent(
        5.5,
        "op",
        2,
        "pid",
        4,
        {"a": {"b": [None, 1.5]}},
        "algo-1",
        "X",
        "T",
        "Forward",
        7,
        "t",
        process,
    )
    (found,) = PackedEvents([given], "x").ending(0, 10)
    for name in TraceEvent.__slots__:
        assert getattr(found, name) == getattr(given, name)
    assert found.process_info is process


def test_numbers_of_many_digits_come_back() -> None:
    event = TraceEvent(1, "op", 1, 1, 1, {"big": 2**80}, "n", "X", "T")
    (found,) = PackedEvents([event], "x").ending(0, 10)
    assert found.event_args == {"big": 2**80}


def many(count: int) -> list[TraceEvent]:
    return [TraceEvent(at, "op", 1, 1, 1, {"at": at}, "n", "X", "T") for at in range(count)]


def test_large_timelines_go_to_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_events, "IN_MEMORY", 1 << 14)
    monkeypatch.setattr(packed_events, "BLOCK", 100)
    packed = PackedEvents(iter(many(5000)), "x")
    assert packed.count == 5000
    assert [one.event_args for one in packed.ending(4000, 4003)] == [
        {"at": at} for at in (3999, 4000, 4001)
    ]
    assert len(list(packed.overlapping(0, 5001))) == 5000
    assert packed.nbytes < 5000
    assert packed.span == (0, 1, 5000)


def test_a_disk_without_room_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packed_events, "IN_MEMORY", 10)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(
        SMDebugRuntimeError,
        match=r"^The events of 'x' cannot be kept in a temporary file: No space left on device\. "
        r"Set TMPDIR to a folder with free space\.$",
    ):
        PackedEvents(many(1), "x")


def test_an_event_that_begins_in_one_file_and_ends_in_the_next() -> None:
    zero = timeline_writer.meta(0, start_time_since_epoch_in_micros=BEGIN_US)
    begin = {"name": "a", "ph": "B", "pid": 1, "ts": 10}
    end = {"ph": "E", "pid": 1, "ts": 20 * S}
    ends = (10, 20 * S)
    first, second = (timeline_writer.key(BEGIN_US + at, "1-algo-1", HOROVOD) for at in ends)
    files = {
        key: json.dumps([zero, record]).encode() for key, record in ((first, begin), (second, end))
    }
    made = Made(files, cached_bytes=0)
    for _ in range(2):
        assert [(one.event_name, one.duration) for one in made.ending(0)] == [("a", 20 * S - 10)]


def test_damage_is_reported_once_and_the_rest_is_read() -> None:
    files = timeline(steps(0, 10)) | timeline(steps(0, 20), "2-algo-2")
    damaged = next(key for key in files if "algo-1" in key)
    files[damaged] = files[damaged][: len(files[damaged]) // 2]
    made = Made(files, cached_bytes=0)
    found = made.ending(0)
    assert len([one for one in found if one.node_id == "algo-2-2"]) == 20
    assert 0 < len([one for one in found if one.node_id == "algo-1-1"]) < 10
    made.ending(0)
    assert (list(made.files.problems.problems), made.files.problems.count) == ([damaged], 1)


def test_when_the_first_event_ends() -> None:
    empty = timeline_writer.key(BEGIN_US + 9, "1-algo-3")
    made = Made(timeline([Event("p", "b", 50, 5), Event("p", "a", 0, 10)]) | {empty: b"[]"} | END)
    files = {key[1]: files[0] for key, files in made.files.traces.items()}
    assert made.source.first_end_us(files["1-algo-1"]) == BEGIN_US + 10
    assert made.source.first_end_us(files["1-algo-3"]) == BEGIN_US + 9
    assert made.store.reads == list(dict.fromkeys(made.store.reads))


def test_problems_are_bounded_and_can_be_mended(caplog: pytest.LogCaptureFixture) -> None:
    file_problems = ProfilerFileProblems("/t")
    for at in range(PROBLEMS_KEPT + 5):
        file_problems.report(str(at), "It is bad.", 2)
    file_problems.report("0", "It is bad.", 2)
    assert len(file_problems.problems) == PROBLEMS_KEPT
    assert file_problems.count == 2 * PROBLEMS_KEPT + 10
    assert len(caplog.records) == PROBLEMS_KEPT + 5
    assert caplog.records[0].getMessage() == "Trial '/t': '0': It is bad."
    file_problems.clear("0")
    assert ("0" in file_problems.problems, file_problems.count) == (False, 2 * PROBLEMS_KEPT + 8)


def test_between_the_events_of_a_file_there_may_be_none_for_long() -> None:
    far = 10**15
    events = [*steps(0, 600), timeline_writer.step(600, far, 10.0), *steps(601, 603)]
    one = Made(timeline(events) | END)
    (file,) = one.files.traces["pythontimeline.json", "1-algo-1"]
    asked = [0, 2 * S, 903 * S, int(904.5 * S) + 1, far + 10, far + 11]
    found = [one.source.next_end_us(file, BEGIN_US + at) for at in asked]
    ends = [1.5 * S, 3.0 * S, 903.0 * S, far + 10.0, far + 10.0]
    assert found == [*(BEGIN_US + end for end in ends), None]
    near = file.end_us - 3600 * S
    assert one.source.next_end_us(file, near) == near


def test_a_name_that_lies_about_the_end_makes_no_data() -> None:
    ((_, content),) = timeline(steps(0, 2)).items()
    one = Made({timeline_writer.key(BEGIN_US + 9 * 10**12, "1-algo-1", PYTHON): content})
    (file,) = one.files.traces["pythontimeline.json", "1-algo-1"]
    assert one.source.next_end_us(file, BEGIN_US) == BEGIN_US + 1.5 * S
    assert one.source.next_end_us(file, BEGIN_US + 4 * S) is None


def test_of_very_many_events_in_a_window_some_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.profiler.traces.source.MOST_EVENTS", 5)
    one = Made(timeline(steps(0, 4)) | timeline(steps(0, 6), "2-algo-1") | END)
    assert len(one.source.ending(BEGIN_US, BEGIN_US + 6 * S + 1)) == 5
    ((key, text),) = one.files.problems.problems.items()
    assert key.endswith("_2-algo-1_pythontimeline.json and others")
    assert text.startswith("More than 1,000,000 events end in one time window: ")
    few = Made(timeline(steps(0, 5)) | END)
    assert len(few.source.ending(BEGIN_US, BEGIN_US + 60 * S)) == 5
    assert few.files.problems.problems == {}
