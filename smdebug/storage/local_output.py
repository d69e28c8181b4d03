"""LocalOutput: a folder of this machine that a trial is written to."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from smdebug.storage.local import LocalStore
from smdebug.storage.protocol import ObjectNotFoundError

BUFFER = 1 << 18  # bytes: small records reach the disk in one call


class LocalOutput(LocalStore):
    """The files below `root`, to be read and written; the folder is made with its first file."""

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys; see `TrialOutput`."""
        with suppress(ObjectNotFoundError):
            yield from super().list_keys(prefix, start_after=start_after)

    def open(self, key: str) -> "LocalDraft":
        """Begin a file beside its place; see `TrialOutput`."""
        final = self.root / key
        final.parent.mkdir(parents=True, exist_ok=True)
        return LocalDraft(final)

    def remove(self, key: str) -> None:
        """Remove a file; see `TrialOutput`."""
        (self.root / key).unlink(missing_ok=True)


class LocalDraft:
    """A file under its key with ``.tmp`` behind it, until it is whole; see `Draft`."""

    def __init__(self, final: Path) -> None:
        self._final = final
        self._path = final.with_name(final.name + ".tmp")
        self._file = self._path.open("wb", buffering=BUFFER)

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes; see `Draft`."""
        self._file.writelines(parts)

    def publish(self) -> None:
        """Close the file, then give it its name; see `Draft`."""
        self._file.close()
        self._path.replace(self._final)

    def discard(self) -> None:
        """Close and remove the file; see `Draft`."""
        with suppress(OSError):  # what its buffer holds may find no room
            self._file.close()
        self._path.unlink(missing_ok=True)
