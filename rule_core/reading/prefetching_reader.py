"""PrefetchingReader: reads event files of remote stores in large requests, ahead of time."""

from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import Final

from rule_core.exceptions import TrialFileError
from rule_core.format.index_file import Span
from rule_core.format.record_layout import Array, RecordLayout
from rule_core.reading.event_reader import CachedBytes, CacheKey, EventReader
from rule_core.storage.base import ByteRange, TrialStore
from rule_core.storage.read_pool import ReadPool

CACHE_BYTES: Final = 256 << 20  # including running reads


class PrefetchingReader(EventReader):
    """Reads many tensors in one request, and prefetches.

    A prefetch counts towards the cache from its start. If it fails, the error is ignored and the
    bytes are read again on use, so that reads fail in only one way. The threads of the pool only
    read; everything else runs in the calling thread.
    """

    def __init__(
        self, store: TrialStore, pool: ReadPool[memoryview], max_bytes: int | None = None
    ) -> None:
        super().__init__(store, CACHE_BYTES if max_bytes is None else max_bytes)
        self._pool = pool
        self._parts: dict[str, list[CacheKey]] = {}

    def tensor(
        self,
        key: str,
        span: Span,
        content: Hashable = None,
        known_layout: RecordLayout | None = None,
    ) -> Array:
        """Return the tensor of one record; see `EventReader.tensor`."""
        part = self._covering(key, span.start, span.start + span.length)
        early = part is not None and self._kept[part].early
        try:
            return super().tensor(key, span, content, known_layout)
        except TrialFileError:
            if not early:  # prefetched bytes may be outdated, so try again
                raise
            return super().tensor(key, span, content, known_layout)

    def holds(self, key: str) -> bool:
        """Return whether any part of an event file has been read or is being read."""
        return key in self._parts

    def covers(self, key: str, byte_range: ByteRange) -> bool:
        """Return whether a range has been read, or is being read, as a whole."""
        return self._covering(key, *byte_range) is not None

    def read_ahead(self, key: str, byte_range: ByteRange) -> None:
        """Start to read bytes that will be used later."""
        size = byte_range.stop - byte_range.start
        if size <= self.bound and not self.covers(key, byte_range):
            pending = self._pool.submit(partial(self._store.read, key, byte_range))
            kept = CachedBytes(byte_range.start, size, memoryview(b""), pending=pending, early=True)
            self._keep((key, *byte_range), kept)

    def arrived(self, key: str, span: Span) -> tuple[int, memoryview] | None:
        """Return bytes around a record and their offset in the file, without waiting.

        None if they have not arrived, or are incomplete.
        """
        part = self._covering(key, span.start, span.start + span.length)
        if part is None:
            return None
        kept = self._kept[part]
        data = kept.data
        if kept.pending is not None:
            pending = kept.pending
            if not pending.done() or pending.cancelled() or pending.exception() is not None:
                return None
            data = pending.result()
        return (kept.start, data) if kept.start + len(data) >= span.start + span.length else None

    def load(self, key: str, byte_range: ByteRange) -> None:
        """Read bytes for use now; raises what the store raises."""
        self._load(key, *byte_range)

    def _head(self, key: str, start: int, stop: int) -> memoryview:
        kept = self._load(key, start, stop)
        return kept.data[start - kept.start : stop - kept.start]

    def _load(self, key: str, start: int, stop: int) -> CachedBytes:
        part = self._covering(key, start, stop)
        if part is None:
            return self._read(key, start, stop)
        kept = self._kept[part]
        if kept.early and not self._has_arrived(kept, stop):
            self._drop(part)
        return self._read(*part)

    def _has_arrived(self, kept: CachedBytes, stop: int) -> bool:
        """Return whether prefetched bytes have arrived, up to `stop`."""
        pending, kept.pending = kept.pending, None
        if pending is not None:
            # A read that no thread has started is faster in this thread.
            if self._pool.forked or pending.cancel():
                return False
            with suppress(Exception):  # the read is repeated, and raises then
                kept.data = pending.result()
            self._bytes += len(kept.data) - kept.size
            kept.size = len(kept.data)
        return kept.start + len(kept.data) >= stop

    def _covering(self, key: str, start: int, stop: int) -> CacheKey | None:
        for part in self._parts.get(key, ()):
            _, begin, end = part
            if begin <= start and stop <= end:
                return part
        return None

    def _keep(self, part: CacheKey, kept: CachedBytes) -> None:
        if kept.size <= self.bound:
            self._parts.setdefault(part[0], []).append(part)
        super()._keep(part, kept)

    def _drop(self, part: CacheKey) -> None:
        pending = self._kept[part].pending
        if pending is not None:
            pending.cancel()
        super()._drop(part)
        parts = self._parts[part[0]]
        parts.remove(part)
        if not parts:
            del self._parts[part[0]]
