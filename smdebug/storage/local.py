"""LocalStore: a trial in a folder of this machine.

Files are read with ``pread`` into memory of our own and never mapped: a mapped file that its
owner cuts would kill the process (docs/decisions/0001-read-never-map.md). Links below the root
are not followed and only regular files are opened, so that a trial cannot lead a reader elsewhere
or make it wait on a pipe.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from smdebug.storage.local_folder import DEEPEST, FLAGS, LocalFolder, reason, walk
from smdebug.storage.protocol import (
    ByteRange,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
)


class LocalStore:
    """The files below `root`."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).expanduser()
        self._path = str(self.root)

    @property
    def uri(self) -> str:
        """Return the folder's path."""
        return str(self.root)

    @property
    def costs(self) -> ReadCosts:
        """Return what reading costs here; see `TrialStore`."""
        return ReadCosts()

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield the keys of regular files under `prefix`; see `TrialStore`."""
        folder, _, name = prefix.rpartition("/")
        if not self.root.is_dir():
            raise ObjectNotFoundError(self.uri)
        yield from self._walk(f"{folder}/" if folder else "", name, start_after)

    def _walk(self, folder: str, name_prefix: str, start_after: str) -> Iterator[str]:
        """Yield keys below `folder` whose first part starts with `name_prefix`.

        Links and pipes are listed like files, so that whoever reads them learns what they are.
        """
        try:
            with self._open(folder, os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
                # A folder sorts by its name with the slash, as the keys below it do.
                found = sorted(
                    entry.name + "/" * entry.is_dir(follow_symlinks=False)
                    for entry in entries
                    if entry.name.startswith(name_prefix)
                )
        except ObjectNotFoundError:
            return
        for name in found:
            key = folder + name
            if key.endswith("/"):
                wanted = key >= start_after or start_after.startswith(key)
                if wanted and key.count("/") <= DEEPEST:
                    yield from self._walk(key, "", start_after)
            elif key > start_after:
                yield key

    def folders(self, prefix: str, *, start_after: str = "") -> Iterator[LocalFolder]:
        """Yield the folder `prefix` and those below it that hold files; see `FolderStore`."""
        if not self.root.is_dir():
            raise ObjectNotFoundError(self.uri)
        with ExitStack() as opened:
            try:
                fd = opened.enter_context(self._open(prefix, os.O_DIRECTORY))
            except ObjectNotFoundError:
                return
            yield from walk(prefix, fd, start_after, self.read)

    @contextmanager
    def opened(self, key: str) -> Iterator["LocalFile"]:
        """Open a regular file below the root; see `FileStore`."""
        with self._open(key) as fd:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise StorageUnavailableError(key, "it is no regular file")
            yield LocalFile(key, fd, status.st_size)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of a regular file below the root; see `TrialStore`."""
        with self._open(key) as fd:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise StorageUnavailableError(key, "it is no regular file")
            start, stop = byte_range or ByteRange(0, status.st_size)
            # Never take more memory than the file has.
            return _pread(fd, start, min(stop, status.st_size) - start, key)

    @contextmanager
    def _open(self, key: str, flags: int = 0) -> Iterator[int]:
        """Open a file, or with ``O_DIRECTORY`` a folder, from the root down, following no link."""
        *folders, name = key.split("/")
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
            for folder in folders:
                fd = _below(fd, folder, FLAGS | os.O_DIRECTORY)
            fd = _below(fd, name, FLAGS | flags) if name else fd
        except (OSError, ValueError) as err:
            raise reason(key, err) from err
        try:
            yield fd
        finally:
            os.close(fd)


def _below(folder: int, name: str, flags: int) -> int:
    """Open something in an open folder, which is closed."""
    try:
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


class LocalFile:
    """An open file; see `OpenFile`."""

    def __init__(self, key: str, fd: int, size: int) -> None:
        self.size = size
        self._key = key
        self._fd = fd

    def bring(self, byte_range: ByteRange) -> None:
        """Have bytes brought into memory by the system, where it can; see `OpenFile`."""
        if hasattr(os, "posix_fadvise"):
            start, stop = byte_range
            with suppress(OSError):  # it is no more than a hint
                os.posix_fadvise(self._fd, start, stop - start, os.POSIX_FADV_WILLNEED)

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers with bytes from `start`; see `OpenFile`."""
        try:
            return os.preadv(self._fd, buffers, start)
        except OSError as err:
            raise StorageUnavailableError(self._key, os.strerror(err.errno or 0)) from err


def _pread(fd: int, start: int, length: int, key: str) -> memoryview:
    """Return up to `length` bytes from `start`: fewer if the file was cut meanwhile."""
    if length <= 0:
        return memoryview(b"")
    try:
        view = np.empty(length, dtype=np.uint8).data
    except MemoryError as err:  # a file with holes may be larger than any memory
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
