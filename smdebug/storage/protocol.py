"""TrialStore: the two verbs by which a trial's files are read, and how they fail."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable

from smdebug.exceptions import SMDebugError


class ObjectNotFoundError(SMDebugError):
    """The key is not there now; it may come later."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"File {self.key!r} is not there."


class StorageUnavailableError(SMDebugError):
    """The store could not be asked: nothing is known about the key.

    Attributes
    ----------
    key
        What was asked for.
    reason
        One sentence's end for people, with the remedy if there is one; without a full stop.
    transient
        Whether the same question may be answered later.
    """

    def __init__(self, key: str, reason: str, *, transient: bool = False) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason
        self.transient = transient

    def __str__(self) -> str:
        return f"Cannot read {self.key!r}: {self.reason}."


class ByteRange(NamedTuple):
    """Bytes ``start <= i < stop`` of a file."""

    start: int
    stop: int


class ReadCosts(NamedTuple):
    """What reading costs in a store, for whoever plans it.

    Attributes
    ----------
    parallel
        How many reads at once are faster than one after the other; 1 is none.
    gap
        Bytes that nobody wants and that are read sooner than another request is made.
    """

    parallel: int = 1
    gap: int = 0


class TrialStore(Protocol):
    """Read-only files of one trial; keys are '/'-separated and relative to the trial's root.

    `uri` names the root for messages.
    """

    @property
    def uri(self) -> str:
        """Return the root as the user would write it."""
        ...

    @property
    def costs(self) -> ReadCosts:
        """Return what reading costs here."""
        ...

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield the keys under `prefix` strictly after `start_after`, in code-point order.

        Raises
        ------
        ObjectNotFoundError
            If the root itself is not there (a store without folders has no such case).
        StorageUnavailableError
            If the store cannot be asked.
        """
        ...

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of `key`, read-only.

        A `stop` past the end is cut short; a `start` past it gives no bytes.

        Raises
        ------
        ObjectNotFoundError
            If `key` is not there.
        StorageUnavailableError
            If it is there and cannot be read, or is no regular file.
        """
        ...


class OpenFile(Protocol):
    """A file that is open for reading at any place."""

    @property
    def size(self) -> int:
        """Return its length in bytes when it was opened."""
        ...

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers, one after the other, with bytes from `start`; return how many there were.

        Raises
        ------
        StorageUnavailableError
            If it cannot be read.
        """
        ...

    def bring(self, byte_range: ByteRange) -> None:
        """Have bytes that will be read brought near, if that can be had without waiting."""
        ...


@runtime_checkable
class FileStore(TrialStore, Protocol):
    """A store in which many small reads of one file cost little more than one."""

    def opened(self, key: str) -> AbstractContextManager[OpenFile]:
        """Open a file; raises what `read` does."""
        ...


class Folder(Protocol):
    """A folder that is open for reading, until the next one is asked for.

    `key` is its place with the final slash, `names` are those of its files, sorted.
    """

    key: str
    names: list[str]

    def read(self, name: str) -> memoryview | bytes:
        """Return the bytes of one of its files; raises what the store's `read` does."""
        ...


@runtime_checkable
class FolderStore(TrialStore, Protocol):
    """A store with folders, in which the files of one are read faster together."""

    def folders(self, prefix: str, *, start_after: str = "") -> Iterator[Folder]:
        """Yield the folder `prefix`, which ends with a slash, and those below it, in order.

        Files with keys up to `start_after` are left out, and folders that have no others.
        Raises what `list_keys` does.
        """
        ...


class Draft(Protocol):
    """A file being written: nobody sees it under its key before it is whole."""

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes."""
        ...

    def publish(self) -> None:
        """Give the file its key, in the place of what may be there."""
        ...

    def discard(self) -> None:
        """Drop what was written; no error if that was done already."""
        ...


class TrialOutput(TrialStore, Protocol):
    """Where the files of one trial are written; a folder that is not there yet is an empty trial.

    Its methods raise `OSError` if the store does not take what it is given.
    """

    def open(self, key: str) -> Draft:
        """Begin a file."""
        ...

    def remove(self, key: str) -> None:
        """Remove a file; no error if it is not there."""
        ...
