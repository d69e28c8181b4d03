import numpy as np
import pytest
import rawtrial
from memory_store import MemoryStore

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.index_file import Span
from rule_core.reading import event_reader
from rule_core.reading.event_reader import EventReader
from rule_core.storage.base import ByteRange, ObjectNotFoundError

ARRAY = np.arange(4, dtype=np.float32)
RECORD = rawtrial.record(rawtrial.event(rawtrial.array_message(ARRAY)))
FIRST, SECOND = Span(0, len(RECORD)), Span(len(RECORD), len(RECORD))


class CountingStore(MemoryStore):
    """A store that remembers what was read of it."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.asked: list[tuple[str, ByteRange | None]] = []

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        self.asked.append((key, byte_range))
        return super().read(key, byte_range)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore({"a": RECORD * 2, "b": RECORD})


def test_a_small_file_is_read_once(store: CountingStore) -> None:
    reader = EventReader(store)
    for span in (FIRST, SECOND, FIRST):
        assert reader.tensor("a", span).tolist() == ARRAY.tolist()
    assert store.asked == [("a", ByteRange(0, event_reader.WHOLE_FILE))]


def test_a_tensor_lies_in_the_bytes_that_were_read(store: CountingStore) -> None:
    reader = EventReader(store)
    one, two = reader.tensor("a", FIRST), reader.tensor("a", FIRST)
    assert np.shares_memory(one, two)
    assert not one.flags.writeable


def test_of_a_large_file_only_the_record_is_read(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_reader, "WHOLE_FILE", len(RECORD))
    reader = EventReader(store)
    for span in (SECOND, FIRST, SECOND):
        assert reader.tensor("a", span).tolist() == ARRAY.tolist()
    size = len(RECORD)
    assert store.asked == [("a", ByteRange(size, 2 * size)), ("a", ByteRange(0, size))]


def test_what_was_read_longest_ago_is_dropped_first(store: CountingStore) -> None:
    store.files = dict.fromkeys("abc", RECORD)
    reader = EventReader(store, max_bytes=2 * len(RECORD))
    for name in "abacab":
        reader.tensor(name, FIRST)
    assert [key for key, _ in store.asked] == ["a", "b", "c", "b"]


def test_what_is_larger_than_the_bound_is_not_kept(store: CountingStore) -> None:
    reader = EventReader(store, max_bytes=len(RECORD))
    for _ in range(2):
        reader.tensor("a", FIRST)
    reader.tensor("b", FIRST)
    reader.tensor("b", FIRST)
    assert [key for key, _ in store.asked] == ["a", "a", "b"]


def test_a_damaged_file_is_read_again(store: CountingStore) -> None:
    files = {"a": RECORD + RECORD[:-1], "b": RECORD}
    store.files = files
    reader = EventReader(store)
    reader.tensor("b", FIRST)
    message = rf"^File 'a' is cut off: expected {len(RECORD)} bytes at {len(RECORD)}, got \d+ of"
    with pytest.raises(TruncatedFileError, match=message):
        reader.tensor("a", SECOND)
    files["a"] = RECORD * 2
    assert reader.tensor("a", SECOND).tolist() == ARRAY.tolist()
    files["a"] = files["b"] = b""
    assert reader.tensor("b", FIRST).tolist() == ARRAY.tolist()  # kept all the while


def test_a_corrupt_record_is_reported_with_its_file(store: CountingStore) -> None:
    store.files = {"a": bytes(100)}
    with pytest.raises(CorruptFileError, match=r"^File 'a' is corrupt: expected a record header"):
        EventReader(store).tensor("a", Span(0, 100))


def test_a_missing_file_is_reported(store: CountingStore) -> None:
    with pytest.raises(ObjectNotFoundError, match=r"^File 'x' does not exist\.$"):
        EventReader(store).tensor("x", FIRST)


# -- wall times ----------------------------------------------------------------------------------


def test_of_the_wall_time_only_the_beginning_of_a_record_is_read(store: CountingStore) -> None:
    assert EventReader(store).wall_time("a", SECOND) == 1.6e9
    assert store.asked == [("a", ByteRange(len(RECORD), len(RECORD) + 21))]


def test_of_the_wall_time_nothing_is_read_twice(store: CountingStore) -> None:
    reader = EventReader(store)
    reader.tensor("a", FIRST)
    assert reader.wall_time("a", SECOND) == 1.6e9
    assert len(store.asked) == 1


def test_a_file_that_has_grown_is_asked_again(store: CountingStore) -> None:
    store.files = {"a": RECORD}
    reader = EventReader(store)
    reader.tensor("a", FIRST)
    store.files = {"a": RECORD * 2}
    assert reader.wall_time("a", SECOND) == 1.6e9


@pytest.mark.parametrize(
    "message",
    [rawtrial.field(2, 7), rawtrial.field(1, 7), rawtrial.field(1, b"1234"), b""],
    ids=["no-time", "a-number", "four-bytes", "nothing"],
)
def test_a_record_may_tell_no_time(message: bytes) -> None:
    record = rawtrial.record(message)
    time = EventReader(MemoryStore({"a": record})).wall_time("a", Span(0, len(record)))
    assert np.isnan(time)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (RECORD[:11], TruncatedFileError, "expected a header of 12 bytes, got 11"),
        (b"", TruncatedFileError, "expected a header of 12 bytes, got 0"),
        (bytes(40), CorruptFileError, "expected a record header with its checksum"),
        (rawtrial.record(b"\x09123"), TruncatedFileError, "expected a field of 8 bytes, got 3"),
    ],
    ids=["header", "nothing", "checksum", "time"],
)
def test_a_damaged_beginning_is_reported(
    content: bytes, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        EventReader(MemoryStore({"a": content})).wall_time("a", Span(0, len(RECORD)))
