"""AheadReader: reads event files of a store where each request takes its time, ahead of it."""

from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import Final

from smdebug.core.event_reader import Array, EventReader, Kept, Part
from smdebug.core.index import Span
from smdebug.core.read_pool import ReadPool
from smdebug.exceptions import TrialFileError
from smdebug.storage.protocol import ByteRange, TrialStore

KEPT_BYTES: Final = 256 << 20  # with what is on its way


class AheadReader(EventReader):
    """Reads what it is told to, in one request for many tensors, and begins reads ahead of time.

    What was begun ahead of time counts as kept from the beginning. If it fails, nobody hears of
    it: those bytes are read again when they are asked for, so that there is one way in which
    reading fails. Threads only read: everything here is done by the thread that asks.
    """

    def __init__(
        self, store: TrialStore, pool: ReadPool[memoryview], kept_bytes: int | None = None
    ) -> None:
        super().__init__(store, KEPT_BYTES if kept_bytes is None else kept_bytes)
        self._pool = pool
        self._parts: dict[str, list[Part]] = {}

    def tensor(self, key: str, span: Span, what: Hashable = None) -> Array:
        """Return the tensor of one record; see `EventReader.tensor`."""
        part = self._covering(key, span.start, span.start + span.length)
        early = part is not None and self._kept[part].early
        try:
            return super().tensor(key, span, what)
        except TrialFileError:
            if not early:  # it is as it is; otherwise it may have been read too early
                raise
            return super().tensor(key, span, what)

    def holds(self, key: str) -> bool:
        """Say whether anything of an event file was read, or is being read."""
        return key in self._parts

    def covers(self, key: str, wanted: ByteRange) -> bool:
        """Say whether bytes were read together, or are being read."""
        return self._covering(key, *wanted) is not None

    def ahead(self, key: str, wanted: ByteRange) -> None:
        """Begin to read bytes that will be asked for."""
        size = wanted.stop - wanted.start
        if size <= self.bound and not self.covers(key, wanted):
            flying = self._pool.submit(partial(self._store.read, key, wanted))
            kept = Kept(wanted.start, size, memoryview(b""), flying=flying, early=True)
            self._keep((key, *wanted), kept)

    def load(self, key: str, wanted: ByteRange) -> None:
        """Read bytes that are asked for now; raises what the store raises."""
        self._holding(key, *wanted)

    def _head(self, key: str, start: int, stop: int) -> memoryview:
        kept = self._holding(key, start, stop)
        return kept.data[start - kept.start : stop - kept.start]

    def _holding(self, key: str, start: int, stop: int) -> Kept:
        part = self._covering(key, start, stop)
        if part is None:
            return self._read(key, start, stop)
        kept = self._kept[part]
        if kept.early and not self._landed(kept, stop):
            self._drop(part)
        return self._read(*part)

    def _landed(self, kept: Kept, stop: int) -> bool:
        """Say whether bytes that were asked for ahead of time are there, up to `stop`."""
        flying, kept.flying = kept.flying, None
        if flying is not None:
            # What no thread has taken up is read sooner by whoever needs it.
            if self._pool.forked or flying.cancel():
                return False
            with suppress(Exception):
                kept.data = flying.result()
            self._bytes += len(kept.data) - kept.size
            kept.size = len(kept.data)
        return kept.start + len(kept.data) >= stop

    def _covering(self, key: str, start: int, stop: int) -> Part | None:
        for part in self._parts.get(key, ()):
            _, begin, end = part
            if begin <= start and stop <= end:
                return part
        return None

    def _keep(self, part: Part, kept: Kept) -> None:
        if kept.size <= self.bound:
            self._parts.setdefault(part[0], []).append(part)
        super()._keep(part, kept)

    def _drop(self, part: Part) -> None:
        flying = self._kept[part].flying
        if flying is not None:
            flying.cancel()
        super()._drop(part)
        left = self._parts[part[0]]
        left.remove(part)
        if not left:
            del self._parts[part[0]]
