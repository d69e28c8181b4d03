"""MemoryStore: a trial in a dictionary, for tests and for trials that were never on a disk."""

from collections.abc import Iterator, Mapping

from smdebug.storage.protocol import ByteRange, ObjectNotFoundError


class MemoryStore:
    """The files of `files`, bytes by key; it may change between calls."""

    def __init__(self, files: Mapping[str, bytes], uri: str = "memory") -> None:
        self.files = files
        self._uri = uri

    @property
    def uri(self) -> str:
        """Return the name given to the trial."""
        return self._uri

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys; see `TrialStore`."""
        for key in sorted(self.files):
            if key.startswith(prefix) and key > start_after:
                yield key

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of a key; see `TrialStore`."""
        try:
            data = self.files[key]
        except KeyError:
            raise ObjectNotFoundError(key) from None
        start, stop = byte_range or ByteRange(0, len(data))
        return memoryview(data)[start:stop].toreadonly()
