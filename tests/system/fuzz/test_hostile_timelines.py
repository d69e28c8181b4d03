"""Timelines with bytes changed, cut off and doubled: never an exception, always bounded answers."""

import gzip
from typing import Any

import timeline_writer as tw
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.profiler.files.chunks import TimelineLimits
from rule_core.profiler.traces.files import events_of

KEY = "framework/pevents/2020091312/1600000000000000_11-algo-1_pythontimeline.json"
RECORDS = [
    *tw.records([tw.step(0, 0, 5), tw.Event("Forward", 'a "},{" b', 1, 2.5, {"x": [{}]})]),
    tw.meta(2, "thread_name", 7, name="stream"),
    {"name": "b", "ph": "B", "pid": 2, "tid": 7, "ts": 3},
    {"ph": "E", "pid": 2, "tid": 7, "ts": 9},
    {"ph": "i", "name": "mark", "ts": 3, "s": "g"},
]
PLAIN = tw.text(RECORDS).encode()
LIMITS = TimelineLimits(chunk=100, record=400, header=200, rows=5, skipped=5, total=5000)
TOKENS = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"NaN", b"1e999", b"-", b"\xff", b"9" * 40]


@st.composite
def damaged(draw: Any) -> bytes:
    """Draw a timeline in which some places were overwritten, cut out or repeated."""
    content = bytearray(draw(st.sampled_from([PLAIN, gzip.compress(PLAIN, mtime=0)])))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(content)))
        end = at + draw(st.integers(0, 30))
        content[at:end] = draw(st.sampled_from([b"", *TOKENS, bytes(content[at : at + 200])]))
    return bytes(content)


@given(damaged())
def test_a_damaged_timeline_is_read_as_far_as_it_goes(content: bytes) -> None:
    problems: list[str] = []
    found = list(events_of(MemoryStore({KEY: content}), KEY, problems, marks=True, limits=LIMITS))
    assert all(one.end_time >= one.start_time for one in found)
    assert len(problems) <= 2
    assert all(one.startswith("Timeline ") and one.endswith(".") for one in problems)


@given(st.integers(0, len(PLAIN)), st.integers(2, 300))
def test_what_comes_before_a_cut_is_read_whatever_the_pieces(cut: int, size: int) -> None:
    def read(limits: TimelineLimits) -> tuple[list[str], list[str]]:
        problems: list[str] = []
        store = MemoryStore({KEY: PLAIN[:cut]})
        return [one.event_name for one in events_of(store, KEY, problems, limits=limits)], problems

    assert read(TimelineLimits(chunk=size)) == read(TimelineLimits())
