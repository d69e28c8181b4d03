"""EventReader: tensors out of event files, each byte read once and kept within a bound."""

from collections import OrderedDict
from typing import Any, Final

from numpy.typing import NDArray

from smdebug.core import tensor_proto, tfrecord
from smdebug.core.index import Span
from smdebug.exceptions import CorruptFileError, TruncatedFileError
from smdebug.storage.protocol import ByteRange, TrialStore

KEPT_BYTES: Final = 64 << 20  # what several rules ask for at one step is read once
WHOLE_FILE: Final = 1 << 20  # a smaller event file is read in one go

Array = NDArray[Any]


class EventReader:
    """Reads records of event files; what was read lately is kept, up to `KEPT_BYTES`."""

    def __init__(self, store: TrialStore, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self._bound = kept_bytes
        self._kept: OrderedDict[tuple[str, ByteRange], memoryview] = OrderedDict()
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
        try:
            record = self._record(key, span)
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
            self._bytes -= len(self._kept.pop(place))

    def _record(self, key: str, span: Span) -> memoryview:
        """Return the record's bytes, as many as there are."""
        stop = span.start + span.length
        if stop <= WHOLE_FILE:
            head = self._read(key, ByteRange(0, WHOLE_FILE))
            return head[span.start : stop]
        return self._read(key, ByteRange(span.start, stop))

    def _read(self, key: str, byte_range: ByteRange) -> memoryview:
        place = (key, byte_range)
        data = self._kept.get(place)
        if data is not None:
            self._kept.move_to_end(place)
            return data
        data = self._store.read(key, byte_range)
        if len(data) <= self._bound:
            self._kept[place] = data
            self._bytes += len(data)
        while self._bytes > self._bound:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return data
