"""RecordLog: records come back from any pieces of a log, whatever their length."""

import pytest
import wandb_files
from hypothesis import given
from hypothesis import strategies as st

from rule_core.sources.wandb.record_log import BLOCK_BYTES, HEADER, MAX_RECORD, RecordLog

DAMAGED = "The log is damaged. Damaged blocks of 32 KiB are skipped from there on."
FREE = BLOCK_BYTES - 7 - HEADER.size  # for a record in the first block


def records(
    log: RecordLog, data: bytes | bytearray, problems: list[str] | None = None
) -> list[bytes]:
    found = [] if problems is None else problems
    return [
        bytes(record)
        for record in log.records(bytes(data), lambda at, text: found.append(f"{at}: {text}"))
    ]


@given(
    st.lists(st.one_of(st.integers(0, 60), st.integers(FREE - 20, FREE + 20)), max_size=6),
    st.lists(st.integers(0, 4 * BLOCK_BYTES), max_size=4),
)
def test_records_come_back_from_any_pieces(lengths: list[int], cuts: list[int]) -> None:
    written = [bytes([65 + number]) * length for number, length in enumerate(lengths)]
    data = wandb_files.log(*written)
    log, found = RecordLog(), []
    problems: list[str] = []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True):
        found += records(log, data[start:end], problems)
    assert found == written
    assert not problems


@pytest.mark.parametrize("free", range(10))
def test_end_of_a_block_is_filled(free: int) -> None:
    written = [b"x" * (FREE - free), b"y" * 20]
    problems: list[str] = []
    assert records(RecordLog(), wandb_files.log(*written), problems) == written
    assert not problems


@pytest.mark.parametrize("length", [1, 3 * BLOCK_BYTES, MAX_RECORD])
def test_long_record_is_joined(length: int) -> None:
    assert records(RecordLog(), wandb_files.log(b"x" * length, b"y")) == [b"x" * length, b"y"]


def test_record_that_is_too_long_is_skipped() -> None:
    problems: list[str] = []
    data = wandb_files.log(b"x" * (MAX_RECORD + 1), b"y")
    assert records(RecordLog(), data, problems) == [b"y"]
    (problem,) = problems
    assert problem.endswith(": The record has more than 4 MiB. Such records are skipped.")


@pytest.mark.parametrize("offset", [7, 11, 13, 14, 100])
def test_damaged_block_is_skipped(offset: int) -> None:
    written = [bytes([65 + number]) * 10_000 for number in range(8)]
    data = bytearray(wandb_files.log(*written))
    data[offset] ^= 0x80
    for sizes in ([len(data)], [BLOCK_BYTES // 2, len(data)]):
        problems: list[str] = []
        log = RecordLog()
        found = [each for size in sizes for each in records(log, data[log._end : size], problems)]
        assert found == written[4:]  # the fourth began in the first block
        assert problems == [f"7: {DAMAGED}"]


def test_impossible_length_hides_no_later_block() -> None:
    data = bytearray(wandb_files.log(b"x" * FREE, b"y"))
    data[12] = 0xFF  # beyond the end of the file
    assert records(RecordLog(), data) == [b"y"]


def test_record_with_a_damaged_chunk_is_skipped() -> None:
    data = bytearray(wandb_files.log(b"x" * 3 * BLOCK_BYTES, b"y"))
    data[BLOCK_BYTES + 100] ^= 1
    assert records(RecordLog(), data) == [b"y"]


def test_zeros_after_a_crash_are_damage() -> None:
    data = wandb_files.log(b"first").ljust(BLOCK_BYTES, b"\0")
    problems: list[str] = []
    log = RecordLog()
    assert records(log, data, problems) == [b"first"]
    assert len(problems) == 1
    later = wandb_files.log(b"x" * FREE, b"second")[BLOCK_BYTES:]
    assert records(log, later) == [b"second"]


@pytest.mark.parametrize("head", [b":W&B\xe1\xbe\x01", b"PK\x03\x04zip"])
def test_other_file_is_reported_once_and_not_read(head: bytes) -> None:
    problems: list[str] = []
    log = RecordLog()
    data = head + wandb_files.log(b"x")[7:]
    assert records(log, data, problems) == []
    assert records(log, data, problems) == []
    assert problems == ["0: It is no log of Weights & Biases, or one of an unknown version."]
    assert log._partial == b""
