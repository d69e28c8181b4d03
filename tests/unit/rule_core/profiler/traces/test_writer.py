"""One trace of many events: order, numbers of phases, rows of threads; sorting on the disk."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rule_core.profiler.traces import external_sort
from rule_core.profiler.traces import writer as trace_writer
from rule_core.profiler.traces.event import ProcessInfo, TraceEvent
from rule_core.profiler.traces.external_sort import SortedLines
from rule_core.profiler.traces.writer import EventLines, TraceWriter

Json = dict[str, Any]


def event(
    event_phase: str, name: str, ts: float, dur: float, tid: int = 1, **how: Any
) -> TraceEvent:
    """Return an event of a thread; `real` is the number that its args have for the thread."""
    process = ProcessInfo(9, event_phase)
    process.add_thread(tid, f"node_{tid}")
    real = how.pop("real", tid)
    how = {"event_args": None, "node_id": "node", "phase": "X", "file_type": "", **how}
    return TraceEvent(
        ts, name, dur, 9, tid, event_phase=event_phase, tid=real, process_info=process, **how
    )


def written(events: Iterable[TraceEvent]) -> list[Json]:
    text = bytearray()
    with SortedLines() as lines:
        taken = EventLines(lines)
        for one in events:
            taken.add(one)
        writer = TraceWriter(text.extend)
        writer.write_events(iter(lines), taken.tracks)
    found: list[Json] = json.loads(text)
    return found


def drawn(found: Iterable[Json]) -> list[Json]:
    return [one for one in found if one["ph"] != "M"]


def named(found: Iterable[Json], kind: str) -> dict[Any, Any]:
    """Return what metadata records of a kind say, by phase, or by phase and thread."""
    return {
        (one["pid"], one["tid"]) if kind.startswith("thread") else one["pid"]: one["args"]
        for one in found
        if one["name"] == kind
    }


def test_events_come_by_their_start_and_outer_ones_first() -> None:
    events = [event("a", "late", 5, 1), event("a", "inner", 1, 2), event("b", "outer", 1, 9.5)]
    found = drawn(written([*events, event("a", "before the epoch", -3, 1)]))
    assert [one["name"] for one in found] == ["before the epoch", "outer", "inner", "late"]
    assert (found[1]["ts"], found[1]["dur"], found[2]["dur"]) == (1, 9.5, 2)


def test_no_events_are_an_empty_array() -> None:
    assert written([]) == []


@pytest.mark.parametrize(
    ("phases", "numbers"),
    [
        (["Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"], [1, 2]),
        (["Forward", "Forward-SubModuleInternal", "Backward(post-forward)"], [10000, 10001, 20000]),
        (["DataIterator", "Dataset", "/device:GPU:0", "/host:CPU"], [30000, 40000, 50000, 60000]),
        (["gpu_functions-dev:0", "cpu_functions"], [70000, 80000]),
        (["Adam_Allreduce/HorovodAllreduce_x", "NcclManager"], [90000, 1000000]),
    ],
)
def test_phases_have_the_numbers_of_their_kind(phases: list[str], numbers: list[int]) -> None:
    found = written(event(phase, "x", at, 1) for at, phase in enumerate(phases))
    names = {number: {"name": phase} for number, phase in zip(numbers, phases, strict=True)}
    assert named(found, "process_name") == names
    order = {number: {"sort_index": number} for number in numbers}
    assert named(found, "process_sort_index") == order
    assert [one["pid"] for one in drawn(found)] == numbers


def test_phases_beyond_the_numbers_of_their_kind_are_among_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = {"Step:": 1, "Forward": 3, "": 5}
    monkeypatch.setattr(trace_writer, "FIRST_NUMBERS", numbers)
    found = written(event(f"Step:{n}", "x", n, 1) for n in range(4))
    assert [one["pid"] for one in drawn(found)] == [1, 2, 5, 6]


def test_what_overlaps_on_a_thread_is_drawn_in_another_row() -> None:
    spans = [(0, 10), (2, 8), (2, 12), (3, 4), (11, 2), (12, 1)]
    found = written(
        event("a", f"{at}", at, end - at) for at, end in [*spans[:4], (11, 13), (12, 13)]
    )
    rows = named(found, "thread_name")
    assert rows == {(1000000, 1): {"name": "node_1"}, (1000000, 2): {"name": "node_1 (2)"}}
    assert named(found, "thread_sort_index") == {
        (1000000, 1): {"sort_index": 1},
        (1000000, 2): {"sort_index": 2},
    }
    assert [(one["ts"], one["dur"], one["tid"]) for one in drawn(found)] == [
        (0, 10, 1),
        (2, 10, 2),
        (2, 6, 1),
        (3, 1, 1),
        (11, 2, 1),
        (12, 1, 1),
    ]


def test_rows_of_a_thread_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_writer, "_MOST_ROWS", 3)
    found = drawn(written(event("a", "x", at, 100) for at in range(9)))
    assert [one["tid"] for one in found] == [1, 2, 3, 3, 3, 3, 3, 3, 3]


def test_threads_of_a_phase_are_distinguished_by_node_and_real_number() -> None:
    found = written(
        [
            event("a", "x", 1, 1),
            event("a", "x", 2, 1, node_id="other"),
            event("a", "x", 3, 1, tid=5),
            TraceEvent(
                4,
                "x",
                1,
                9,
                1,
                None,
                "node",
                "X",
                "",
                "a",
                9,
                77,
                event("a", "", 0, 0).process_info,
            ),
        ]
    )
    names = [one["name"] for one in named(found, "thread_name").values()]
    assert names == ["node_1", "node_1", "node_5", "node_77"]


def test_counters_and_marks_are_written_as_the_format_has_them() -> None:
    found = written(
        [
            event("memory", "bytes", 1, 0, phase="C", event_args={"value": 5}),
            event("cycle", "start", 2, 0, phase="i", event_args={"s": "g", "n": 1}),
            event("cycle", "start", 3, 0, phase="i", event_args={"s": 7}),
        ]
    )
    counter, first, second = drawn(found)
    assert counter == {
        "name": "bytes", "ph": "C", "ts": 1, "pid": 1000000, "tid": 0, "args": {"value": 5}
    }  # fmt: skip
    assert first == {
        "name": "start", "ph": "i", "ts": 2, "pid": 1000001, "tid": 1, "s": "g", "args": {"n": 1}
    }  # fmt: skip
    assert (second["s"], "args" in second) == ("t", False)


def test_what_no_viewer_can_have_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_writer, "_MOST_TRACKS", 2)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with SortedLines() as lines:
        taken = EventLines(lines)
        taken.add(event("a", "x", 0, 1, event_args={"deep": deep}))
        for thread in range(5):
            taken.add(event("a", "x", 0, 1, tid=thread))
        assert (taken.count, taken.left_out) == (2, 4)


# -- sorting ----------------------------------------------------------------------------------


def numbers(count: int) -> list[bytes]:
    return [b"%05d\n" % (n * 7919 % count) for n in range(count)]


@pytest.mark.parametrize(
    ("run_bytes", "most_runs", "files"),
    [
        pytest.param(1 << 20, 4, 0, id="in-memory"),
        pytest.param(4700, 100, 9, id="runs"),
        pytest.param(470, 4, 3, id="runs-of-runs"),
    ],
)
def test_lines_come_back_sorted_however_little_memory_there_is(
    tmp_path: Path, run_bytes: int, most_runs: int, files: int
) -> None:
    lines = numbers(1000)
    with SortedLines(run_bytes, most_runs, str(tmp_path)) as taken:
        for line in lines:
            taken.add(line)
        assert len(taken._runs) == files
        assert list(tmp_path.iterdir()) == []
        assert list(taken) == sorted(lines)
        assert list(taken) == sorted(lines)
    assert all(run.closed for run in taken._runs)


def test_no_room_for_temporary_files_is_reported_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = Path("/dev/full").open("wb")  # noqa: SIM115 - `SortedLines` closes it
    monkeypatch.setattr(external_sort, "TemporaryFile", lambda **_: full)
    said = "Events cannot be sorted in temporary files: No space left on device. Set TMPDIR to"
    with pytest.raises(OSError, match=said), SortedLines(10) as lines:
        lines.add(b"line\n")
