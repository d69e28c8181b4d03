"""LineReader: the lines of a growing file, in bounded memory."""

import io
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from rule_core.sources.text.decoder import TextDecoder
from rule_core.sources.text.envelopes import Envelopes
from rule_core.sources.text.rotated_file import RotatedFile
from rule_core.storage.base import TrialStore
from rule_core.storage.growing_file import PIECE_BYTES

MAX_LINE_BYTES: Final = 8 << 20  # longer lines are skipped


class NewLines(NamedTuple):
    """Complete lines that follow those read before.

    Attributes
    ----------
    text
        The lines, each with its end, for searches in all of them at once.
    first
        The number of the first line; the file's first line is 1.
    restarted
        Whether the file was begun anew: the lines are its first ones.
    skipped
        The number of a line that turned out to be too long; 0 if there is none.
    has_read
        Whether any bytes were read.
    """

    text: str
    first: int
    restarted: bool
    skipped: int
    has_read: bool

    @property
    def lines(self) -> Iterator[str]:
        """The lines without their ends."""
        return (line.removesuffix("\n") for line in io.StringIO(self.text))


class LineReader:
    """Reads a log and its older parts line by line; a partial last line is kept for the next call.

    Any of newline, carriage return or both ends a line. Lines are given without the envelopes of
    collectors and launchers; see `Envelopes`.

    Attributes
    ----------
    modified
        When the file was last written, in seconds since the epoch; 0 before the first look.

    Raises
    ------
    SMDebugValueError
        If the package that decompresses the file is missing.
    """

    def __init__(self, store: TrialStore, key: str) -> None:
        self._store = store
        self._key = key
        self.modified = 0.0
        self.rewind()

    def rewind(self) -> None:
        """Read the file from its start again."""
        self._file = RotatedFile(self._store, self._key)
        self._begin()

    def _begin(self) -> None:
        self._decoder = TextDecoder()
        self._envelopes = Envelopes()
        self._partial = ""
        self._number = 1  # of the next line
        self._skipping = False

    @property
    def problem(self) -> str:
        """A sentence on the encoding or on damage; "" if there is none."""
        return self._decoder.problem or self._file.problem

    def read(self) -> NewLines:
        """Return the lines of the next piece of the file; see `GrowingFile.read` for errors."""
        new = self._file.read(PIECE_BYTES)
        self.modified = self._file.modified
        if new.restarted:
            self._begin()
        content = self._decoder.decode(bytes(new.data))
        skipped = 0
        if not self._skipping and len(self._partial) + content.find("\n") > MAX_LINE_BYTES:
            skipped = self._number
            self._skip_line()
        if self._skipping:
            _, end_of_line, content = content.partition("\n")
            self._number += len(end_of_line)
            self._skipping = not end_of_line
        content = self._partial + content
        end = content.rfind("\n") + 1
        self._partial = content[end:]
        first, lines = self._unwrapped(content[:end])
        if len(self._partial) > MAX_LINE_BYTES:
            skipped = skipped or self._number
            self._skip_line()
        return NewLines(lines, first, new.restarted, skipped, has_read=bool(new.data))

    def finish(self) -> NewLines:
        """Return the last line if it has no end; what is appended to it later is skipped."""
        ending = self._decoder.decode(b"", is_last=True)
        content = "" if self._skipping else self._partial + ending
        first, lines = self._unwrapped(content, is_last=True)
        if self._partial:
            self._skip_line()
        return NewLines(lines, first, restarted=False, skipped=0, has_read=bool(content))

    def _unwrapped(self, content: str, *, is_last: bool = False) -> tuple[int, str]:
        """Return the number of the first line, and lines without envelopes."""
        first = self._number
        content = self._envelopes.unwrap(content, is_last=is_last)
        self._number += content.count("\n")
        return first, content

    def _skip_line(self) -> None:
        self._partial = ""
        self._skipping = True


@lru_cache(maxsize=8)  # several formats look at one file
def head_text(head: bytes) -> str:
    """Return the start of a file as `LineReader` reads it; "" for a binary file."""
    return Envelopes().unwrap(TextDecoder().decode(head), is_last=True)
