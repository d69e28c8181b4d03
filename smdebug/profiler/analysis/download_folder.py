"""DownloadFolder: files that were downloaded into one folder, and the list of them.

The list is what keeps the files of others safe: only what stands in it, and is as it was written,
is ever replaced or removed. Folders stay. No link is followed below the folder.
"""

import errno
import os
import secrets
import stat
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from smdebug.core.locations import is_inside
from smdebug.profiler.analysis.cprofile_file import MAX_BYTES
from smdebug.profiler.python_profile_utils import ProfileFolderError

LIST_NAME: Final = ".rule-runner-downloads.json"
MOST_BYTES: Final = MAX_BYTES + 1  # more of a file is not read: it is nothing of ours
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_LINKS: Final = frozenset({errno.ELOOP, errno.ENOTDIR})


class DownloadFolder:
    """A folder that is open for downloads; it is made with all above it.

    Parameters
    ----------
    path
        The folder. It may not be a link, and nothing in it either; what it lies in may be.

    Raises
    ------
    ProfileFolderError
        Here and in each method: if something in the way is a link or a stranger's file, or the
        system does not let us write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors(""):
            path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, _FOLDER)
        try:
            self._made = self._list()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            with self._errors(LIST_NAME):
                _write(self._fd, LIST_NAME, msgspec.json.encode(self._made))
        finally:
            os.close(self._fd)

    def keep_only(self, names: Collection[str], leaves: Collection[str]) -> None:
        """Remove files that were downloaded once.

        Parameters
        ----------
        names
            Those that stay.
        leaves
            The last parts of names that are spoken of: with others all stay.
        """
        for name in self._made.keys() - names:
            if name.rpartition("/")[2] not in leaves:
                continue
            with suppress(OSError), self._folder(name) as (fd, leaf):  # else it is ours no more
                if self._is_ours(name, _read(fd, leaf)):
                    os.unlink(leaf, dir_fd=fd)
            del self._made[name]

    def put(self, name: str, data: bytes) -> None:
        """Write a file, in the place of one that was downloaded before.

        Parameters
        ----------
        name
            Its place below the folder, with slashes.
        data
            What it holds.
        """
        with self._errors(name), self._folder(name, make=True) as (fd, leaf):
            there = _read(fd, leaf)
            if there == data:
                return
            if there is not None and not self._is_ours(name, there):
                raise FileExistsError(errno.EEXIST, "a file that was not downloaded is there")
            _write(fd, leaf, data)
        self._made[name] = zlib.crc32(data)

    def _is_ours(self, name: str, content: bytes | None) -> bool:
        return content is not None and self._made.get(name) == zlib.crc32(content)

    def _list(self) -> dict[str, int]:
        """Return the checksum of each file that was downloaded, by its name."""
        with self._errors(LIST_NAME):
            content = _read(self._fd, LIST_NAME)
        try:
            return msgspec.json.decode(content or b"{}", type=dict[str, int])
        except ValueError:  # no JSON, or no UTF-8 in it: then nothing there is known to be ours
            return {}

    @contextmanager
    def _folder(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder that a file lies in, from the root down; yield it and the last part."""
        if not is_inside(name):
            raise FileNotFoundError(errno.ENOENT, "no place below the folder")
        *folders, leaf = name.split("/")
        fd = os.dup(self._fd)
        try:
            for folder in folders:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=fd)
                below = os.open(folder, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd, leaf
        finally:
            os.close(fd)

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Say of which file an error of the system is."""
        try:
            yield
        except (OSError, ValueError) as err:
            number = err.errno if isinstance(err, OSError) else errno.EINVAL
            reason = err.strerror if isinstance(err, OSError) else str(err)
            if number in _LINKS:
                reason = "something in the way is a link or no folder"
            what = repr(name) if name else "Python profiles"
            msg = (
                f"Cannot download {what} into '{self.path}': {reason}. "
                "Give another local_profile_dir, or move what is there."
            )
            raise ProfileFolderError(msg) from err


def _read(fd: int, leaf: str) -> bytes | None:
    """Return what a file in an open folder holds, up to `MOST_BYTES`; None if it is not there.

    What is no file raises `OSError`.
    """
    try:
        number = os.open(leaf, _FILE, dir_fd=fd)
    except FileNotFoundError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "something there is no file")
        with os.fdopen(number, "rb", closefd=False) as file:
            return file.read(MOST_BYTES)
    finally:
        os.close(number)


def _write(fd: int, leaf: str, data: bytes) -> None:
    """Write a file into an open folder, whole or not at all."""
    draft = f".{secrets.token_hex(8)}.tmp"
    number = os.open(draft, _DRAFT, 0o644, dir_fd=fd)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.replace(draft, leaf, src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=fd)
        raise
