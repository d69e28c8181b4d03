"""CachingStore and DiskCache: reads from S3 through a bounded cache in a local folder."""

import hashlib
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

from rule_core.exceptions import SMDebugValueError
from rule_core.failures import remove_on_error
from rule_core.logger import get_logger
from rule_core.storage.base import ByteRange
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.store import S3Store

FOLDER: Final = "rule-runner-s3"  # a private subfolder of the given folder
SHARES: Final = 16


class CachedObject(NamedTuple):
    """Cached bytes and the ETag of their content."""

    etag: str
    data: memoryview


class _CacheHeader(msgspec.Struct):
    """The first line of a cache file, which describes the rest."""

    etag: str
    length: int
    crc32: int


class _File(NamedTuple):
    used: float
    length: int
    path: str


class DiskCache:
    """An LRU cache for all processes with the same folder.

    A single process respects the bound. Several processes may exceed it by a sixteenth each, the
    amount written between two scans of the folder. Larger content is not cached. Write errors are
    ignored, and damaged files are removed.

    Parameters
    ----------
    folder
        The parent folder; the cache creates a private folder in it.
    max_bytes
        The bound on the total size of the files.

    Raises
    ------
    SMDebugValueError
        If other users can access the folder, or it cannot be created.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder / FOLDER
        self.max_bytes = max_bytes
        self._share = max_bytes // SHARES
        self._room = 0
        self._lock = Lock()
        self._has_warned = False
        try:
            self.folder.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
            status = self.folder.lstat()
        except OSError as err:
            raise SMDebugValueError(
                f"The cache folder '{folder}' cannot be created: {err.strerror}."
            ) from err
        private = not stat.S_IMODE(status.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
        if not (stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and private):
            raise SMDebugValueError(
                f"The cache folder '{self.folder}' must belong to this user alone, "
                f"got mode {stat.filemode(status.st_mode)}. Remove it, or choose another folder."
            )

    def get(self, name: str) -> CachedObject | None:
        """Return the cached object with a name, or None."""
        path = self.folder / name
        try:
            content = path.read_bytes()
        except OSError:
            return None
        cached = _parse(content)
        with suppress(OSError):
            if cached is None:
                path.unlink(missing_ok=True)
            else:
                os.utime(path)
        return cached

    def put(self, name: str, cached: CachedObject) -> None:
        """Cache an object under a name; replaces an existing one."""
        head = _CacheHeader(cached.etag, len(cached.data), zlib.crc32(cached.data))
        line = msgspec.json.encode(head) + b"\n"
        if len(line) + len(cached.data) > self._share:
            return
        try:
            self._make_room(len(line) + len(cached.data))
            self._write(self.folder / name, line, cached.data)
        except OSError as err:
            if not self._has_warned:
                self._has_warned = True
                get_logger("storage").warning("The cache is not written. %s", err)

    def _write(self, path: Path, *parts: bytes | memoryview) -> None:
        """Write a file atomically."""
        number, draft = tempfile.mkstemp(dir=self.folder)
        with remove_on_error(draft):
            with os.fdopen(number, "wb") as file:
                file.writelines(parts)
            os.replace(draft, path)  # noqa: PTH105 - mkstemp returns str

    def _make_room(self, nbytes: int) -> None:
        """Reserve room for a file; scan the folder if the known free room is used up."""
        with self._lock:
            if self._room < nbytes:
                self._evict()
                self._room = self._share
            self._room -= nbytes

    def _evict(self) -> None:
        """Remove the least recently used files until a share is free."""
        files = sorted(self._files())
        excess = sum(file.length for file in files) - (self.max_bytes - self._share)
        for file in files:
            if excess <= 0:
                return
            with suppress(FileNotFoundError):
                os.unlink(file.path)  # noqa: PTH108 - scandir returns str
            excess -= file.length

    def _files(self) -> Iterator[_File]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # removed by another process
                    status = entry.stat(follow_symlinks=False)
                    yield _File(status.st_mtime, status.st_size, entry.path)


def _parse(content: bytes) -> CachedObject | None:
    """Parse a cache file, or return None if it is damaged."""
    line, _, _ = content.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=_CacheHeader)
    except msgspec.DecodeError:
        return None
    data = memoryview(content)[len(line) + 1 :]
    if (len(data), zlib.crc32(data)) != (head.length, head.crc32):
        return None
    return CachedObject(head.etag, data)


class CachingStore(S3Store):
    """A store in S3 with a disk cache.

    Each read checks with S3 that the cached bytes are still current, with a request but no
    download. Replaced, removed or forbidden objects are therefore never served from the cache.
    """

    def __init__(self, bucket: Bucket, cache: DiskCache) -> None:
        super().__init__(bucket)
        self.cache = cache

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of an object; see `TrialStore`."""
        if byte_range is not None and byte_range.stop <= byte_range.start:
            return super().read(key, byte_range)
        name = self._name(key, byte_range)
        cached = self.cache.get(name)
        fetched = self.fetch(key, byte_range, unless=cached.etag if cached else "")
        if fetched is None:  # not modified
            return memoryview(cached.data if cached else b"")
        if fetched.etag:
            self.cache.put(name, CachedObject(fetched.etag, fetched.data))
        return fetched.data

    def _name(self, key: str, byte_range: ByteRange | None) -> str:
        """Return the cache name of a byte range, equal in all processes."""
        bucket = self.bucket
        parts = (bucket.endpoint, bucket.name, bucket.prefix + key, byte_range and [*byte_range])
        return hashlib.sha256(repr(parts).encode()).hexdigest()
