"""CollectedFile: a file about many trials, which is written from a spool piece by piece."""

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rule_core.exceptions import SMDebugError
from rule_core.failures import OnError
from rule_core.storage.uri import open_output
from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.errors import UsageError, translated, unwritable

_PIECE: Final = 1 << 16  # bytes


class Spool:
    """Text that is appended now and read later; it is kept on disk."""

    def __init__(self) -> None:
        self._file = os.fdopen(_nameless(), "w+b")
        self.is_empty = True

    def append(self, text: str) -> None:
        """Append text."""
        self.is_empty = False
        self._file.write(text.encode(errors="backslashreplace"))

    def append_item(self, text: str) -> None:
        """Append an item of a JSON array."""
        self.append(text if self.is_empty else f",\n{text}")

    def pieces(self) -> Iterator[bytes]:
        """Yield all that was appended."""
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            yield piece

    def lines(self) -> Iterator[bytes]:
        """Yield all that was appended, by lines."""
        self._file.seek(0)
        yield from self._file

    def close(self) -> None:
        """Free the space on disk."""
        self._file.close()


def _nameless() -> int:
    """Return the descriptor of a new file that ends with it."""
    descriptor, path = tempfile.mkstemp(prefix="rule-runner-")
    Path(path).unlink()
    return descriptor


class CollectedFile(ABC):
    """A report that is made of trials one after the other, without keeping them in memory.

    Parameters
    ----------
    place
        Where it is written: a path or an ``s3://`` address.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.spool = Spool()

    @abstractmethod
    def add(self, trial: CollectedTrial) -> None:
        """Add a trial."""

    @abstractmethod
    def pieces(self, exit_code: int) -> Iterable[bytes]:
        """Return the content of the file; `exit_code` is the exit code of the command."""

    def write(self, exit_code: int) -> None:
        """Write the file, which appears when it is complete.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        folder, slash, name = self.place.strip().rpartition("/")
        with unwritable(repr(self.place)), translated(UsageError, SMDebugError):
            pending = open_output(folder or slash or ".").open(name)
            with OnError(pending.discard):
                for piece in self.pieces(exit_code):
                    pending.write(piece)
                pending.publish()

    def close(self) -> None:
        """Free the space on disk that was used meanwhile."""
        self.spool.close()
