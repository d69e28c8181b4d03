"""DownloadFolder: a folder of downloaded files, with a list of them.

Only listed files that are unchanged since their download are replaced or removed, so other files
are safe. The list is next to the folder, because smdebug treats everything inside as nodes. Folders
are never removed, and links below the folder are not followed.
"""

import errno
import os
import secrets
import stat
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from rule_core.failures import remove_on_error
from rule_core.format.paths import is_inside
from rule_core.profiler.python_profiles.cprofile_file import MAX_BYTES
from rule_core.profiler.python_profiles.types import ProfileFolderError

LIST_NAME: Final = ".{}.rule-runner-downloads.json"  # with the name of the folder
MOST_BYTES: Final = MAX_BYTES + 1  # larger files are not downloads
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_LINKS: Final = frozenset({errno.ELOOP, errno.ENOTDIR})


class DownloadFolder:
    """A folder opened for downloads, created with its parents.

    Parameters
    ----------
    path
        The folder. It must not be or contain links; its parents may be links.

    Raises
    ------
    ProfileFolderError
        Here and in each method, if a link or a foreign file is in the way, or writing fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._list_name = LIST_NAME.format(path.name)
        with ExitStack() as opened:
            with self._errors(""):
                path.mkdir(parents=True, exist_ok=True)
                self._fd = os.open(path, _FOLDER)
                opened.callback(os.close, self._fd)
                self._parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
                opened.callback(os.close, self._parent)
            self._checksums = self._list()
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._opened, self._errors(self._list_name):
            _write(self._parent, self._list_name, msgspec.json.encode(self._checksums))

    def keep_only(self, names: Collection[str], leaves: Collection[str]) -> None:
        """Remove earlier downloads.

        Parameters
        ----------
        names
            Files to keep.
        leaves
            File names to remove; files with other names are kept.
        """
        for name in self._checksums.keys() - names:
            if name.rpartition("/")[2] not in leaves:
                continue
            # On an error it is no longer our file.
            with suppress(OSError), self._folder(name) as (fd, leaf):
                if self._is_ours(name, _read(fd, leaf)):
                    os.unlink(leaf, dir_fd=fd)
            del self._checksums[name]

    def put(self, name: str, data: bytes) -> None:
        """Write a file, replacing an earlier download.

        Parameters
        ----------
        name
            Path below the folder, with slashes.
        data
            Content of the file.
        """
        with self._errors(name), self._folder(name, make=True) as (fd, leaf):
            existing = _read(fd, leaf)
            if existing == data:
                return
            if existing is not None and not self._is_ours(name, existing):
                raise FileExistsError(errno.EEXIST, "it holds a file that was not downloaded")
            _write(fd, leaf, data)
        self._checksums[name] = zlib.crc32(data)

    def _is_ours(self, name: str, content: bytes | None) -> bool:
        return content is not None and self._checksums.get(name) == zlib.crc32(content)

    def _list(self) -> dict[str, int]:
        """Return the checksum of each downloaded file, by name."""
        with self._errors(self._list_name):
            content = _read(self._parent, self._list_name)
        try:
            return msgspec.json.decode(content or b"{}", type=dict[str, int])
        except ValueError:  # invalid list: treat every file as foreign
            return {}

    @contextmanager
    def _folder(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of a file, part by part; yield its descriptor and the file name."""
        if not is_inside(name):
            raise FileNotFoundError(errno.ENOENT, "not a path below the folder")
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
        """Convert system errors to `ProfileFolderError` with the name of the file."""
        try:
            yield
        except (OSError, ValueError) as err:
            number = err.errno if isinstance(err, OSError) else errno.EINVAL
            reason = err.strerror if isinstance(err, OSError) else str(err)
            if number in _LINKS:
                reason = "something in the way is a link or no folder"
            subject = repr(name) if name else "Python profiles"
            raise ProfileFolderError(
                f"Cannot download {subject} into '{self.path}': {reason}. "
                "Give another local_profile_dir, or move that file."
            ) from err


def _read(fd: int, leaf: str) -> bytes | None:
    """Return the content of a file in an open folder, up to `MOST_BYTES`; None if missing.

    Raises `OSError` for anything but a regular file.
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
    """Write a file into an open folder atomically."""
    draft = f".{secrets.token_hex(8)}.tmp"
    number = os.open(draft, _DRAFT, 0o644, dir_fd=fd)
    with remove_on_error(draft, dir_fd=fd):
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.replace(draft, leaf, src_dir_fd=fd, dst_dir_fd=fd)
