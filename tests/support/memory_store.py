"""MemoryStore: a trial in a dictionary, for tests and for trials in memory."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager

from rule_core.storage.base import ByteRange, FileStatus, ObjectNotFoundError, ReadCosts

WRITTEN = 1_700_000_000.0  # seconds since the epoch


class MemoryStore:
    """The files of `files`, bytes by key; it may change between calls."""

    costs = ReadCosts()

    def __init__(self, files: Mapping[str, bytes], uri: str = "memory") -> None:
        self.files = files
        self.uri = uri

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

    def status(self, key: str) -> FileStatus:
        """Return the size of a key, written when the clocks of tests start; see `TrialStore`."""
        return FileStatus(len(self.read(key)), WRITTEN)


class MemoryOutput(MemoryStore):
    """A dictionary that a trial is written to."""

    files: MutableMapping[str, bytes]

    def open(self, key: str) -> "MemoryPendingFile":
        """Start to write a file; see `TrialOutput`."""
        return MemoryPendingFile(self.files, key)

    def remove(self, key: str) -> None:
        """Remove a file; see `TrialOutput`."""
        self.files.pop(key, None)


class MemoryPendingFile:
    """Bytes to be published in the dictionary; see `PendingFile`."""

    def __init__(self, files: MutableMapping[str, bytes], key: str) -> None:
        self._files = files
        self._key = key
        self._written = bytearray()

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes; see `PendingFile`."""
        for part in parts:
            self._written += part

    def publish(self) -> None:
        """Publish the bytes under their key; see `PendingFile`."""
        self._files[self._key] = bytes(self._written)

    def discard(self) -> None:
        """Discard the bytes; see `PendingFile`."""
        self._written.clear()


class MemoryFile:
    """An open file; see `rule_core.storage.base.OpenFile`."""

    def __init__(self, content: memoryview) -> None:
        self.size = len(content)
        self._content = content

    def read_ahead(self, byte_range: ByteRange) -> None:
        """Do nothing: the bytes are in memory; see `OpenFile`."""

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers with bytes from `start`; see `OpenFile`."""
        position = start
        for buffer in buffers:
            part = self._content[position : position + len(buffer)]
            buffer[: len(part)] = part
            position += len(part)
        return position - start
