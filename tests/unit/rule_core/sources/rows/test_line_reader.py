"""LineReader: complete lines only, none twice, and never a long one in memory."""

import bz2
import gzip
from collections.abc import Callable
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.sources.rows import line_reader
from rule_core.sources.rows.line_reader import LineReader, head_text
from rule_core.sources.text.decoder import NOT_UTF8


def lines_of(reader: LineReader) -> list[str]:
    return [*reader.read().lines]


def test_a_partial_last_line_waits() -> None:
    files = {"log": b"one\ntw"}
    reader = LineReader(MemoryStore(files), "log")
    assert lines_of(reader) == ["one"]
    assert lines_of(reader) == []
    files["log"] += b"o\nthree"
    new = reader.read()
    assert (new.first, [*new.lines]) == (2, ["two"])
    assert [*reader.finish().lines] == ["three"]


def test_what_follows_a_last_line_that_was_given_is_skipped_up_to_its_end() -> None:
    files = {"log": b"1,0.5"}
    reader = LineReader(MemoryStore(files), "log")
    assert lines_of(reader) == []
    assert [*reader.finish().lines] == ["1,0.5"]
    assert [*reader.finish().lines] == []
    files["log"] += b"5\n2,0.25\n"
    new = reader.read()
    assert (new.first, [*new.lines]) == (2, ["2,0.25"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", ["a", "b"]),
        (b"a\n\n b \n", ["a", "", " b "]),
        (b"\xff\x7f a\n", ["\xff\x7f a"]),
        (b"\ra\rb\r\nc\n", ["", "a", "b", "c"]),
        ("a\u2028b\x0bc\n".encode(), ["a\u2028b\x0bc"]),
    ],
)
def test_newlines_and_carriage_returns_end_lines(content: bytes, expected: list[str]) -> None:
    assert lines_of(LineReader(MemoryStore({"log": content}), "log")) == expected


@pytest.mark.parametrize("piece", [1, 7, 64, 99])
def test_a_long_line_is_skipped_and_never_held(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_reader, "PIECE_BYTES", piece)
    monkeypatch.setattr(line_reader, "MAX_LINE_BYTES", 100)
    content = b"one\n" + b"x" * 5000 + b"\nthree\n" + b"y" * 4000
    reader = LineReader(MemoryStore({"log": content}), "log")
    lines, skipped, held = [], [], 0
    while (new := reader.read()).has_read:
        lines += [*enumerate(new.lines, new.first)]
        skipped += [new.skipped] * bool(new.skipped)
        held = max(held, len(reader._partial))
    assert lines == [(1, "one"), (3, "three")]
    assert skipped == [2, 4]
    assert held <= 100
    assert [*reader.finish().lines] == []


def test_a_file_that_was_restarted_starts_with_line_1() -> None:
    files = {"log": b"one\ntwo\npart"}
    reader = LineReader(MemoryStore(files), "log")
    reader.read()
    files["log"] = b"new\n"
    new = reader.read()
    assert (new.restarted, new.first, [*new.lines]) == (True, 1, ["new"])
    reader.rewind()
    assert lines_of(reader) == ["new"]


PRINTED = st.text(
    st.sampled_from("a\n\r 0:1[]{}é損\ufeff\x1b") | st.characters(exclude_characters="\0"),
    max_size=60,
)
ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "log": lambda text: text.encode("utf-8", "replace"),
    "utf-16": lambda text: text.encode("utf-16", "replace"),
    "log.gz": lambda text: gzip.compress(text.encode("utf-8", "replace")),
    "log.bz2": lambda text: bz2.compress(text.encode("utf-8", "replace")),
}


def all_lines(content: bytes, key: str, piece: int, *, to_end: bool = True) -> list[str]:
    with mock.patch.object(line_reader, "PIECE_BYTES", piece):
        reader = LineReader(MemoryStore({key: content}), key)
        lines: list[str] = []
        while (new := reader.read()).has_read:
            assert new.first == len(lines) + 1
            lines += new.lines
        return lines + [*reader.finish().lines] * to_end


@given(PRINTED, st.sampled_from(sorted(ENCODINGS)), st.integers(1, 9))
def test_encoding_compression_and_pieces_change_no_line(text: str, key: str, piece: int) -> None:
    text = text.lstrip("\ufeff")
    lines = all_lines(ENCODINGS["log"](text), "log", 1 << 20)
    assert all_lines(ENCODINGS[key](text), key, piece) == lines


@given(PRINTED, st.sampled_from(sorted(ENCODINGS)), st.data())
def test_a_file_that_is_cut_gives_the_first_lines(text: str, key: str, data: st.DataObject) -> None:
    content = ENCODINGS[key](text)
    cut = content[: data.draw(st.integers(0, len(content)))]
    lines = all_lines(content, key, 1 << 20)
    first = all_lines(cut, key, 1 << 20, to_end=False)
    assert first == lines[: len(first)]


def test_the_head_is_what_is_read() -> None:
    content = "[rank1]:step 1 ä\r[rank0]:step 1 ä\r\nend".encode("utf-16")
    assert head_text(content).split("\n") == ["", "step 1 ä", "end"]
    assert all_lines(content, "log", 100) == ["", "step 1 ä", "end"]
    assert head_text(b"\x80\x04\0\0text\n") == ""


def test_problems_of_encoding_and_compression_are_named() -> None:
    files = {"log": b"na\xefve\n", "log.gz": b"no gzip file"}
    for key, problem in (("log", NOT_UTF8), ("log.gz", "It is damaged: ")):
        reader = LineReader(MemoryStore(files), key)
        assert reader.problem == ""
        assert lines_of(reader) == ["naïve"] * (key == "log")
        assert reader.problem.startswith(problem)
