"""RecordLayout: fits the records that differ in time, step and elements, and no other."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
import steps_saved
from memory_store import MemoryFile

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format import record_layout, tensor_proto, tfrecord
from rule_core.format.event_encoder import RecordEncoder
from rule_core.format.index_file import Span
from rule_core.format.record_layout import RecordLayout, learn, learn_layout
from rule_core.modes import ModeKeys
from rule_core.storage.base import StorageUnavailableError

ARRAY: Final = np.arange(6, dtype=np.float32).reshape(2, 3)
BEHIND: Final = rawtrial.field(9, b"what a mode is")
KEY: Final = "key"
STEP: Final = 300  # of two digits
TIME_AT, STEP_AT = 13, 22  # behind the header of a record and a tag; behind the time and a tag


def whole(record: bytes) -> tuple[Any, RecordLayout]:
    """Return the tensor of a record and the layout, which there must be."""
    array, layout = learn(memoryview(record), KEY)
    assert layout is not None
    return array, layout


def view(layout: RecordLayout, record: bytes) -> Any:
    return layout.view(memoryview(record))


def decoded(record: bytes) -> Any:
    """Return the tensor of a record, found field by field; None if it makes no sense."""
    try:
        message = tensor_proto.find_tensor(tfrecord.unframe(memoryview(record), KEY), KEY)
        return tensor_proto.decode_tensor(message, KEY)
    except (TruncatedFileError, CorruptFileError):
        return None


def described(array: Any) -> Any:
    return None if array is None else (str(array.dtype), array.shape, array.tobytes())


@pytest.mark.parametrize("dtype", rawtrial.NUMBERS)
@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (1, 0, 2), (0,)])
@pytest.mark.parametrize("behind", [b"", BEHIND])
def test_another_step_is_read_as_if_field_by_field(
    dtype: str, shape: tuple[int, ...], behind: bytes
) -> None:
    draw = np.random.default_rng(1)
    arrays = [draw.integers(0, 2, shape).astype(rawtrial.dtype_of(dtype)) for _ in range(2)]
    first, second = (
        steps_saved.record(array, step, behind=behind)
        for step, array in zip((STEP, 2 * STEP), arrays, strict=True)
    )
    result, layout = learn(memoryview(first), KEY)
    assert described(result) == described(arrays[0])
    if not result.size:
        assert layout is None
        return
    assert layout is not None
    there = view(layout, second)
    assert described(there) == described(arrays[1]) == described(decoded(second))
    assert not there.flags.writeable
    assert np.shares_memory(there, np.frombuffer(second, np.uint8))
    assert (layout.size, layout.dtype, layout.shape) == (there.size, there.dtype, shape)
    assert second[layout.start : layout.stop] == arrays[1].tobytes()


def test_records_of_hooks_are_alike_whatever_the_mode_step() -> None:
    array = np.ones((3, 4))

    def saved(step: int, mode_step: int) -> bytes:
        encoder = RecordEncoder(step, ModeKeys.TRAIN, mode_step)
        return b"".join(encoder.encode("w", array * step, 1e9 + step)[0])

    _, layout = whole(saved(1, 0))
    assert described(view(layout, saved(127, 9))) == described(array * 127)
    assert view(layout, saved(128, 9)) is None  # a digit more is another length
    assert view(layout, saved(127, 10)) is None


@pytest.mark.parametrize("behind", [b"", BEHIND])
def test_flipped_bits_fit_nowhere_but_in_time_step_elements_and_what_nobody_looks_at(
    behind: bytes,
) -> None:
    record = steps_saved.record(ARRAY, STEP, behind=behind)
    _, layout = whole(record)
    free = {(TIME_AT + byte, bit) for byte in range(8) for bit in range(8)}
    free |= {(STEP_AT + byte, bit) for byte in range(2) for bit in range(7)}
    free |= {(byte, bit) for byte in range(layout.start, len(record) - 4) for bit in range(8)}
    fits = set()
    for byte in range(len(record)):
        for bit in range(8):
            changed = bytearray(record)
            changed[byte] ^= 1 << bit
            there = view(layout, bytes(changed))
            if there is not None:
                fits.add((byte, bit))
                assert described(there) == described(decoded(bytes(changed)))
    assert fits == free
    assert layout.stop - layout.start == ARRAY.nbytes
    assert len(record) - 4 - layout.stop == len(behind)


def test_cut_and_longer_records_do_not_fit() -> None:
    record = steps_saved.record(ARRAY, STEP)
    _, layout = whole(record)
    assert view(layout, record) is not None
    cut = [record[:size] for size in range(len(record))]
    longer = [record + b"\0", record + record[-4:], record * 2]
    shifted = [record[1:], record[:-5] + record[-4:], b"\0" + record[:-1]]
    assert [view(layout, one) for one in cut + longer + shifted] == [None] * (len(record) + 6)


@pytest.mark.parametrize(
    "other",
    [
        steps_saved.record(ARRAY, STEP, "u"),
        steps_saved.record(ARRAY.T.copy(), STEP),
        steps_saved.record(ARRAY.astype(np.int32), STEP),
        steps_saved.record(ARRAY.reshape(6), STEP),
        steps_saved.record(ARRAY, 5),
    ],
    ids=["name", "shape", "type", "dimensions", "digits"],
)
def test_other_tensors_do_not_fit(other: bytes) -> None:
    _, layout = whole(steps_saved.record(ARRAY, STEP))
    assert view(layout, other) is None
    assert decoded(other) is not None


def test_step_0_may_be_left_out() -> None:
    def hooked(time: float, array: Any) -> bytes:
        encoder = RecordEncoder(0, ModeKeys.TRAIN, 0)
        return b"".join(encoder.encode("w", array, time)[0])

    record = hooked(1e9, ARRAY)
    _, layout = whole(record)
    assert described(view(layout, hooked(1.5e9, ARRAY + 1))) == described(ARRAY + 1)
    assert described(view(layout, hooked(1e9, ARRAY.T.copy()))) is None
    for byte in range(layout.start):
        for bit in range(8):
            changed = bytearray(record)
            changed[byte] ^= 1 << bit
            fits = view(layout, bytes(changed)) is not None
            assert fits is (TIME_AT <= byte < TIME_AT + 8)


def checked(payload: bytes) -> bytes:
    return rawtrial.record(payload, rawtrial.masked(payload))


PAYLOAD: Final = rawtrial.event(rawtrial.array_message(ARRAY), step=STEP)
NO_TIME: Final = PAYLOAD[9:]
NO_STEP: Final = PAYLOAD[:9] + PAYLOAD[9 + 3 :]
UNUSUAL: Final = {
    "strings": steps_saved.record(np.array(["a", "bc"]), STEP),
    "no elements": steps_saved.record(np.zeros(0), STEP),
    "checksum": checked(PAYLOAD),
    "no time": rawtrial.record(NO_TIME),
    "step first": rawtrial.record(NO_TIME[:3] + PAYLOAD[:9] + NO_STEP[9:]),
    "shape last": rawtrial.record(
        rawtrial.event(
            rawtrial.field(1, 1)
            + rawtrial.field(4, ARRAY.tobytes())
            + rawtrial.field(2, rawtrial.shape_message(ARRAY.shape)),
            step=STEP,
        )
    ),
}


@pytest.mark.parametrize("record", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_records_have_no_layout(record: bytes) -> None:
    found, layout = learn(memoryview(record), KEY)
    assert layout is None
    assert described(found) == described(decoded(record))
    assert learn_layout(MemoryFile(memoryview(record)), Span(0, len(record)), KEY) is None


def test_damage_is_an_error() -> None:
    record = steps_saved.record(ARRAY, STEP)
    with pytest.raises(TruncatedFileError, match=rf"expected a record of {len(record)} bytes"):
        learn(memoryview(record)[:-1], KEY)
    with pytest.raises(CorruptFileError, match="expected a record footer, got 0x000000"):
        learn(memoryview(record[:-4] + b"\1\0\0\0"), KEY)


# -- what is learnt from the beginning and the end -------------------------------------------------


class Watched(MemoryFile):
    """Remembers which bytes were read of it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(memoryview(content))
        self.read: list[tuple[int, int]] = []

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        count = super().read_into(start, buffers)
        self.read.append((start, count))
        return count


@pytest.mark.parametrize("size", [1, 6, 1000, 2000])
@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16"])
@pytest.mark.parametrize("behind", [b"", BEHIND])
def test_layout_is_learnt_without_the_elements(size: int, dtype: str, behind: bytes) -> None:
    array = np.ones(size, rawtrial.dtype_of(dtype))
    record = steps_saved.record(array, STEP, behind=behind)
    opened = Watched(b"before" + record + b"after")
    found = learn_layout(opened, Span(6, len(record)), KEY)
    assert found == whole(record)[1]
    head = min(len(record), record_layout.BEGINNING)
    assert opened.read == [(6, head), (6 + len(record) - 4, 4)]


def test_elements_that_begin_too_late_are_not_looked_for() -> None:
    # 24 bytes and more stand around the name.
    for length, expected in ((record_layout.BEGINNING - 100, True), (5000, False)):
        record = steps_saved.record(np.ones(2000), STEP, "n" * length)
        found = learn_layout(Watched(record), Span(0, len(record)), KEY)
        assert (found is not None) is expected


LONG: Final = steps_saved.record(np.ones(2000), STEP)


@pytest.mark.parametrize(
    ("content", "span"),
    [
        (LONG[:-1], Span(0, len(LONG))),
        (LONG, Span(1, len(LONG))),
        (LONG, Span(0, len(LONG) - 1)),
        (LONG * 2, Span(0, len(LONG) + 1)),
        (LONG, Span(0, 0)),
        (LONG, Span(0, 3)),
        (LONG, Span(len(LONG), 0)),
        (LONG, Span(0, 2**62)),
        (LONG, Span(2**70, 20)),
        (LONG[:-4] + b"\1\2\3\4", Span(0, len(LONG))),
        (b"\1" + LONG[1:], Span(0, len(LONG))),
        (LONG[:40] + bytes([LONG[40] ^ 1]) + LONG[41:], Span(0, len(LONG))),
    ],
)
def test_nothing_is_learnt_of_what_is_no_record(content: bytes, span: Span) -> None:
    assert learn_layout(Watched(content), span, KEY) is None


def test_file_that_is_shorter_than_it_was_teaches_nothing() -> None:
    opened = Watched(LONG[:-2])
    opened.size = len(LONG)
    assert learn_layout(opened, Span(0, len(LONG)), KEY) is None


def test_disk_that_fails_is_an_error() -> None:
    class Broken(MemoryFile):
        def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
            del start, buffers
            raise StorageUnavailableError(KEY, "it is broken")

    with pytest.raises(StorageUnavailableError, match="it is broken"):
        learn_layout(Broken(memoryview(LONG)), Span(0, len(LONG)), KEY)


def test_so_many_layouts_are_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_layout, "MAX_LAYOUTS", 2)
    layout = RecordLayout(8, 0, 4, np.dtype("u1"), (4,), 0, 0)
    layouts: dict[int, RecordLayout] = {}
    for key in range(3):
        record_layout.store_layout(layouts, key, layout)
    assert layouts == {2: layout}
