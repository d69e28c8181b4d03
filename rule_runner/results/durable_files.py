"""Files that survive crashes and full disks: written whole or line by line, in a locked folder."""

import contextlib
import errno
import fcntl
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self, TypeVar

import msgspec

from rule_core.failures import OnError, remove_on_error
from rule_runner.errors import OutputError
from rule_runner.file_descriptors import FULL, REMEDY
from rule_runner.results.file_names import DEFAULT_OUTPUTS

T = TypeVar("T")

SCRATCH: Final = ".sagemaker-ignore"  # temporary files and locks; SageMaker does not upload it

_FREE_SPACE: Final = " Free some space and start it again."
_REMEDIES: Final = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EROFS: " Choose a folder that this user may write to.",
    errno.ELOOP: " Symbolic links are not followed.",
    **dict.fromkeys(FULL, f" {REMEDY}."),
}


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn every `OSError` about `path` into an `OutputError` of one sentence."""
    try:
        yield
    except OSError as err:
        raise OutputError(f"Cannot write {str(path)!r}: {err.strerror}.{_remedy(err)}") from err
    except ValueError as err:  # a NUL or a lone surrogate in the path
        raise OutputError(f"Cannot write {str(path)!r}: {err}.") from err


def _remedy(err: OSError) -> str:
    if err.errno in {errno.EACCES, errno.EPERM}:
        user = f"Give the folder to user {os.geteuid()} with chown"
        return f" {user}, or choose another folder or user (in a container, --user)."
    return _REMEDIES.get(err.errno or 0, "")


def open_regular(path: Path, flags: int, folder: int | None = None) -> int:
    """Return a file descriptor of the regular file `path`.

    A symbolic link is not followed, and opening a pipe does not block.

    Parameters
    ----------
    folder
        A descriptor of the folder that a relative `path` starts at; None: the working folder.

    Raises
    ------
    OSError
        If it cannot be opened, or is not a regular file.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, 0o644, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file")
    return fd


def read_regular(path: Path) -> bytes:
    """Return the content of the regular file `path`; raises as `open_regular`."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
        return stream.read()


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to `fd`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Closing(ABC):
    """Base class of resources that a ``with`` block closes."""

    @abstractmethod
    def close(self) -> None:
        """Release the resource."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class JsonLines(Closing):
    """A file with one JSON object a line; opening it removes an incomplete last line.

    Parameters
    ----------
    path
        The file; created with the first line if it does not exist.

    Attributes
    ----------
    size
        Bytes in the file.

    Raises
    ------
    OutputError
        If the file cannot be opened, read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._fd: int | None = None
        self._has_durable_name = False
        with output_errors(path), contextlib.suppress(FileNotFoundError):
            self._fd = open_regular(path, os.O_RDWR | os.O_APPEND)
            with OnError(os.close, self._fd):
                self.size = sum(len(line) for line in self._lines())
                os.ftruncate(self._fd, self.size)

    def _lines(self) -> Iterator[bytes]:
        """Yield the complete lines with their line ends."""
        if self._fd is None:
            return
        with open(self._fd, "rb", closefd=False) as stream:
            stream.seek(0)
            for line in stream:
                if line.endswith(b"\n"):
                    yield line

    def read(self, kind: type[T]) -> Iterator[T]:
        """Yield each line, decoded to `kind`.

        Raises
        ------
        OutputError
            If a line is not JSON of that type.
        """
        with output_errors(self.path):
            for line in self._lines():
                try:
                    yield msgspec.json.decode(line, type=kind)
                except msgspec.DecodeError as err:
                    raise OutputError(
                        f"{str(self.path)!r} has an unexpected line, got {line[:80]!r}. "
                        "Choose another folder, or use --overwrite."
                    ) from err

    def append(self, text: str, *, durable: bool = False) -> None:
        """Append the line `text`; with `durable`, return only when it is on disk.

        Raises
        ------
        OutputError
            If it cannot be written; the file is then unchanged.
        """
        line = text.encode() + b"\n"
        with output_errors(self.path):
            if self._fd is None:
                self._fd = open_regular(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            with OnError(self._remove_incomplete_line, self._fd):
                write_all(self._fd, line)
                if durable:
                    os.fsync(self._fd)
                    if not self._has_durable_name:
                        sync_folder(self.path.parent)
                        self._has_durable_name = True
        self.size += len(line)

    def _remove_incomplete_line(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, self.size)

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def write_atomically(path: Path, text: str) -> None:
    """Replace the content of `path` by `text` in one step; a failure keeps the old content.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    scratch = path.parent if path.parent.name == SCRATCH else path.parent / SCRATCH
    temporary = scratch / f"{path.name}.tmp"
    with output_errors(path):
        replace_durably(path, text, temporary)


def replace_durably(path: Path, text: str, temporary: Path) -> None:
    """Write the file `temporary`, then rename it to `path`; on failure, remove it."""
    with remove_on_error(temporary):
        write_durably(temporary, text.encode())
        temporary.replace(path)
    sync_folder(path.parent)


def write_durably(path: Path, data: bytes) -> None:
    """Write the file `path`; its content is on disk when this returns."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files; missing ones are ignored.

    Raises
    ------
    OutputError
        If one cannot be removed.
    """
    for path in paths:
        with output_errors(path):
            path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make the names of the files in folder `path` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(path: Path) -> None:
    """Create the output folder `path`, its parents and its scratch folder where missing.

    Raises
    ------
    OutputError
        If that fails, or one of the two is a link or not a folder.
    """
    for folder in (path, path / SCRATCH):
        with output_errors(folder):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                raise OutputError(
                    f"Output folder {str(folder)!r} is a link or not a folder. Choose another."
                )
            folder.mkdir(parents=True, exist_ok=True)
    _ignore_in_git(path)


def _ignore_in_git(path: Path) -> None:
    """Have git ignore the default folder of outputs if `path` is in it."""
    with contextlib.suppress(OSError, ValueError):
        default = Path.cwd() / DEFAULT_OUTPUTS
        ignored = default / ".gitignore"
        if path.absolute().is_relative_to(default) and not ignored.exists():
            ignored.write_text("*\n", "ascii")


class FolderLock(Closing):
    """An exclusive lock on an output folder, which is created with its parents if missing.

    It is released at the latest when the process ends.

    Raises
    ------
    OutputError
        If the folder cannot be used, or another process, or this one, holds the lock.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / SCRATCH / "lock"
        fd = None
        while fd is None:
            make_folder(folder)
            fd = self._taken()
        self._fd = fd

    def _taken(self) -> int | None:
        """Return the locked file; None if its last holder has just removed it."""
        with output_errors(self._path):
            try:
                fd = open_regular(self._path, os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                return None
            with OnError(os.close, fd):
                self._take(fd)
                if os.fstat(fd).st_nlink:
                    return fd
        os.close(fd)
        return None

    def _take(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            who = f"process {holder}" if holder.isdecimal() else "another process"
            raise OutputError(
                f"Output folder {str(self._folder)!r} is in use by {who}. "
                "Choose another folder, or wait until it ends."
            ) from err
        os.ftruncate(fd, 0)
        write_all(fd, f"{os.getpid()}\n".encode())

    def close(self) -> None:
        """Unlock the folder, and remove what only the lock needs."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._fd)
        remove_scratch(self._folder)


def remove_scratch(folder: Path) -> None:
    """Remove the scratch folder of an output folder if it is empty."""
    with contextlib.suppress(OSError):
        (folder / SCRATCH).rmdir()
