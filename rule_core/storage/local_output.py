"""LocalOutput: a local folder that a trial is written to."""

import os
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

from rule_core.storage.base import ObjectNotFoundError
from rule_core.storage.local import LocalStore

BUFFER = 1 << 18  # bytes: small records are written in one call
DRAFT = ".tmp"


class LocalOutput(LocalStore):
    """The files below `root`, for reading and writing; the first file creates the folder."""

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys of published files; see `TrialOutput`."""
        with suppress(ObjectNotFoundError):
            for key in super().list_keys(prefix, start_after=start_after):
                if not key.endswith(DRAFT):
                    yield key

    def open(self, key: str) -> "LocalPendingFile":
        """Start to write a file under a temporary name; see `TrialOutput`."""
        final = f"{self.uri}/{key}"
        try:
            return LocalPendingFile(final)
        except FileNotFoundError:  # most folders exist
            Path(final).parent.mkdir(parents=True, exist_ok=True)
            return LocalPendingFile(final)

    def remove(self, key: str) -> None:
        """Remove a file; see `TrialOutput`."""
        (self.root / key).unlink(missing_ok=True)


class LocalPendingFile:
    """A file with the suffix ``.tmp`` until it is published; see `PendingFile`.

    It has its own buffer: a forked process would flush Python's buffer a second time.
    """

    def __init__(self, final: str) -> None:
        self._final = final
        self._path = final + DRAFT
        self._file = FileIO(self._path, "w")
        self._buffer = bytearray()

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes; see `PendingFile`."""
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
        remaining = memoryview(part)
        while remaining:  # a write may be partial
            remaining = remaining[self._file.write(remaining) :]

    def publish(self) -> None:
        """Close the file, then rename it; see `PendingFile`."""
        self._flush()
        self._file.close()
        os.replace(self._path, self._final)  # noqa: PTH105 - a path object costs as much as the call

    def discard(self) -> None:
        """Close and remove the file; see `PendingFile`."""
        self._file.close()
        Path(self._path).unlink(missing_ok=True)
