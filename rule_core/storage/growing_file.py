"""GrowingFile: reads what is appended to a file, and notices when the file is begun anew."""

from typing import Final, NamedTuple

from rule_core.storage.base import ByteRange, ObjectNotFoundError, TrialStore

PIECE_BYTES: Final = 4 << 20  # read at once
_CHECKED: Final = 256  # bytes at the start, and before the position, that identify the content


class NewBytes(NamedTuple):
    """Bytes of a file that follow those read before.

    Attributes
    ----------
    data
        At most the number of bytes asked for; empty if nothing follows.
    restarted
        Whether the file was truncated, rewritten or replaced: the bytes are its first ones.
    """

    data: memoryview
    restarted: bool


class GrowingFile:
    """A file that another process writes, in a local folder or in S3.

    In S3 a file grows by being replaced with a longer one, so that a file is recognised by its
    first bytes and by those before the position, not by its identity.

    Attributes
    ----------
    position
        The offset up to which the file has been read.
    modified
        When the file was last written, in seconds since the epoch; 0 before the first look.
    """

    def __init__(self, store: TrialStore, key: str) -> None:
        self.key = key
        self.position = 0
        self.modified = 0.0
        self._store = store
        self._size = -1
        self._head = b""
        self._tail = b""
        self._restarted = False  # and nobody was told yet, for a read failed

    def read(self, limit: int = PIECE_BYTES) -> NewBytes:
        """Return at most `limit` bytes after `position`, and advance past them.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the file does not exist or cannot be read.
        """
        status = self._store.status(self.key)
        is_same = status.size == self._size and status.modified == self.modified
        if is_same and self.position >= status.size:
            return NewBytes(memoryview(b""), restarted=False)
        restarted = not is_same and self.position > 0 and self._is_other(status.size)
        if restarted:
            self.position, self._head, self._tail = 0, b"", b""
            self._restarted = True
        data = self._store.read(self.key, ByteRange(self.position, self.position + limit))
        self._size, self.modified = status.size, status.modified
        self._advance(data)
        restarted, self._restarted = self._restarted, False
        return NewBytes(data, restarted)

    def _advance(self, data: memoryview) -> None:
        if len(self._head) < _CHECKED:
            self._head += bytes(data[: _CHECKED - len(self._head)])
        self._tail = (self._tail + bytes(data[-_CHECKED:]))[-_CHECKED:]
        self.position += len(data)

    def _is_other(self, size: int) -> bool:
        """Return whether the file no longer begins with the bytes that were read."""
        if size < self.position:
            return True
        try:
            tail = self._store.read(
                self.key, ByteRange(self.position - len(self._tail), self.position)
            )
            head = self._store.read(self.key, ByteRange(0, len(self._head)))
        except ObjectNotFoundError:  # removed meanwhile
            return True
        return bytes(tail) != self._tail or bytes(head) != self._head
