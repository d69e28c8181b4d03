"""EventReader: tensors out of event files, each byte read once and kept within a bound."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from numpy.typing import NDArray

from smdebug.core import tensor_proto, tfrecord
from smdebug.core.index import Span
from smdebug.exceptions import CorruptFileError, TruncatedFileError
from smdebug.storage.protocol import ByteRange, TrialStore

KEPT_BYTES: Final = 256 << 20  # what several rules ask for at one step is read once
WHOLE_FILE: Final = 1 << 20  # a smaller event file is read in one go
# The header of a record, and the first field of its message: a tag and eight bytes.
TIME_BYTES: Final = tfrecord.HEADER.size + 1 + 8

Array = NDArray[Any]


@dataclass(slots=True)
class _Kept:
    """Bytes that were read, and the tensors found in them."""

    data: memoryview
    tensors: dict[Span, Array] = field(default_factory=dict)


class EventReader:
    """Reads records of event files; what was read lately is kept, up to `KEPT_BYTES`."""

    def __init__(self, store: TrialStore, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self._bound = kept_bytes
        self._kept: OrderedDict[tuple[str, int, int], _Kept] = OrderedDict()
        self._bytes = 0

    def tensor(self, key: str, span: Span) -> Array:
        """Return the tensor of one record, read-only, in the buffer that was read.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the event file is not there, or cannot be asked for.
        TruncatedFileError, CorruptFileError
            If the record is cut off or makes no sense.
        """
        start, stop = span.start, span.start + span.length
        whole = stop <= WHOLE_FILE
        kept = self._read(key, 0, WHOLE_FILE) if whole else self._read(key, start, stop)
        found = kept.tensors.get(span)
        if found is None:
            record = kept.data[start:stop] if whole else kept.data
            found = self._decode(key, span, record)
            if found.dtype.kind not in "UO":  # strings do not lie in the bytes that are counted
                kept.tensors[span] = found
        return found

    def wall_time(self, key: str, span: Span) -> float:
        """Return when one record was made, in seconds since the epoch; NaN if it does not tell.

        Only the beginning of the record is read, however large its tensor is.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError, TruncatedFileError, CorruptFileError
            As `tensor` does.
        """
        start, stop = span.start, span.start + min(span.length, TIME_BYTES)
        kept = self._kept.get((key, 0, WHOLE_FILE))
        if kept is not None and len(kept.data) >= stop:
            head = kept.data[start:stop]
        else:
            head = self._store.read(key, ByteRange(start, stop))
        end = tfrecord.HEADER.size + tfrecord.payload_length(head, key)
        return tensor_proto.decode_wall_time(head[tfrecord.HEADER.size : end], key)

    def _decode(self, key: str, span: Span, record: memoryview) -> Array:
        try:
            if len(record) < span.length:
                raise TruncatedFileError(  # noqa: TRY301 - damage of any kind ends alike
                    key, f"{span.length} bytes at {span.start}", f"{len(record)} of them"
                )
            return tensor_proto.decode_event(tfrecord.unframe(record, key), key)
        except (TruncatedFileError, CorruptFileError):
            self._forget(key)  # the file may be replaced: ask again next time
            raise

    def _forget(self, key: str) -> None:
        """Drop what is kept of an event file."""
        for place in [place for place in self._kept if place[0] == key]:
            self._bytes -= len(self._kept.pop(place).data)

    def _read(self, key: str, start: int, stop: int) -> _Kept:
        place = (key, start, stop)
        kept = self._kept.get(place)
        if kept is not None:
            self._kept.move_to_end(place)
            return kept
        kept = _Kept(self._store.read(key, ByteRange(start, stop)))
        if len(kept.data) <= self._bound:
            self._kept[place] = kept
            self._bytes += len(kept.data)
        while self._bytes > self._bound:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped.data)
        return kept
