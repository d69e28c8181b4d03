"""LocalFolder: the files of one folder of this machine, listed at once and read one after another.

A trial has an index file for each step: opening each from the root down costs more than reading it.
"""

import errno
import os
from collections.abc import Callable, Iterator
from typing import Final

from smdebug.storage.protocol import ObjectNotFoundError, StorageUnavailableError

FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
SMALL: Final = 1 << 15  # bytes: what is shorter is read in one go
DEEPEST: Final = 16  # folders below each other; the format has three


class LocalFolder:
    """An open folder; use it before the next one is asked for.

    Attributes
    ----------
    key
        Its place below the root, with the final slash.
    names
        The names of its files, sorted; links and pipes are among them.
    """

    def __init__(
        self, key: str, names: list[str], fd: int, read: Callable[[str], memoryview]
    ) -> None:
        self.key = key
        self.names = names
        self._fd = fd
        self._read = read

    def read(self, name: str) -> memoryview | bytes:
        """Return the bytes of a file of the folder; raises what the store's `read` does.

        A device, an empty file, a long one and whatever cannot be opened are left to the store,
        which looks closer. What is no file has no place to read from.
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
    """Return the names in a folder, of files and of folders, sorted.

    Links and pipes count as files, so that whoever reads them learns what they are.
    """
    with os.scandir(fd) as found:
        entries = list(found)
    folders = sorted([one.name for one in entries if one.is_dir(follow_symlinks=False)])
    files = sorted([one.name for one in entries])
    if folders:
        inner = {*folders}
        files = [name for name in files if name not in inner]
    return files, folders


def walk(
    key: str, fd: int, start_after: str, read: Callable[[str], memoryview]
) -> Iterator[LocalFolder]:
    """Yield the folder `key`, which is open as `fd`, and those below it, in order.

    Parameters
    ----------
    start_after
        Files whose keys are not after this one are left out.
    read
        Reads any file below the root by its key.
    """
    files, folders = scan(fd)
    if start_after.startswith(key):
        known = start_after[len(key) :]
        files = [name for name in files if name > known]
    if files and (key > start_after or start_after.startswith(key)):
        yield LocalFolder(key, files, fd, read)
    for name in folders:
        inner = f"{key}{name}/"
        if (inner < start_after and not start_after.startswith(inner)) or inner.count(
            "/"
        ) > DEEPEST:
            continue
        try:
            below = os.open(name, FLAGS | os.O_DIRECTORY, dir_fd=fd)
        except FileNotFoundError:  # gone again
            continue
        except OSError as err:
            raise reason(inner, err) from err
        try:
            yield from walk(inner, below, start_after, read)
        finally:
            os.close(below)


def reason(key: str, err: OSError | ValueError) -> ObjectNotFoundError | StorageUnavailableError:
    """Return what is wrong with a file or folder that could not be opened."""
    number = err.errno if isinstance(err, OSError) else errno.EINVAL
    if number == errno.ENOENT:
        return ObjectNotFoundError(key)
    if number in {errno.ELOOP, errno.ENOTDIR}:
        return StorageUnavailableError(key, "links inside a trial are not followed")
    return StorageUnavailableError(key, os.strerror(number or 0))
