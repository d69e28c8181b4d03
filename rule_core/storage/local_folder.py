"""LocalFolder: the files of one local folder, listed once and read relative to the open folder.

A trial has an index file for each step: opening each from the root costs more than reading it.
"""

import errno
import os
from collections.abc import Callable, Iterator
from typing import Final

from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError

FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
SMALL: Final = 1 << 15  # bytes: shorter files are read in one call
MAX_DEPTH: Final = 16  # of folders; the format uses three


class LocalFolder:
    """An open folder, valid until the iterator advances.

    Attributes
    ----------
    key
        Its key, with the final slash.
    names
        The sorted names of its files, including links and pipes.
    """

    def __init__(
        self, key: str, names: list[str], fd: int, read: Callable[[str], memoryview]
    ) -> None:
        self.key = key
        self.names = names
        self._fd = fd
        self._read = read

    def read(self, name: str) -> memoryview | bytes:
        """Return the bytes of a file of the folder; raises as the store's `read`.

        Devices, empty files, long files and files that cannot be opened are passed to the store,
        which checks them. ``pread`` fails for anything that is not seekable.
        """
        try:
            fd = os.open(name, FLAGS, dir_fd=self._fd)
            try:
                data = os.pread(fd, SMALL, 0)
            finally:
                os.close(fd)
        except (OSError, ValueError):
            return self._read(self.key + name)
        return data if 0 < len(data) < SMALL else self._read(self.key + name)


def scan(fd: int) -> tuple[list[str], list[str]]:
    """Return the sorted names of the files and of the folders in a folder.

    Links and pipes count as files, so that reading them reports what they are.
    """
    files: list[str] = []
    folders: list[str] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
    return sorted(files), sorted(folders)


def walk(
    key: str, fd: int, start_after: str, read: Callable[[str], memoryview]
) -> Iterator[LocalFolder]:
    """Yield the folder `key`, which is open as `fd`, and the folders below it, in order.

    Parameters
    ----------
    start_after
        Files with keys up to this one are omitted.
    read
        Reads any file below the root by its key.
    """
    files, folders = scan(fd)
    if start_after.startswith(key):
        last_name = start_after[len(key) :]
        files = [name for name in files if name > last_name]
    if files and (key > start_after or start_after.startswith(key)):
        yield LocalFolder(key, files, fd, read)
    for name in folders:
        inner = f"{key}{name}/"
        if (inner < start_after and not start_after.startswith(inner)) or inner.count(
            "/"
        ) > MAX_DEPTH:
            continue
        try:
            below = os.open(name, FLAGS | os.O_DIRECTORY, dir_fd=fd)
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as err:
            raise open_error(inner, err) from err
        try:
            yield from walk(inner, below, start_after, read)
        finally:
            os.close(below)


def open_error(
    key: str, err: OSError | ValueError
) -> ObjectNotFoundError | StorageUnavailableError:
    """Translate an error of opening a file or folder."""
    number = err.errno if isinstance(err, OSError) else errno.EINVAL
    if number == errno.ENOENT:
        return ObjectNotFoundError(key)
    if number in {errno.ELOOP, errno.ENOTDIR}:
        return StorageUnavailableError(key, "links inside a trial are not followed")
    return StorageUnavailableError(key, os.strerror(number or 0))
