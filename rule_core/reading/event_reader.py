"""EventReader: reads tensors from event files through a bounded cache."""

from collections import OrderedDict
from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format import tensor_proto, tfrecord
from rule_core.format.index_file import Span
from rule_core.format.record_layout import Array, RecordLayout, learn, store_layout
from rule_core.storage.base import ByteRange, TrialStore

CACHE_BYTES: Final = 64 << 20  # several rules read the same tensors at a step
WHOLE_FILE: Final = 1 << 17  # a smaller event file is read at once
# The header of a record, and the first field of its message: a tag and eight bytes.
TIME_BYTES: Final = tfrecord.HEADER.size + 1 + 8


# Bytes ``start <= i < stop`` of one event file: its key, start and stop.
CacheKey = tuple[str, int, int]


@dataclass(slots=True)
class CachedBytes:
    """Bytes of an event file, and the tensors decoded from them.

    Attributes
    ----------
    start
        The offset of the bytes in the file.
    size
        The number of bytes that count towards the bound.
    pending
        The running read, if the bytes were prefetched and not used yet.
    early
        Whether they were prefetched.
    """

    start: int
    size: int
    data: memoryview
    tensors: dict[Span, Array] = field(default_factory=dict)
    pending: Future[memoryview] | None = None
    early: bool = False


class EventReader:
    """Reads records of event files and caches up to `max_bytes` of recent reads.

    Attributes
    ----------
    layouts
        The layouts of the records read so far, by content and length.
    """

    def __init__(self, store: TrialStore, max_bytes: int = CACHE_BYTES) -> None:
        self._store = store
        self.bound = max_bytes
        self.layouts: dict[tuple[Hashable, int], RecordLayout] = {}
        self._kept: OrderedDict[CacheKey, CachedBytes] = OrderedDict()
        self._bytes = 0

    def tensor(
        self,
        key: str,
        span: Span,
        content: Hashable = None,
        known_layout: RecordLayout | None = None,
    ) -> Array:
        """Return the tensor of one record as a read-only view of the bytes read.

        Parameters
        ----------
        content
            A key for the content; records with the same content at other steps are similar.
        known_layout
            The layout of the record, if it is known.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the event file does not exist, or the store is unavailable.
        TruncatedFileError, CorruptFileError
            If the record is truncated or corrupt.
        """
        kept = self._load(key, span.start, span.start + span.length)
        array = kept.tensors.get(span)
        if array is None:
            offset = span.start - kept.start
            record = kept.data[offset : offset + span.length]
            array = self._decode(key, span, record, content, known_layout)
            if array.dtype.kind not in "UO":  # strings need memory beyond the bytes counted
                kept.tensors[span] = array
        return array

    def wall_time(self, key: str, span: Span) -> float:
        """Return the time of one record, in seconds since the epoch; NaN without a time.

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
        """Return a few bytes without caching them."""
        kept = self._kept.get((key, 0, WHOLE_FILE))
        if kept is not None and len(kept.data) >= stop:
            return kept.data[start:stop]
        return self._store.read(key, ByteRange(start, stop))

    def _decode(
        self,
        key: str,
        span: Span,
        record: memoryview,
        content: Hashable,
        known_layout: RecordLayout | None,
    ) -> Array:
        layout = known_layout or self.layouts.get((content, span.length))
        view = None if layout is None else layout.view(record)
        if view is not None:
            return view
        try:
            if len(record) < span.length:
                raise TruncatedFileError(  # noqa: TRY301 - all damage is handled alike
                    key, f"{span.length} bytes at {span.start}", f"{len(record)} of them"
                )
            array, layout = learn(record, key)
        except (TruncatedFileError, CorruptFileError):
            self.forget(key)  # the file may be replaced: read it again next time
            raise
        if layout is not None and content is not None:
            store_layout(self.layouts, (content, span.length), layout)
        return array

    def forget(self, key: str) -> None:
        """Drop the cached bytes of an event file."""
        for part in [part for part in self._kept if part[0] == key]:
            self._drop(part)

    def clear(self) -> None:
        """Drop all cached bytes."""
        for part in [*self._kept]:
            self._drop(part)

    def _load(self, key: str, start: int, stop: int) -> CachedBytes:
        """Return cached bytes that cover a range; read them if necessary."""
        if stop <= WHOLE_FILE:
            return self._read(key, 0, WHOLE_FILE)
        return self._read(key, start, stop)

    def _read(self, key: str, start: int, stop: int) -> CachedBytes:
        part = (key, start, stop)
        kept = self._kept.get(part)
        if kept is not None:
            self._kept.move_to_end(part)
            return kept
        data = self._store.read(key, ByteRange(start, stop))
        kept = CachedBytes(start, len(data), data)
        self._keep(part, kept)
        return kept

    def _keep(self, part: CacheKey, kept: CachedBytes) -> None:
        """Cache bytes and evict the least recently used."""
        if kept.size <= self.bound:
            self._kept[part] = kept
            self._bytes += kept.size
        while self._bytes > self.bound:
            self._drop(next(iter(self._kept)))

    def _drop(self, part: CacheKey) -> None:
        self._bytes -= self._kept.pop(part).size
