"""The header of safetensors: what is read, what is refused, and that damage does no harm."""

import contextlib
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors_files import encode, with_header

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.index_file import Layout, Span
from rule_core.format.safetensors_header import DTYPES, MAX_HEADER, header_end, parse_header


def parse(data: bytes) -> Layout:
    """Parse the header of a whole file."""
    end = header_end(data, len(data), "model.safetensors")
    return parse_header(data[8:end], len(data), "model.safetensors")


def header(content: int = 0, **tensors: tuple[str, list[int], int, int]) -> bytes:
    """Return a file with a header as given, and so many bytes of content."""
    infos = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}
        for name, (dtype, shape, start, stop) in tensors.items()
    }
    return with_header(json.dumps(infos).encode(), bytes(content))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_type_is_read(dtype: "np.dtype[Any]") -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    data = encode({"first": np.zeros(1), "w": array}, {"format": "pt"})
    layout = parse(data)
    assert layout.names == ("first", "w")
    entry = layout.entries["w"]
    assert entry.shape == (2, 3)
    assert entry.raw == Span(len(data) - array.nbytes, array.nbytes)
    assert entry.layout is not None
    view = entry.layout.view(memoryview(data)[entry.raw.start :])
    assert view is not None
    assert view.dtype == dtype
    assert view.tobytes() == array.tobytes()


def test_tensors_without_elements_and_scalars_are_read() -> None:
    layout = parse(encode({"none": np.zeros((0, 3)), "scalar": np.float32(2.5)}))
    assert layout.entries["none"].shape == (0, 3)
    assert layout.entries["scalar"].shape == ()
    assert not layout.damaged


def test_every_cut_is_a_file_that_goes_on() -> None:
    data = encode({"w": np.ones(5, np.float32)})
    for size in range(len(data)):
        with pytest.raises(TruncatedFileError):
            parse(data[:size])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (struct.pack("<Q", 1 << 63) + b"{}", "at most"),
        (struct.pack("<Q", MAX_HEADER + 1) + b"{}", "at most"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (with_header(b"not JSON"), "a header"),
        (with_header(b"[1, 2]"), "a header"),
        (with_header(b'{"w": ' + b"[" * 100_000), "a header"),
        (with_header(b'{"w": "\xff"}'), "a header"),
        (with_header(b'{"w": {}}'), "a shape and offsets"),
        (with_header(b'{"w": {"dtype": 1, "shape": [], "data_offsets": [0, 4]}}'), "a header"),
        (header(4, w=("F32", [1], 0, 4)) + b"x", "bytes"),
        (header(8, a=("F32", [1], 0, 4), b=("F32", [1], 3, 7)), "tensor 'b' to start at byte 4"),
        (header(9, a=("F32", [1], 0, 4), b=("F32", [1], 5, 9)), "tensor 'b' to start at byte 4"),
        (header(4, a=("F32", [1], 0, 4), b=("F32", [1], 0, 4)), "to start at byte 4"),
        (header(4, w=("F32", [1], -4, 0)), "to start at byte 0"),
        (header(4, w=("F32", [1], 4, 0)), "to start at byte 0"),
        (header(0, w=("F32", [1 << 63], 0, 1 << 65)), "to start at byte 0"),
        (
            with_header(b'{"w": %s, "w": %s}' % ((json.dumps(INFO).encode(),) * 2), bytes(4))
            if (INFO := {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})
            else (b"", ""),
            "each tensor once",
        ),
    ],
)
def test_what_is_no_header_is_refused(data: bytes, text: str) -> None:
    with pytest.raises(CorruptFileError, match=text):
        parse(data)


def test_offsets_beyond_the_file_may_be_written_later() -> None:
    with pytest.raises(TruncatedFileError):
        parse(header(4, w=("F32", [1 << 40], 0, 1 << 42)))


@pytest.mark.parametrize(
    ("dtype", "shape", "text"),
    [
        ("F4", [8], "not supported"),
        ("F32", [2], "do not fit"),
        ("F32", [-1, -1], "cannot be"),
        ("F32", [1] * 65, "cannot be"),
        ("F32", [1 << 62, 1 << 62, 0], "do not fit"),
    ],
)
def test_a_bad_tensor_is_skipped_alone(dtype: str, shape: list[int], text: str) -> None:
    layout = parse(header(8, bad=(dtype, shape, 0, 4), good=("F32", [1], 4, 8)))
    assert layout.names == ("good",)
    assert text in layout.damaged["bad"]


_INFOS = st.dictionaries(
    st.text(max_size=3) | st.just("__metadata__"),
    st.fixed_dictionaries(
        {
            "dtype": st.sampled_from([*DTYPES, "X", ""]),
            "shape": st.lists(st.integers(-2, 1 << 65), max_size=3),
            "data_offsets": st.tuples(st.integers(-1, 1 << 65), st.integers(-1, 1 << 65)),
        }
    )
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists),
    max_size=3,
)


@given(_INFOS, st.binary(max_size=16))
def test_hostile_headers_do_no_harm(infos: dict[str, Any], content: bytes) -> None:
    data = with_header(json.dumps(infos).encode(), content)
    try:
        layout = parse(data)
    except (CorruptFileError, TruncatedFileError) as err:
        assert len(str(err)) < 1000  # noqa: PT017 - not raised for most
        return
    for entry in layout.entries.values():
        assert entry.raw is not None
        assert entry.raw.start + entry.raw.length <= len(data)


@given(st.binary(max_size=64))
def test_any_bytes_do_no_harm(data: bytes) -> None:
    for candidate in (data, with_header(data)):
        with contextlib.suppress(CorruptFileError, TruncatedFileError):
            parse(candidate)
