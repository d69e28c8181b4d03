"""DiskCache: bytes by name in a folder of this machine, shared by processes, bounded."""

import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

import msgspec

from smdebug.core.logger import get_logger
from smdebug.exceptions import SMDebugValueError

FOLDER: Final = "rule-runner-s3"  # of our own in the one that is given: it is private
SHARES: Final = 16


class Kept(NamedTuple):
    """Some bytes, and the tag of the content that they are of."""

    etag: str
    data: memoryview


class _Head(msgspec.Struct):
    """The first line of a file, about what follows it."""

    etag: str
    length: int
    crc32: int


class _File(NamedTuple):
    used: float
    length: int
    path: str


class DiskCache:
    """Keeps bytes, the most recently used ones, of all processes that are given the same folder.

    A process keeps to the bound by itself. Several pass it by a sixteenth each at most, for so
    much is written between two looks at the folder. What is larger than that is not kept. Nothing
    depends on the cache: what it cannot write is not kept, and what is damaged is removed.

    Parameters
    ----------
    folder
        A folder below it is made, which nobody else may read.
    max_bytes
        Of all files together.

    Raises
    ------
    SMDebugValueError
        If others may write to the folder, or it cannot be made.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder / FOLDER
        self.max_bytes = max_bytes
        self._share = max_bytes // SHARES
        self._room = 0
        self._lock = Lock()
        self._said = False
        try:
            self.folder.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except OSError as err:
            msg = f"The cache folder '{folder}' cannot be made: {err.strerror}."
            raise SMDebugValueError(msg) from err
        private = not stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
        if not (stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and private):
            msg = (
                f"The cache folder '{self.folder}' must belong to this user alone, "
                f"got mode {stat.filemode(found.st_mode)}. Remove it, or give another."
            )
            raise SMDebugValueError(msg)

    def get(self, name: str) -> Kept | None:
        """Return what was kept under a name, or None."""
        path = self.folder / name
        try:
            content = path.read_bytes()
        except OSError:
            return None
        kept = _parsed(content)
        with suppress(OSError):
            if kept is None:
                path.unlink(missing_ok=True)
            else:
                os.utime(path)
        return kept

    def put(self, name: str, kept: Kept) -> None:
        """Keep bytes under a name, in the place of what may be there."""
        head = _Head(kept.etag, len(kept.data), zlib.crc32(kept.data))
        line = msgspec.json.encode(head) + b"\n"
        if len(line) + len(kept.data) > self._share:
            return
        try:
            self._make_room(len(line) + len(kept.data))
            self._write(self.folder / name, line, kept.data)
        except OSError as err:
            if not self._said:
                self._said = True
                get_logger("storage").warning("The cache is not written. %s", err)

    def _write(self, path: Path, *parts: bytes | memoryview) -> None:
        """Write a file, whole or not at all."""
        number, draft = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(number, "wb") as file:
                file.writelines(parts)
            os.replace(draft, path)  # noqa: PTH105 - mkstemp gives text
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)  # noqa: PTH108 - likewise
            raise

    def _make_room(self, nbytes: int) -> None:
        """Take room for a file; look at the folder if what is known to be free is used up."""
        with self._lock:
            if self._room < nbytes:
                self._evict()
                self._room = self._share
            self._room -= nbytes

    def _evict(self) -> None:
        """Remove what was not used for longest, until a share is free."""
        files = sorted(self._files())
        excess = sum(file.length for file in files) - (self.max_bytes - self._share)
        for file in files:
            if excess <= 0:
                return
            with suppress(FileNotFoundError):
                os.unlink(file.path)  # noqa: PTH108 - scandir gives text
            excess -= file.length

    def _files(self) -> Iterator[_File]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process was quicker
                    found = entry.stat(follow_symlinks=False)
                    yield _File(found.st_mtime, found.st_size, entry.path)


def _parsed(content: bytes) -> Kept | None:
    """Return what a file holds, or None if it is damaged."""
    line, _, _ = content.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=_Head)
    except msgspec.DecodeError:
        return None
    data = memoryview(content)[len(line) + 1 :]
    if (len(data), zlib.crc32(data)) != (head.length, head.crc32):
        return None
    return Kept(head.etag, data)
