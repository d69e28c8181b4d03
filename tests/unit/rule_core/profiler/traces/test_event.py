"""Events of timelines: phases, threads, pairs, times, and everything else in such files."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
import timeline_writer as tw

from rule_core.profiler.files.chunks import LIMITS, TimelineLimits
from rule_core.profiler.traces.assembler import Assembler
from rule_core.profiler.traces.event import TraceEvent
from rule_core.profiler.traces.records import RecordReader

if TYPE_CHECKING:
    from rule_core.profiler.traces.assembler import OpenEvents

ZERO = tw.START_US
STABLE = 226081469641578  # made of node, thread and phase: any process makes it so


def parse(
    records: Iterable[Any], problems: list[str] | None = None, **how: Any
) -> list[TraceEvent]:
    text = json.dumps(list(records)).encode()
    reader = RecordReader([text], how.pop("limits", LIMITS))
    assembler = Assembler(reader, **{"node_id": "11-algo-1", "file_type": "T", **how})
    return list(assembler.parse("t.json", [] if problems is None else problems))


def spans(events: Iterable[TraceEvent]) -> list[tuple[str, float, float]]:
    return [(one.event_name, one.start_time, one.end_time) for one in events]


def test_an_event_has_all_that_its_file_tells() -> None:
    first, second = parse(tw.records([tw.step(3, 100, 50), tw.Event("Forward", "fc", 120, 0.5)]))
    assert (first.start_time, first.duration, first.end_time) == (ZERO + 100, 50, ZERO + 150)
    assert first.event_name == first.event_phase == "Step:ModeKeys.TRAIN"
    assert first.event_args == {"pid": 11, "step_num": "3"}
    assert (first.phase, first.file_type, first.node_id) == ("X", "T", "algo-1-11")
    assert (first.phase_pid, first.pid) == (1, 11)
    assert first.process_info is not None
    assert repr(first.process_info.get_thread_info(first.phase_tid)) == (
        f"tid:{first.phase_tid} name:algo-1-11_0"
    )
    assert (second.event_args, second.pid, second.end_time) == (None, 2, ZERO + 120.5)
    assert "Forward" in repr(second)
    assert "id:1 name:Step" in repr(first.process_info)


def test_threads_without_a_name_have_the_same_number_in_every_process() -> None:
    (event,) = parse(tw.records([tw.step(0, 0, 1)]))
    assert (event.tid, event.phase_tid) == (STABLE, STABLE)
    (other,) = parse(tw.records([tw.step(0, 0, 1)]), node_id="12-algo-1")
    assert other.tid != STABLE


def test_named_threads_keep_their_numbers_and_names() -> None:
    named = [
        tw.meta(1, name="/device"),
        {"name": "a", "ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 7},
        tw.meta(1, "thread_sort_index", 7, sort_index=7),
        tw.meta(1, "thread_name", 7, name="stream"),
        {"name": "b", "ph": "X", "ts": 2, "dur": 1, "pid": 1, "tid": 7, "args": {"thread_id": 70}},
        {"name": "c", "ph": "X", "ts": 2, "dur": 1, "pid": 2, "tid": 7},
    ]
    before, after, other = parse(named)
    assert after.process_info is not None
    assert (after.phase_tid, after.tid) == (7, 70)
    assert after.process_info.get_thread_info(7).thread_name == "algo-1-11_stream"
    assert before.phase_tid not in {7, other.phase_tid}
    assert other.event_phase == "Unknown"


def test_a_phase_may_change_its_name_and_announce_itself_often() -> None:
    event = {"ph": "X", "ts": 1, "dur": 1, "pid": 0}
    records = [
        tw.meta(0, start_time_since_epoch_in_micros=5),
        {**event, "name": "a"},
        tw.meta(0, name="Step"),
        tw.meta(0, name="Step"),
        {**event, "name": "b"},
    ]
    assert [(one.event_name, one.event_phase, one.start_time) for one in parse(records)] == [
        ("a", "Unknown", 6),
        ("b", "Step", 6),
    ]


def test_pairs_are_matched_by_thread() -> None:
    records = [
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 0, "args": {"a": 1, "b": 1}},
        {"ph": "B", "name": "other", "pid": 1, "tid": 2, "ts": 1},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "E", "name": "any", "pid": 1, "tid": 1, "ts": 5, "args": {"b": 2}},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 8},
    ]
    found = parse(records)
    assert spans(found) == [("inner", 2, 3), ("outer", 0, 5), ("other", 1, 8)]
    assert [one.event_args for one in found] == [None, {"a": 1, "b": 2}, None]


def test_an_end_of_a_named_thread_is_an_event_of_it() -> None:
    records = [
        tw.meta(1, "thread_name", 4, name="main"),
        {"ph": "B", "name": "a", "pid": 1, "tid": 4, "ts": 0},
        {"ph": "E", "pid": 1, "tid": 4, "ts": 2},
    ]
    assert [one.phase_tid for one in parse(records)] == [4]


def test_ends_without_a_beginning_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="smdebug.profiler")
    problems: list[str] = []
    records = [
        {"ph": "E", "pid": 1, "ts": 1},
        {"ph": "B", "name": "late", "pid": 1, "ts": 5},
        {"ph": "E", "pid": 1, "ts": 4},
        {"ph": "E", "pid": 1, "ts": 9},
    ]
    assert spans(parse(records, problems)) == [("late", 5, 9)]
    assert problems == []
    assert "Timeline 't.json' has 2 E events that did not begin in it." in caplog.text


def test_what_begins_in_one_file_may_end_in_the_next() -> None:
    begun: OpenEvents = {}
    first = [
        tw.meta(0, start_time_since_epoch_in_micros=100),
        {"ph": "B", "name": "a", "pid": 1, "ts": 1},
    ]
    second = [
        tw.meta(0, start_time_since_epoch_in_micros=200),
        {"ph": "E", "pid": 1, "ts": 1},
    ]
    assert parse(first, open_events=begun) == []
    assert spans(parse(second, open_events=begun)) == [("a", 101, 201)]
    assert begun == {}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        pytest.param({"ph": "X", "ts": 1, "dur": 1, "pid": 1}, "it has no 'name'"),
        pytest.param({"ph": "X", "ts": 1, "dur": 1, "name": "a"}, "it has no 'pid'"),
        pytest.param({"ph": "X", "ts": 1, "pid": 1, "name": "a"}, "it has no 'dur'"),
        pytest.param({"ph": "X", "dur": 1, "pid": 1, "name": "a"}, "it has no 'ts'"),
        pytest.param({"ph": "X", "ts": 1, "dur": -1, "pid": 1, "name": "a"}, "it lasts -1 us"),
        pytest.param(
            {"ph": "X", "ts": 10**30, "dur": 1, "pid": 1, "name": "a"}, "its time is 1e+30 us"
        ),
        pytest.param(
            {"ph": "X", "ts": 1, "dur": 1, "pid": 1 << 64, "name": "a"},
            "its pid or tid has more than 63 bits",
        ),
        pytest.param({"ph": "M", "name": "thread_name", "pid": 1}, "it has no 'tid'"),
        pytest.param({"ph": "B", "ts": 1, "pid": 1}, "it has no 'name'"),
        pytest.param(
            tw.meta(0, start_time_since_epoch_in_micros="x"),
            "its start_time_since_epoch_in_micros is 'x'",
        ),
    ],
)
def test_records_that_make_no_event_are_counted_with_a_reason(
    record: dict[str, Any], reason: str
) -> None:
    problems: list[str] = []
    good = {"ph": "X", "ts": 1, "dur": 1, "pid": 1, "name": "good"}
    assert spans(parse([record, good, record], problems)) == [("good", 1, 2)]
    assert problems == [
        f"Timeline 't.json' has 2 records that are skipped, the first because {reason}."
    ]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        pytest.param(
            [{"ph": "X", "ts": n, "dur": 1, "pid": 1, "tid": n, "name": "a"} for n in range(5)],
            "there are more than 3 phases or threads",
            id="threads",
        ),
        pytest.param(
            [tw.meta(n, name=str(n)) for n in range(5)],
            "there are more than 3 phases or threads",
            id="phases",
        ),
        pytest.param(
            [tw.meta(1, "thread_name", n, name="x") for n in range(5)],
            "there are more than 3 phases or threads",
            id="names",
        ),
        pytest.param(
            [{"ph": "B", "ts": n, "pid": 1, "name": "a"} for n in range(5)],
            "there are more than 3 events open",
            id="open",
        ),
    ],
)
def test_what_a_file_makes_us_remember_is_bounded(records: list[Any], reason: str) -> None:
    problems: list[str] = []
    parse(records, problems, limits=TimelineLimits(rows=3))
    assert f" 2 records that are skipped, the first because {reason}." in problems[0]


def test_marks_are_given_when_asked_for() -> None:
    records = [
        {"ph": "i", "name": "cycle", "ts": 1, "s": "g"},
        {"ph": "C", "name": "memory", "ts": 2, "pid": 3, "args": {"bytes": 5}},
        {"ph": "s", "name": "flow", "ts": 3},
    ]
    assert parse(records) == []
    instant, counter = parse(records, marks=True)
    assert (instant.phase, instant.event_args, instant.duration) == ("i", {"s": "g"}, 0)
    assert (counter.phase, counter.event_args, counter.phase_pid) == ("C", {"bytes": 5}, 3)


def test_events_become_records_again() -> None:
    event = TraceEvent(1, "a", 2, 3, 4, {"s": "g", "x": 1}, "n", "i", "", pid=5, tid=6)
    assert json.loads(event.to_json()) == {
        "name": "a", "pid": 5, "tid": 6, "ph": "i", "ts": 1, "s": "g", "args": {"x": 1}
    }  # fmt: skip
    assert event.event_args == {"s": "g", "x": 1}
    plain = TraceEvent(1, "a", 2, 3, 4, None, "n", "X", "")
    assert json.loads(plain.to_json()) == {
        "name": "a", "pid": 0, "tid": 0, "ph": "X", "ts": 1, "dur": 2
    }  # fmt: skip
