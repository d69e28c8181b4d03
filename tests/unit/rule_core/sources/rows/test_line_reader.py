"""LineReader: complete lines only, none twice, and never a long one in memory."""

import pytest
from memory_store import MemoryStore

from rule_core.sources.rows import line_reader
from rule_core.sources.rows.line_reader import LineReader


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
        (b"\xff\x00\n", ["\ufffd\x00"]),
        ("a\u2028b\x0bc\n".encode(), ["a\u2028b\x0bc"]),
    ],
)
def test_lines_end_with_a_newline_alone(content: bytes, expected: list[str]) -> None:
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
