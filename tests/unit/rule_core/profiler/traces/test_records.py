"""Records of timelines: split wherever the text is cut, and what hostile text comes to."""

import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from memory_store import MemoryStore

from rule_core.profiler.files.chunks import LIMITS, TimelineFaultError, TimelineLimits, chunks
from rule_core.profiler.traces.records import Record, RecordReader

NASTY = [
    {
        "name": 'a "quoted" },{ name\\',
        "ph": "X",
        "ts": 1,
        "dur": 2.5,
        "pid": 1,
        "args": {"x": [{}]},
    },
    {"name": "}]\n,{", "ph": "X", "ts": 2, "dur": 0, "pid": "p", "args": {"y": {"z": "{"}}},
    {"name": "日本", "ph": "i", "ts": 3, "s": "g", "unknown": [1, {"a": []}]},
]


def read(reader: RecordReader) -> list[Record]:
    return [record for batch in reader.batches() for record in batch]


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[at : at + size] for at in range(0, len(text), size))


def fault(text: Iterable[bytes], limits: TimelineLimits = LIMITS) -> tuple[list[Record], str]:
    """Return what was read before a fault, and the fault."""
    found = []
    try:
        for batch in RecordReader(text, limits).batches():
            found += batch
    except TimelineFaultError as err:
        return found, str(err)
    return found, ""


def names(found: Iterable[Record]) -> list[str | None]:
    return [one.name for one in found]


LAYOUTS = [
    pytest.param(json.dumps(NASTY), id="spaced"),
    pytest.param(json.dumps(NASTY, separators=(",", ":"), ensure_ascii=False), id="compact"),
    pytest.param(json.dumps(NASTY, indent=2), id="indented"),
    pytest.param("[\n" + ",\n".join(map(json.dumps, NASTY)) + "\n]\n", id="lines"),
    pytest.param("[\n" + ",\n".join(map(json.dumps, NASTY)) + ",\n", id="without-bracket"),
    pytest.param("\ufeff [" + ",".join(map(json.dumps, NASTY)) + ",]", id="mark-and-comma"),
    pytest.param(
        json.dumps({"traceEvents?": ["traceEvents"], "traceEvents": NASTY, "more": {"a": [1]}}),
        id="object",
    ),
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_records_are_the_same_wherever_the_text_is_cut(text: str) -> None:
    data = text.encode()
    whole = read(RecordReader([data]))
    assert [one["name"] for one in NASTY] == names(whole)
    assert [one.s for one in whole] == [None, None, "g"]
    for size in [1, 7, 64]:
        assert whole == read(RecordReader(pieces(data, size)))


def test_many_records_are_decoded_together_and_in_order() -> None:
    data = json.dumps([{"ts": n, "args": {"n": n}} for n in range(5000)]).encode()
    reader = RecordReader(pieces(data, 1 << 14))
    assert list(range(5000)) == [one.ts for one in read(reader)]
    assert reader.skipped == 0


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        pytest.param('{"ts": NaN}', "it cannot be decoded: JSON is malformed: invalid character"),
        pytest.param('{"ts": 1e999}', "it cannot be decoded: Number out of range - at `$.ts`"),
        pytest.param('{"args": "x"}', "Expected `object | null`, got `str` - at `$.args`"),
    ],
)
def test_a_record_that_is_none_is_skipped_among_others(record: str, reason: str) -> None:
    text = f'[{{"name": "a"}},\n{record},\n{{"name": "b"}},\n{{"name": "c"}}]'
    reader = RecordReader([text.encode()])
    assert names(read(reader)) == ["a", "b", "c"]
    assert reader.skipped == 1
    assert reason in reader.reason


@pytest.mark.parametrize(
    ("text", "before", "said"),
    [
        pytest.param("", [], "is empty", id="empty"),
        pytest.param("hello", [], "is not a JSON array of trace events: it begins with b'hello'"),
        pytest.param('{"a": 1}', [], "is not a JSON array of trace events", id="other-object"),
        pytest.param('[{"name": "a"}, {"name": "b', ["a"], "is cut off", id="cut-in-string"),
        pytest.param('[{"name": "a"}, {"args": {}', ["a"], "is cut off", id="cut-in-record"),
        pytest.param('{"traceEvents": [{"name": "a"},', ["a"], "is cut off", id="cut-object"),
        pytest.param('[{"name": "a"}, 5]', ["a"], "has b'5]' where a record should begin"),
        pytest.param(
            '[{"name": "a"}, {"a": ' + "[" * 3000 + "]" * 3000 + '}, {"name": "b"}]',
            ["a"],
            "has a record of more than 64 nested objects and lists",
            id="deep",
        ),
        pytest.param('[{"name": "a"}] [', ["a"], "continues after the end of its array"),
    ],
)
def test_what_ends_the_reading_is_reported_after_the_records_before_it(
    text: str, before: list[str], said: str
) -> None:
    found, fault_said = fault([text.encode()])
    assert (before, said) == (names(found), fault_said)


def test_a_record_without_end_does_not_fill_the_memory() -> None:
    limits = TimelineLimits(record=1000)
    endless = (b'[{"name": "a"},{"name": "' if not n else b"x" * 400 for n in range(100))
    found, said = fault(endless, limits)
    assert (names(found), said) == (["a"], "has a record of more than 1000 bytes")
    assert len(list(endless)) > 95  # it was given up at once


def test_a_file_of_records_without_sense_is_given_up() -> None:
    text = b'[{"name": "a"},' + b'{"ts": NaN},' * 9 + b"{}]"
    found, said = fault([text], TimelineLimits(skipped=3))
    assert said == "is not read further: too many of its records are invalid"
    assert names(found) == ["a"]


def test_an_object_without_events_is_not_searched_for_ever() -> None:
    _, said = fault([b'{"a": [', b"1," * 600], TimelineLimits(header=1000))
    assert said == "has no list traceEvents in its first 1000 bytes"


# -- bytes ------------------------------------------------------------------------------------


def joined(content: bytes, limits: TimelineLimits = LIMITS) -> bytes:
    return b"".join(chunks(MemoryStore({"t": content}), "t", limits))


def compressed(content: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=31)
    return squeeze.compress(content) + squeeze.flush()


class Remote(MemoryStore):
    """A store in which every request takes its time."""

    costs: Any = type("Costs", (), {"parallel": 8, "gap": 1 << 18})()


@pytest.mark.parametrize("size", [2, 5, 1 << 20])
def test_text_is_the_same_in_pieces_of_any_size_out_of_gzip_too(size: int) -> None:
    content = b"0123456789ab"
    limits = TimelineLimits(chunk=size)
    assert content == joined(content, limits)
    assert content == joined(compressed(content), limits)
    assert content * 2 == joined(compressed(content) * 2 + b"\0" * 8, limits)
    pieces = chunks(Remote({"t": content}), "t", TimelineLimits(chunk=4))
    assert [len(piece) for piece in pieces] == [4, 4, 4]


@pytest.mark.parametrize(
    ("content", "limits", "said"),
    [
        pytest.param(
            b"x" * 99,
            TimelineLimits(total=50, chunk=20),
            "has more than 50 bytes: the rest is left out",
        ),
        pytest.param(compressed(b"x" * 9999)[:-12], LIMITS, "is truncated gzip data"),
        pytest.param(compressed(b"x")[:4] + b"junk" * 9, LIMITS, "is damaged gzip data"),
        pytest.param(
            compressed(b"x" * 99999),
            TimelineLimits(chunk=1000, unsuspected=5000),
            "expands to more than 200 times its size: the rest is not read",
        ),
    ],
)
def test_text_that_is_not_believed(content: bytes, limits: TimelineLimits, said: str) -> None:
    with pytest.raises(TimelineFaultError, match=said):
        joined(content, limits)
