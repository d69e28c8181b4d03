import pytest
import rawtrial
from hypothesis import given
from hypothesis import strategies as st

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format import tfrecord

KEY = "events/x"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", 0xA282EAD8, id="empty"),
        pytest.param(b"0x12345678", 0x062DC0B3, id="the-constant-footer"),
        pytest.param((174).to_bytes(8, "little"), 0x1D9F73C6, id="the-format's-example"),
    ],
)
def test_checksums_are_masked(data: bytes, expected: int) -> None:
    assert tfrecord.masked_crc(data) == expected


@given(st.binary(max_size=200))
def test_checksums_are_those_of_a_second_implementation(data: bytes) -> None:
    assert tfrecord.masked_crc(data) == rawtrial.masked(data)


def test_checksums_of_large_buffers_are_taken_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = bytes(range(256)) * 3
    whole = tfrecord.masked_crc(data)
    monkeypatch.setattr(tfrecord, "CHUNK", 100)
    assert tfrecord.masked_crc(memoryview(data)) == whole


@given(st.binary(max_size=300))
def test_a_record_holds_its_payload(payload: bytes) -> None:
    record = rawtrial.record(payload)
    assert tfrecord.unframe(memoryview(record), KEY) == payload


def test_a_payload_is_not_copied() -> None:
    record = bytearray(rawtrial.record(b"payload"))
    payload = tfrecord.unframe(memoryview(record), KEY)
    record[12] = ord("P")
    assert payload == b"Payload"


def test_a_payload_with_its_own_checksum_is_read() -> None:
    record = rawtrial.record(b"payload", rawtrial.masked(b"payload"))
    assert tfrecord.unframe(memoryview(record), KEY) == b"payload"


@given(st.binary(max_size=40), st.data())
def test_every_prefix_of_a_record_is_cut_off(payload: bytes, data: st.DataObject) -> None:
    record = rawtrial.record(payload)
    size = data.draw(st.integers(0, len(record) - 1))
    with pytest.raises(TruncatedFileError, match=r"^File 'events/x' is cut off: expected a record"):
        tfrecord.unframe(memoryview(record)[:size], KEY)


@given(st.binary(max_size=40), st.data())
def test_a_wrong_bit_in_header_or_footer_is_noticed(payload: bytes, data: st.DataObject) -> None:
    record = bytearray(rawtrial.record(payload))
    place = data.draw(st.sampled_from([*range(12), *range(len(record) - 4, len(record))]))
    record[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptFileError, match=r"^File 'events/x' is corrupt: expected a record"):
        tfrecord.unframe(memoryview(record), KEY)


def test_the_index_must_name_the_whole_record_only() -> None:
    record = rawtrial.record(b"payload")
    with pytest.raises(CorruptFileError, match=r"expected a record of 24 bytes, got 23\.$"):
        tfrecord.unframe(memoryview(record + b"x"), KEY)
