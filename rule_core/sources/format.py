"""SourceFormat: recognises and opens the files of one format."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from rule_core.modes import ModeKeys
from rule_core.reading.source import Source
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import TrialStore

HEAD_BYTES = 1 << 16


class Recognized(NamedTuple):
    """A file or folder that a format can read.

    Attributes
    ----------
    kind
        The name of the format, as in ``--trial csv:PATH``.
    key
        The file, or the folder with a final slash ("" for the root), relative to the root.
    reason
        Why it was recognised, as the end of a sentence: ``its columns include step``.
    mode
        The mode of everything in it whose name says none; None: that of each name.
    """

    kind: str
    key: str
    reason: str
    mode: ModeKeys | None = None


class Unreadable(NamedTuple):
    """A file or folder that a format looked at and does not read.

    Attributes
    ----------
    key
        As that of `Recognized`.
    reason
        Why it is not read, as the end of a sentence: ``each row is a training of its own``.
    """

    key: str
    reason: str


class SourceFolder(NamedTuple):
    """A folder in which sources are looked for.

    Attributes
    ----------
    key
        The folder with a final slash, relative to the root; "" for the root.
    names
        The sorted names of its files, and of its folders with a final slash; without older parts
        of rotated logs, which are read with the newest, and copies that are compressed.
    list_folder
        Returns the names in a folder below it, given as a name with a final slash; [] if there is
        none.
    head
        Returns the first `HEAD_BYTES` of the content of a file in it or below, or as many as the
        second argument says, decompressed if its name says so; b"" if it cannot be read.
    options
        How the user says that sources are read.
    tail
        Returns the last `HEAD_BYTES`, where some formats say what they hold.
    """

    key: str
    names: Sequence[str]
    list_folder: Callable[[str], Sequence[str]]
    head: Callable[..., bytes]
    options: SourceOptions = DEFAULT
    tail: Callable[[str], bytes] = lambda _: b""

    def head_text(self, name: str, size: int = HEAD_BYTES) -> str:
        """Return the start of a file as text, as `LineReader` reads it; "" for a binary file."""
        from rule_core.sources.rows.line_reader import head_text

        return head_text(self.head(name) if size == HEAD_BYTES else self.head(name, size))


class FileSource:
    """A reader of files that do not say whether the run has ended; see `Source`.

    Attributes
    ----------
    written
        When the files were last written, in seconds since the epoch; 0 if unknown.
    """

    def __init__(self, kind: str, description: str) -> None:
        self.kind = kind
        self.description = description
        self.written = 0.0

    def has_ended(self) -> bool | None:
        """Return whether the run has ended; None: the files do not say it."""
        return None

    def last_write(self) -> float:
        """Return when the files were last written; see `Source`."""
        return self.written


class SourceFormat(Protocol):
    """One format; each module of this package has one, named ``FORMAT``.

    Packages of others register theirs as entry points of the group ``rule_runner.sources``.
    """

    @property
    def kind(self) -> str:
        """The name of the format."""
        ...

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized | Unreadable]:
        """Yield the files in a folder, or the folder itself, that the format can read.

        A file that looks like one of the format and yet cannot be read is refused with the reason.

        It is called for each folder below a path, so that it looks at names first and reads the
        head of a file only if its name fits.
        """
        ...

    def open(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> Source:
        """Return the reader of a file or folder, without reading it.

        It may be one that was not recognised, since users can name the format.

        Raises
        ------
        SMDebugValueError
            If this file can never be read, with what to do instead.
        """
        ...
