"""ConvertedFormat: what a format of other tools has to offer to be read as profiler data."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from rule_core.storage.base import TrialStore


class NumberedKey(NamedTuple):
    """A file to convert, and a number of its own for the names of what it is converted to."""

    number: int
    key: str


class Converted(NamedTuple):
    """What files were converted to.

    Attributes
    ----------
    source
        The key of the file that `problems` are about.
    files
        Paths by the keys at which they are presented.
    problems
        A sentence for each problem.
    lost
        The number of parts that are lost.
    first_us
        The start of the data in epoch microseconds; None if only the names of `files` have it.
    """

    source: str
    files: dict[str, Path]
    problems: list[str]
    lost: int
    first_us: int | None = None


class ConvertedFormat(Protocol):
    """A format whose files are converted to those of a profiler.

    By default no name belongs to it alone, and none of its files is refused.
    """

    @property
    def label(self) -> str:
        """The name of the files for users, in the plural."""
        ...

    def has_name(self, key: str) -> bool:
        """Return whether only files of this format have such a name."""
        del key
        return False

    def may_have_name(self, key: str) -> bool:
        """Return whether a file of such a name is worth looking into."""
        ...

    def begins(self, text: bytes) -> bool:
        """Return whether a text begins as the files of this format do."""
        ...

    def refusal(self, key: str, start: bytes) -> str:
        """Return why a file that belongs to this format cannot be read; "" if it may be."""
        del key, start
        return ""

    def convert(
        self, store: TrialStore, keys: Sequence[NumberedKey], folder: Path
    ) -> Iterator[Converted]:
        """Convert files, which are listed together for the first time.

        Parameters
        ----------
        store
            Location of the files.
        folder
            Where to write.

        Raises
        ------
        OSError
            If a file cannot be written.
        ObjectNotFoundError, StorageUnavailableError
            If a file cannot be read.
        """
        ...
