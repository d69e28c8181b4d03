"""EventReader: tensors out of event files, each byte read once and kept within a bound."""

from collections import OrderedDict
from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from numpy.typing import NDArray

from smdebug.core import tensor_proto, tfrecord
from smdebug.core.index import Span
from smdebug.core.record_layout import RecordLayout, keep, learnt
from smdebug.exceptions import CorruptFileError, TruncatedFileError
from smdebug.storage.protocol import ByteRange, TrialStore

KEPT_BYTES: Final = 64 << 20  # what several rules ask for at one step is read once
WHOLE_FILE: Final = 1 << 17  # a smaller event file is read in one go
# The header of a record, and the first field of its message: a tag and eight bytes.
TIME_BYTES: Final = tfrecord.HEADER.size + 1 + 8

Array = NDArray[Any]


# Bytes ``start <= i < stop`` of one event file: its key, start and stop.
Part = tuple[str, int, int]


@dataclass(slots=True)
class Kept:
    """Bytes that were read, and the tensors found in them.

    Attributes
    ----------
    start
        Where in their file the bytes begin.
    size
        How many bytes they are counted for.
    flying
        The read that will bring them, if they were asked for ahead of time and not yet used.
    early
        Whether they were asked for ahead of time.
    """

    start: int
    size: int
    data: memoryview
    tensors: dict[Span, Array] = field(default_factory=dict)
    flying: Future[memoryview] | None = None
    early: bool = False


class EventReader:
    """Reads records of event files; what was read lately is kept, up to `kept_bytes`.

    Attributes
    ----------
    layouts
        Where the elements lie in the records that were read, by what they hold and their length.
    """

    def __init__(self, store: TrialStore, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self.bound = kept_bytes
        self.layouts: dict[tuple[Hashable, int], RecordLayout] = {}
        self._kept: OrderedDict[Part, Kept] = OrderedDict()
        self._bytes = 0

    def tensor(self, key: str, span: Span, what: Hashable = None) -> Array:
        """Return the tensor of one record, read-only, in the buffer that was read.

        Parameters
        ----------
        what
            Names what the record holds, whose records at other steps are like it.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the event file is not there, or cannot be asked for.
        TruncatedFileError, CorruptFileError
            If the record is cut off or makes no sense.
        """
        kept = self._holding(key, span.start, span.start + span.length)
        found = kept.tensors.get(span)
        if found is None:
            at = span.start - kept.start
            found = self._decode(key, span, kept.data[at : at + span.length], what)
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
        head = self._head(key, span.start, span.start + min(span.length, TIME_BYTES))
        end = tfrecord.HEADER.size + tfrecord.payload_length(head, key)
        return tensor_proto.decode_wall_time(head[tfrecord.HEADER.size : end], key)

    def _head(self, key: str, start: int, stop: int) -> memoryview:
        """Return a few bytes, which are not kept."""
        kept = self._kept.get((key, 0, WHOLE_FILE))
        if kept is not None and len(kept.data) >= stop:
            return kept.data[start:stop]
        return self._store.read(key, ByteRange(start, stop))

    def _decode(self, key: str, span: Span, record: memoryview, what: Hashable) -> Array:
        layout = self.layouts.get((what, span.length))
        found = None if layout is None else layout.view(record)
        if found is not None:
            return found
        try:
            if len(record) < span.length:
                raise TruncatedFileError(  # noqa: TRY301 - damage of any kind ends alike
                    key, f"{span.length} bytes at {span.start}", f"{len(record)} of them"
                )
            array, layout = learnt(record, key)
        except (TruncatedFileError, CorruptFileError):
            self._forget(key)  # the file may be replaced: ask again next time
            raise
        if layout is not None and what is not None:
            keep(self.layouts, (what, span.length), layout)
        return array

    def _forget(self, key: str) -> None:
        """Drop what is kept of an event file."""
        for part in [part for part in self._kept if part[0] == key]:
            self._drop(part)

    def _holding(self, key: str, start: int, stop: int) -> Kept:
        """Return what holds these bytes; read it if need be."""
        if stop <= WHOLE_FILE:
            return self._read(key, 0, WHOLE_FILE)
        return self._read(key, start, stop)

    def _read(self, key: str, start: int, stop: int) -> Kept:
        part = (key, start, stop)
        kept = self._kept.get(part)
        if kept is not None:
            self._kept.move_to_end(part)
            return kept
        data = self._store.read(key, ByteRange(start, stop))
        kept = Kept(start, len(data), data)
        self._keep(part, kept)
        return kept

    def _keep(self, part: Part, kept: Kept) -> None:
        """Keep bytes, and drop those that were not used for longest to make room."""
        if kept.size <= self.bound:
            self._kept[part] = kept
            self._bytes += kept.size
        while self._bytes > self.bound:
            self._drop(next(iter(self._kept)))

    def _drop(self, part: Part) -> None:
        self._bytes -= self._kept.pop(part).size
