"""MemoryStore: a trial in a dictionary, for tests and for trials that were never on a disk."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager

from smdebug.storage.protocol import ByteRange, ObjectNotFoundError, ReadCosts


class MemoryStore:
    """The files of `files`, bytes by key; it may change between calls."""

    def __init__(self, files: Mapping[str, bytes], uri: str = "memory") -> None:
        self.files = files
        self._uri = uri

    @property
    def uri(self) -> str:
        """Return the name given to the trial."""
        return self._uri

    @property
    def costs(self) -> ReadCosts:
        """Return what reading costs here; see `TrialStore`."""
        return ReadCosts()

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys; see `TrialStore`."""
        for key in sorted(self.files):
            if key.startswith(prefix) and key > start_after:
                yield key

    @contextmanager
    def opened(self, key: str) -> Iterator["MemoryFile"]:
        """Open a file; see `FileStore`."""
        yield MemoryFile(self.read(key))

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of a key; see `TrialStore`."""
        try:
            data = self.files[key]
        except KeyError:
            raise ObjectNotFoundError(key) from None
        start, stop = byte_range or ByteRange(0, len(data))
        return memoryview(data)[start:stop].toreadonly()


class MemoryOutput(MemoryStore):
    """A dictionary that a trial is written to."""

    def __init__(self, files: MutableMapping[str, bytes], uri: str = "memory") -> None:
        super().__init__(files, uri)
        self._to = files

    def open(self, key: str) -> "MemoryDraft":
        """Begin a file; see `TrialOutput`."""
        return MemoryDraft(self._to, key)

    def remove(self, key: str) -> None:
        """Remove a file; see `TrialOutput`."""
        self._to.pop(key, None)


class MemoryDraft:
    """Bytes on their way into the dictionary; see `Draft`."""

    def __init__(self, to: MutableMapping[str, bytes], key: str) -> None:
        self._to = to
        self._key = key
        self._written = bytearray()

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes; see `Draft`."""
        for part in parts:
            self._written += part

    def publish(self) -> None:
        """Give the file its key; see `Draft`."""
        self._to[self._key] = bytes(self._written)

    def discard(self) -> None:
        """Forget the bytes; see `Draft`."""
        self._written.clear()


class MemoryFile:
    """An open file; see `smdebug.storage.protocol.OpenFile`."""

    def __init__(self, content: memoryview) -> None:
        self.size = len(content)
        self._content = content

    def bring(self, byte_range: ByteRange) -> None:
        """Do nothing: the bytes are in memory; see `OpenFile`."""

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers with bytes from `start`; see `OpenFile`."""
        at = start
        for one in buffers:
            part = self._content[at : at + len(one)]
            one[: len(part)] = part
            at += len(part)
        return at - start
