"""TrialStore and TrialOutput: the interfaces for reading and writing the files of a trial."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

from rule_core.exceptions import SMDebugError


class ObjectNotFoundError(SMDebugError):
    """The key does not exist now; it may be written later."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"File {self.key!r} does not exist."


class StorageUnavailableError(SMDebugError):
    """The store failed; whether the key exists is unknown.

    Attributes
    ----------
    key
        The requested key.
    reason
        The end of a sentence, with a remedy if there is one, without a full stop.
    transient
        Whether the same request may succeed later.
    retry_after
        Seconds that the store asks to wait before the next attempt.
    """

    def __init__(
        self, key: str, reason: str, *, transient: bool = False, retry_after: float = 0.0
    ) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason
        self.transient = transient
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"Cannot read {self.key!r}: {self.reason}."


class ByteRange(NamedTuple):
    """Bytes ``start <= i < stop`` of a file."""

    start: int
    stop: int


class ReadCosts(NamedTuple):
    """The costs of reading from a store, for planning reads.

    Attributes
    ----------
    parallel
        The number of parallel reads that improve throughput; 1 means sequential.
    gap
        The number of unused bytes that cost less than another request.
    """

    parallel: int = 1
    gap: int = 0


class FileStatus(NamedTuple):
    """The size of a file in bytes, and when it was written, in seconds since the epoch."""

    size: int
    modified: float


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
        """Return the costs of reading."""
        ...

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield the keys under `prefix` strictly after `start_after`, in code-point order.

        Raises
        ------
        ObjectNotFoundError
            If the root does not exist (not in stores without folders).
        StorageUnavailableError
            If the store fails.
        """
        ...

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of `key`, read-only.

        A `stop` past the end is truncated; a `start` past the end returns no bytes.

        Raises
        ------
        ObjectNotFoundError
            If `key` does not exist.
        StorageUnavailableError
            If it exists but cannot be read, or is not a regular file.
        """
        ...

    def status(self, key: str) -> FileStatus:
        """Return the size and time of `key`; raises what `read` does."""
        ...


@runtime_checkable
class ListedStore(TrialStore, Protocol):
    """A store that lists one folder without the folders below it."""

    def list_folder(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder; names of folders end with a slash, as does `folder`.

        Raises
        ------
        ObjectNotFoundError
            If the folder does not exist (not in stores without folders).
        StorageUnavailableError
            If the store fails.
        """
        ...


def list_folder(store: TrialStore, folder: str) -> Iterator[str]:
    """Yield the names in a folder of any store; see `ListedStore`.

    >>> from rule_core.storage.local import LocalStore
    >>> "etc/" in list_folder(LocalStore("/"), "")
    True
    """
    if isinstance(store, ListedStore):
        return store.list_folder(folder)
    keys = (key[len(folder) :].partition("/") for key in store.list_keys(folder))
    return (name for name, _ in groupby(name + slash for name, slash, _ in keys))


class OpenFile(Protocol):
    """A file that is open for random-access reads."""

    @property
    def size(self) -> int:
        """Return the length in bytes at the time of opening."""
        ...

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers in order with bytes from `start`; return the number of bytes read.

        Raises
        ------
        StorageUnavailableError
            If it cannot be read.
        """
        ...

    def read_ahead(self, byte_range: ByteRange) -> None:
        """Start to load bytes that will be read later, without waiting."""
        ...


class DescriptorFile(OpenFile, Protocol):
    """An open file of the operating system; `key` is its key in the store."""

    @property
    def key(self) -> str:
        """Return the key."""
        ...

    def fileno(self) -> int:
        """Return its descriptor, valid while it is open."""
        ...


def has_descriptor(file: OpenFile) -> TypeGuard[DescriptorFile]:
    """Return whether the operating system can read a file."""
    return hasattr(file, "fileno")


@runtime_checkable
class FileStore(TrialStore, Protocol):
    """A store in which many small reads of one file cost little more than one."""

    def opened(self, key: str) -> AbstractContextManager[OpenFile]:
        """Open a file; raises what `read` does."""
        ...


class Folder(Protocol):
    """An open folder, valid until the iterator advances.

    `key` is its key with the final slash, `names` are the sorted names of its files.
    """

    key: str
    names: list[str]

    def read(self, name: str) -> memoryview | bytes:
        """Return the bytes of one of its files; raises what the store's `read` does."""
        ...


@runtime_checkable
class FolderStore(TrialStore, Protocol):
    """A store with folders whose files are read faster together."""

    def folders(self, prefix: str, *, start_after: str = "") -> Iterator[Folder]:
        """Yield the folder `prefix`, which ends with a slash, and the folders below it, in order.

        Files with keys up to `start_after` are omitted, as are folders without other files.
        Raises as `list_keys`.
        """
        ...


class PendingFile(Protocol):
    """A file being written, which is invisible until it is published."""

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes."""
        ...

    def publish(self) -> None:
        """Make the file visible under its key; replaces an existing file."""
        ...

    def discard(self) -> None:
        """Discard what was written; may be called repeatedly."""
        ...


class TrialOutput(TrialStore, Protocol):
    """A store that can be written to; a missing folder is an empty trial.

    The methods raise `OSError` if a write fails.
    """

    def open(self, key: str) -> PendingFile:
        """Start to write a file."""
        ...

    def remove(self, key: str) -> None:
        """Remove a file, if it exists."""
        ...
