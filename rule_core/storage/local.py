"""LocalStore: a trial in a local folder.

Files are read with ``pread`` and never memory-mapped: truncating a mapped file would kill the
process (docs/decisions/0001-read-never-map.md). Links below the root are not followed and only
regular files are opened, so that a trial cannot redirect a reader or block it on a pipe.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import numpy as np

from rule_core.storage.base import (
    ByteRange,
    FileStatus,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
)
from rule_core.storage.local_folder import FLAGS, MAX_DEPTH, LocalFolder, open_error, walk
from rule_core.storage.size_limit import check_file_size


class LocalStore:
    """The files below `root`."""

    costs = ReadCosts()

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).expanduser()
        self.uri = str(self.root)

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield the keys of regular files under `prefix`; see `TrialStore`."""
        folder, _, name = prefix.rpartition("/")
        if not self.root.is_dir():
            raise ObjectNotFoundError(self.uri)
        yield from self._walk(f"{folder}/" if folder else "", name, start_after)

    def _walk(self, folder: str, name_prefix: str, start_after: str) -> Iterator[str]:
        """Yield keys below `folder` whose first part starts with `name_prefix`.

        Links and pipes are listed like files, so that reading them reports what they are.
        """
        try:
            with self._open(folder, os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
                # A folder sorts by its name with the slash, as the keys below it do.
                names = sorted(
                    entry.name + "/" * entry.is_dir(follow_symlinks=False)
                    for entry in entries
                    if entry.name.startswith(name_prefix)
                )
        except ObjectNotFoundError:
            return
        for name in names:
            key = folder + name
            if key.endswith("/"):
                may_contain_keys = key >= start_after or start_after.startswith(key)
                if may_contain_keys and key.count("/") <= MAX_DEPTH:
                    yield from self._walk(key, "", start_after)
            elif key > start_after:
                yield key

    def list_folder(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder, in any order; see `ListedStore`.

        Links are listed like files.
        """
        with self._open(folder, os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
            for entry in entries:
                yield entry.name + "/" * entry.is_dir(follow_symlinks=False)

    def folders(self, prefix: str, *, start_after: str = "") -> Iterator[LocalFolder]:
        """Yield the folder `prefix` and the folders below it with files; see `FolderStore`."""
        if not self.root.is_dir():
            raise ObjectNotFoundError(self.uri)
        with ExitStack() as opened:
            try:
                fd = opened.enter_context(self._open(prefix, os.O_DIRECTORY))
            except ObjectNotFoundError:
                return
            yield from walk(prefix, fd, start_after, self.read)

    def opened(self, key: str) -> "LocalFile":
        """Open a regular file below the root; see `FileStore`."""
        fd = self._descriptor(key)
        try:
            return LocalFile(key, fd, _file_size(fd, key))
        except (OSError, StorageUnavailableError):
            os.close(fd)
            raise

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of a regular file below the root; see `TrialStore`."""
        with self._open(key) as fd:
            nbytes = _file_size(fd, key)
            if byte_range is None:
                check_file_size(key, nbytes)
            start, stop = byte_range or ByteRange(0, nbytes)
            # Never allocate more memory than the size of the file.
            return _pread(fd, start, min(stop, nbytes) - start, key)

    def status(self, key: str) -> FileStatus:
        """Return the size and time of a regular file below the root; see `TrialStore`."""
        with self._open(key) as fd:
            return FileStatus(_file_size(fd, key), os.fstat(fd).st_mtime)

    @contextmanager
    def _open(self, key: str, flags: int = 0) -> Iterator[int]:
        """Open a file, or with ``O_DIRECTORY`` a folder, without following links."""
        fd = self._descriptor(key, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    def _descriptor(self, key: str, flags: int = 0) -> int:
        """Return a new descriptor of a file, or with ``O_DIRECTORY`` of a folder."""
        *folders, name = key.split("/")
        try:
            fd = os.open(self.uri, os.O_RDONLY | os.O_DIRECTORY)
            for folder in folders:
                fd = _below(fd, folder, FLAGS | os.O_DIRECTORY)
            return _below(fd, name, FLAGS | flags) if name else fd
        except (OSError, ValueError) as err:
            raise open_error(key, err) from err


def _below(folder: int, name: str, flags: int) -> int:
    """Open an entry of an open folder, and close the folder."""
    try:
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


class LocalFile:
    """An open file, a context manager that closes it; see `OpenFile`."""

    def __init__(self, key: str, fd: int, size: int) -> None:
        self.size = size
        self.key = key
        self._fd = fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def fileno(self) -> int:
        """Return the descriptor; see `DescriptorFile`."""
        return self._fd

    def read_ahead(self, byte_range: ByteRange) -> None:
        """Let the operating system load bytes, where supported; see `OpenFile`."""
        if hasattr(os, "posix_fadvise") and not self._is_cached(byte_range):
            start, stop = byte_range
            with suppress(OSError):  # only a hint
                os.posix_fadvise(self._fd, start, stop - start, os.POSIX_FADV_WILLNEED)

    def _is_cached(self, byte_range: ByteRange) -> bool:
        """Return whether the ends and the middle of a range can be read without waiting."""
        start, stop = byte_range
        try:
            return all(
                os.preadv(self._fd, [bytearray(1)], position, os.RWF_NOWAIT)
                for position in (start, (start + stop) // 2, stop - 1)
            )
        except (AttributeError, OSError):  # not this system, or not in memory
            return False

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers with bytes from `start`; see `OpenFile`."""
        try:
            return os.preadv(self._fd, buffers, start)
        except OSError as err:
            raise StorageUnavailableError(self.key, os.strerror(err.errno or 0)) from err


def _file_size(fd: int, key: str) -> int:
    """Return the size of an open file, or raise an error if it is not a regular file."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise StorageUnavailableError(key, "it is not a regular file")
    return status.st_size


def _pread(fd: int, start: int, length: int, key: str) -> memoryview:
    """Return up to `length` bytes from `start`; fewer if the file was truncated meanwhile."""
    if length <= 0:
        return memoryview(b"")
    try:
        view = np.empty(length, dtype=np.uint8).data
    except MemoryError as err:  # a sparse file may be larger than the memory
        raise StorageUnavailableError(key, f"no memory for {length} bytes of it") from err
    done = 0
    try:
        while done < length:
            count = os.preadv(fd, [view[done:]], start + done)
            if not count:
                break
            done += count
    except OSError as err:
        raise StorageUnavailableError(key, os.strerror(err.errno or 0)) from err
    return view[:done].toreadonly()
