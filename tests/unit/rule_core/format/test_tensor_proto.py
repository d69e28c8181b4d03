from contextlib import suppress

import ml_dtypes
import numpy as np
import pytest
import rawtrial
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rule_core.exceptions import CorruptFileError, SMDebugTypeError, TruncatedFileError
from rule_core.format import tensor_proto, tfrecord
from rule_core.format.event_encoder import RecordEncoder
from rule_core.modes import ModeKeys

KEY = "events/x"
NUMBERS = st.sampled_from([name for name in rawtrial.NUMBERS if name != "bfloat16"])
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)


def encode(array: "np.ndarray", name: str = "t") -> bytes:
    """Return the message inside a record."""
    parts, length = RecordEncoder(3, ModeKeys.TRAIN, 2).encode(name, array, 1.6e9)
    record = b"".join(parts)
    assert len(record) == length
    return bytes(tfrecord.unframe(memoryview(record), KEY))


def decode(payload: bytes) -> "np.ndarray":
    return tensor_proto.decode_tensor(tensor_proto.find_tensor(memoryview(payload), KEY), KEY)


@given(st.data())
def test_every_type_and_shape_comes_back(data: st.DataObject) -> None:
    dtype = np.dtype(data.draw(NUMBERS)).newbyteorder(data.draw(st.sampled_from("<>")))
    array = data.draw(arrays.arrays(dtype, SHAPES))
    result = decode(encode(array))
    assert result.dtype == dtype.newbyteorder("<")
    assert result.shape == array.shape
    assert result.tobytes() == array.astype(result.dtype).tobytes()
    assert not result.flags.writeable
    # The second reader, which shares no code with the first, sees the same.
    again = rawtrial.array_of(rawtrial.record(encode(array)))
    assert (again.dtype, again.shape) == (result.dtype, result.shape)
    assert again.tobytes() == result.tobytes()


@given(arrays.arrays(np.float32, SHAPES))
def test_bfloat16_comes_back(array: "np.ndarray") -> None:
    small = array.astype(ml_dtypes.bfloat16)
    found = decode(encode(small))
    assert found.dtype == ml_dtypes.bfloat16
    assert found.tobytes() == small.tobytes()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_strings_come_back(texts: list[str]) -> None:
    found = decode(encode(np.array(texts, dtype=object)))
    assert found.tolist() == [text.rstrip("\0") for text in texts]
    assert found.shape == (len(texts),)


def test_a_view_into_transposed_memory_is_written_in_its_own_order() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3).T
    assert decode(encode(array)).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_the_array_lies_in_the_payload() -> None:
    payload = bytearray(encode(np.zeros(3, np.uint8)))
    found = tensor_proto.decode_tensor(tensor_proto.find_tensor(memoryview(payload), KEY), KEY)
    payload[payload.index(b"\x22\x03\0\0\0") + 2] = 7
    assert found.tolist() == [7, 0, 0]


def test_an_event_is_written_as_the_old_library_writes_it() -> None:
    payload = rawtrial.parse(encode(np.zeros((4, 3), np.float32), "net/dense/kernel:0"))
    assert payload[2] == [3]
    value = rawtrial.parse(rawtrial.parse(payload[5][0])[1][0])
    assert value[1] == [b"net/dense/kernel:0"]
    plugins = [rawtrial.parse(one) for one in rawtrial.parse(value[9][0])[1]]
    assert plugins == [{1: [b"mode_step"], 2: [b"2"]}, {1: [b"mode"], 2: [b"1"]}]
    shape = rawtrial.parse(rawtrial.parse(value[8][0])[2][0])[2]
    assert [rawtrial.parse(one) for one in shape] == [
        {1: [4], 2: [b"net/dense/kernel:0_4"]},
        {1: [3], 2: [b"net/dense/kernel:0_3"]},
    ]
    assert len(encode(np.zeros((4, 3), np.float32), "net/dense/kernel:0")) == 174


@pytest.mark.parametrize(("number", "name"), rawtrial.QUANTIZED.items())
def test_quantized_types_are_read_as_their_integers(number: int, name: str) -> None:
    array = np.array([1, 2, 3], name)
    message = rawtrial.tensor_message(number, [3], array.tobytes())
    found = decode(rawtrial.event(message))
    assert (found.dtype, found.tolist()) == (array.dtype, [1, 2, 3])


def test_strings_under_tensorflows_own_number_are_read() -> None:
    message = rawtrial.tensor_message(7, [2, 1], None, [b"a", "ß".encode()])
    assert decode(rawtrial.event(message)).tolist() == [["a"], ["ß"]]


def test_one_long_string_among_short_ones_takes_no_square_of_memory() -> None:
    found = decode(encode(np.array(["x" * 100_000, *"a" * 100], dtype=object)))
    assert found.dtype == np.dtype(object)
    assert found[0] == "x" * 100_000
    assert not found.flags.writeable


def test_unknown_fields_are_passed_over() -> None:
    message = (
        rawtrial.field(15, 7)
        + b"\x79" + bytes(8)  # field 15, eight bytes
        + b"\x7d" + bytes(4)  # field 15, four bytes
        + rawtrial.field(15, b"more")
        + rawtrial.array_message(np.array([5], np.int64))
    )  # fmt: skip
    assert decode(rawtrial.event(message)).tolist() == [5]


def test_fields_of_a_shape_that_mean_nothing_are_passed_over() -> None:
    shape = rawtrial.field(3, 1) + rawtrial.field(2, rawtrial.field(2, b"name") + b"\x08\x02")
    message = rawtrial.field(1, 4) + rawtrial.field(2, shape) + rawtrial.field(4, b"ab")
    assert decode(rawtrial.event(message)).tolist() == [97, 98]


@given(st.data())
def test_every_prefix_of_an_event_is_cut_off_or_incomplete(data: st.DataObject) -> None:
    payload = encode(np.arange(4, dtype=np.float32).reshape(2, 2))
    size = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises((TruncatedFileError, CorruptFileError), match=r"^File 'events/x' is c"):
        decode(payload[:size])


@given(st.binary(max_size=80))
def test_anything_is_a_tensor_or_damage(payload: bytes) -> None:
    with suppress(TruncatedFileError, CorruptFileError):
        assert decode(payload).nbytes <= len(payload) * 4


@given(st.data())
def test_a_changed_byte_gives_a_tensor_or_damage(data: st.DataObject) -> None:
    payload = bytearray(encode(np.arange(4, dtype=np.float32).reshape(2, 2)))
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with suppress(TruncatedFileError, CorruptFileError):
        assert decode(bytes(payload)).nbytes <= len(payload)


REFUSED = {
    "dates": (np.zeros(2, "M8[s]"), r"no data type for datetime64\[s\]\.$"),
    "structures": (np.zeros(2, "i4,f4"), r"no data type for \[\('f0'"),
    "long": (np.zeros(2, np.longdouble), "no data type for (float128|longdouble)"),
    "2-D": (np.array([["a"]]), r"one-dimensional to be saved, got shape \(1, 1\)\.$"),
    "0-D": (np.array("a"), r"one-dimensional to be saved, got shape \(\)\.$"),
    "objects": (np.array(["a", 1], object), r"must hold strings only, got 1\.$"),
}


@pytest.mark.parametrize(("array", "message"), REFUSED.values(), ids=REFUSED)
def test_what_the_format_has_no_type_for_is_refused(array: "np.ndarray", message: str) -> None:
    with pytest.raises(SMDebugTypeError, match=message):
        encode(array)


def test_bytes_are_written_as_strings() -> None:
    assert decode(encode(np.array([b"ab", b"c"]))).tolist() == ["ab", "c"]
