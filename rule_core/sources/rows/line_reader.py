"""LineReader: the lines of a growing file, in bounded memory."""

import io
from collections.abc import Iterator
from typing import Final, NamedTuple

from rule_core.storage.base import TrialStore
from rule_core.storage.growing_file import PIECE_BYTES, GrowingFile

MAX_LINE_BYTES: Final = 8 << 20  # longer lines are skipped
_BOM: Final = "\ufeff"


class NewLines(NamedTuple):
    """Complete lines that follow those read before.

    Attributes
    ----------
    lines
        The lines without their ends.
    first
        The number of the first line; the file's first line is 1.
    restarted
        Whether the file was begun anew: the lines are its first ones.
    skipped
        The number of a line that turned out to be too long; 0 if there is none.
    has_read
        Whether any bytes were read.
    """

    lines: Iterator[str]
    first: int
    restarted: bool
    skipped: int
    has_read: bool


class LineReader:
    """Reads a file line by line; a partial last line is kept for the next call.

    Attributes
    ----------
    modified
        When the file was last written, in seconds since the epoch; 0 before the first look.
    """

    def __init__(self, store: TrialStore, key: str) -> None:
        self._store = store
        self._key = key
        self.modified = 0.0
        self.rewind()

    def rewind(self) -> None:
        """Read the file from its start again."""
        self._file = GrowingFile(self._store, self._key)
        self._begin()

    def _begin(self) -> None:
        self._partial = bytearray()
        self._number = 1  # of the next line
        self._skipping = False

    def read(self) -> NewLines:
        """Return the lines of the next piece of the file; see `GrowingFile.read` for errors."""
        new = self._file.read(PIECE_BYTES)
        self.modified = self._file.modified
        if new.restarted:
            self._begin()
        data = bytes(new.data)
        skipped = 0
        if not self._skipping and len(self._partial) + data.find(b"\n") > MAX_LINE_BYTES:
            skipped = self._number
            self._skip_line()
        if self._skipping:
            data = self._after_skipped(data)
        lines, first = self._complete_lines(data)
        if len(self._partial) > MAX_LINE_BYTES:
            skipped = skipped or self._number
            self._skip_line()
        return NewLines(lines, first, new.restarted, skipped, has_read=bool(new.data))

    def finish(self) -> NewLines:
        """Return the last line if it has no end; what is appended to it later is skipped."""
        first = self._number
        line = self._decoded(self._partial)
        if self._partial:
            self._skip_line()
        return NewLines(_split(line), first, restarted=False, skipped=0, has_read=bool(line))

    def _complete_lines(self, data: bytes) -> tuple[Iterator[str], int]:
        first = self._number
        end = data.rfind(b"\n") + 1
        if not end:
            self._partial += data
            return iter(()), first
        text = self._decoded(self._partial + data[:end])
        self._partial = bytearray(data[end:])
        self._number += text.count("\n")
        return _split(text), first

    def _decoded(self, data: bytes | bytearray) -> str:
        text = data.decode("utf-8", "replace")
        return text.removeprefix(_BOM) if self._number == 1 else text

    def _skip_line(self) -> None:
        self._partial = bytearray()
        self._skipping = True

    def _after_skipped(self, data: bytes) -> bytes:
        """Return what follows the end of a line that is skipped."""
        end = data.find(b"\n") + 1
        if not end:
            return b""
        self._skipping = False
        self._number += 1
        return data[end:]


def _split(text: str) -> Iterator[str]:
    return (line.rstrip("\r\n") for line in io.StringIO(text))
