"""One file of system metrics into columns: good lines, bad ones, and files that are cut off."""

import json

import numpy as np
import profiler_writer as writer
import pytest
from memory_store import MemoryStore

from rule_core.profiler.system import columns as system_columns
from rule_core.profiler.system.columns import SystemColumns, parse_system_metrics, pieces_of
from rule_core.profiler.system.samples import SeriesKey, SeriesTable

GOOD = [writer.line(1.5, 100.25), writer.line(2, 101.0, name="cpu1"), writer.line(3, 102.0)]


def parse(*pieces: bytes) -> SystemColumns:
    return parse_system_metrics(pieces, SeriesTable())


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    text = b"".join(GOOD)
    table = SeriesTable()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    found = parse_system_metrics(pieces, table)
    assert found.time_s.tolist() == [100.25, 101.0, 102.0]
    assert found.value.tolist() == [1.5, 2.0, 3.0]
    assert found.series.tolist() == [0, 1, 0]
    assert table.keys == (
        SeriesKey("algo-1", "cpu", "CPUUtilization", "cpu0"),
        SeriesKey("algo-1", "cpu", "CPUUtilization", "cpu1"),
    )
    assert (found.lines, found.bad_lines, found.cut_off, found.problem()) == (3, 0, False, "")
    assert found.time_us.tolist() == [100_250_000, 101_000_000, 102_000_000]


def test_a_sample_may_have_no_name_and_other_keys() -> None:
    table = SeriesTable()
    one = json.loads(writer.line(1, 5.0, "MemoryUsedPercent", None, kind="memory")) | {"New": [1]}
    parse_system_metrics([json.dumps(one).encode()], table)
    assert table.keys == (SeriesKey("algo-1", "memory", "MemoryUsedPercent", None),)


def test_samples_are_put_in_the_order_of_time() -> None:
    found = parse(writer.line(1, 9.0), writer.line(2, 8.0), writer.line(3, 9.0))
    assert found.time_s.tolist() == [8.0, 9.0, 9.0]
    assert found.value.tolist() == [2.0, 1.0, 3.0]


BAD = [
    (b"\n", None),
    (b"{}\n", "missing required field `Type`"),
    (b"[1]\n", "Expected `object`, got `array`"),
    (b"{\n", "Input data was truncated"),
    (b'{"Type": "\xff"}\n', "codec can't decode byte 0xff"),
    (b"[" * 100_000 + b"\n", "Expected `object`, got `array`"),
    (b'{"a":' + b"[" * 100_000 + b"\n", "recursion"),
    (b"\x1f\x8b\x08\x00\n", "malformed"),
    (writer.line(1, 100.0).replace(b"1,", b"NaN,"), "malformed"),
    (writer.line("1", 100.0), "Expected `float`, got `str`"),
    (writer.line(1, -1.0), "Timestamp"),
    (writer.line(1, 1e300), "Timestamp"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD)
def test_a_bad_line_does_not_take_the_others_away(bad: bytes, reason: str | None) -> None:
    found = parse(GOOD[0], bad, GOOD[2])
    assert found.value.tolist() == [1.5, 3.0]
    assert found.problem() == "" if reason is None else reason in found.problem()
    if reason is not None:
        assert found.problem().startswith("1 of 3 lines are no system metrics; line 2: ")
        assert found.problem().endswith(".")
        assert len(found.problem()) < 500


def test_a_last_line_without_its_end_counts_if_it_is_whole() -> None:
    whole, cut = parse(GOOD[0], GOOD[2].rstrip()), parse(GOOD[0], GOOD[2][:-5])
    assert (whole.value.tolist(), whole.cut_off, whole.problem()) == ([1.5, 3.0], False, "")
    assert (cut.value.tolist(), cut.cut_off) == ([1.5], True)
    assert cut.problem() == "It is cut off within its last line."


def test_an_empty_file_has_no_samples() -> None:
    assert len(parse().time_s) == len(parse(b"", b"\n").time_s) == 0


def test_a_line_that_does_not_end_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_columns, "LONGEST_LINE", 200)
    found = parse(GOOD[0], b'{"Type": "' + b"x" * 150, b"y" * 150, b"z" * 150 + b"\n" + GOOD[2])
    assert found.value.tolist() == [1.5, 3.0]
    assert "line 2: it is longer than 200 bytes" in found.problem()
    assert parse(b"x" * 300).cut_off


def test_a_file_of_something_else_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_columns, "MOST_BAD_LINES", 10)

    def pieces() -> "list[bytes]":
        return [b"nothing\n" * 20, b"nothing\n" * 20]

    found = parse_system_metrics(pieces(), SeriesTable())
    assert (found.bad_lines, len(found.time_s)) == (10, 0)


def test_there_are_only_so_many_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.profiler.system.samples.MOST_SERIES", 2)
    table = SeriesTable()
    lines = [writer.line(at, 1.0, name=f"cpu{at}") for at in range(4)]
    found = parse_system_metrics(lines, table)
    assert (found.value.tolist(), found.bad_lines, len(table.keys)) == ([0.0, 1.0], 2, 2)
    again = parse_system_metrics(lines, table)
    assert (again.series.tolist(), again.bad_lines) == ([0, 1], 2)


def test_files_are_read_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_columns, "CHUNK", 4)
    store = MemoryStore({"a": b"12345678", "b": b"123", "c": b""})
    assert [bytes(one) for one in pieces_of(store, "a")] == [b"1234", b"5678", b""]
    assert [bytes(one) for one in pieces_of(store, "b")] == [b"123"]
    assert [bytes(one) for one in pieces_of(store, "c")] == [b""]
    first = memoryview(b"abcd")
    assert [bytes(one) for one in pieces_of(store, "a", lambda: first)] == [b"abcd", b"5678", b""]


def test_microseconds_are_cut_off_as_conversions_do() -> None:
    times = np.array([1591160699.4570894, 1600000000.1, 0.0])
    columns = SystemColumns(times, times, times.astype(np.int32))
    assert columns.time_us.tolist() == [int(one * 1000 * 1000) for one in times.tolist()]
    assert columns.nbytes == 3 * 20
