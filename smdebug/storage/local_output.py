"""LocalOutput: a folder of this machine that a trial is written to."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from smdebug.storage.local import LocalStore
from smdebug.storage.protocol import ObjectNotFoundError

BUFFER = 1 << 18  # bytes: small records reach the disk in one call
DRAFT = ".tmp"


class LocalOutput(LocalStore):
    """The files below `root`, to be read and written; the folder is made with its first file."""

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys of published files; see `TrialOutput`."""
        with suppress(ObjectNotFoundError):
            for key in super().list_keys(prefix, start_after=start_after):
                if not key.endswith(DRAFT):
                    yield key

    def open(self, key: str) -> "LocalDraft":
        """Begin a file beside its place; see `TrialOutput`."""
        final = self.root / key
        final.parent.mkdir(parents=True, exist_ok=True)
        return LocalDraft(final)

    def remove(self, key: str) -> None:
        """Remove a file; see `TrialOutput`."""
        (self.root / key).unlink(missing_ok=True)


class LocalDraft:
    """A file under its key with ``.tmp`` behind it, until it is whole; see `Draft`.

    Python's own buffer would be written a second time by a process that is forked off meanwhile.
    """

    def __init__(self, final: Path) -> None:
        self._final = final
        self._path = final.with_name(final.name + DRAFT)
        self._file = self._path.open("wb", buffering=0)
        self._buffer = bytearray()

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes; see `Draft`."""
        for part in parts:
            if len(self._buffer) + len(part) > BUFFER:
                self._flush()
            if len(part) < BUFFER:
                self._buffer += part
            else:
                self._to_disk(part)

    def _flush(self) -> None:
        buffer, self._buffer = self._buffer, bytearray()
        self._to_disk(buffer)

    def _to_disk(self, part: bytes | bytearray | memoryview) -> None:
        rest = memoryview(part)
        while rest:  # the system may take a part of it
            rest = rest[self._file.write(rest) :]

    def publish(self) -> None:
        """Close the file, then give it its name; see `Draft`."""
        self._flush()
        self._file.close()
        self._path.replace(self._final)

    def discard(self) -> None:
        """Close and remove the file; see `Draft`."""
        self._file.close()
        self._path.unlink(missing_ok=True)
