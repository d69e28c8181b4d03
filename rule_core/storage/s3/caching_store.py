"""CachingStore: reads from S3 through a disk cache."""

import hashlib
from collections.abc import Iterator

from rule_core.storage.base import ByteRange, FileStatus
from rule_core.storage.s3.disk_cache import CachedObject, DiskCache
from rule_core.storage.s3.store import S3Store


class CachingStore:
    """A store in S3 with a disk cache.

    Each read checks with S3 that the cached bytes are still current, with a request but no
    download. Replaced, removed or forbidden objects are therefore never served from the cache.
    """

    def __init__(self, store: S3Store, cache: DiskCache) -> None:
        self.store = store
        self.cache = cache
        self.uri = store.uri
        self.costs = store.costs

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys as the store does; see `TrialStore`."""
        return self.store.list_keys(prefix, start_after=start_after)

    def list_folder(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder as the store does; see `ListedStore`."""
        return self.store.list_folder(folder)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of an object; see `TrialStore`."""
        if byte_range is not None and byte_range.stop <= byte_range.start:
            return self.store.read(key, byte_range)
        name = self._name(key, byte_range)
        cached = self.cache.get(name)
        fetched = self.store.fetch(key, byte_range, unless=cached.etag if cached else "")
        if fetched is None:  # not modified
            return memoryview(cached.data if cached else b"")
        if fetched.etag:
            self.cache.put(name, CachedObject(fetched.etag, fetched.data))
        return fetched.data

    def status(self, key: str) -> FileStatus:
        """Return the size and time of an object, never cached; see `TrialStore`."""
        return self.store.status(key)

    def _name(self, key: str, byte_range: ByteRange | None) -> str:
        """Return the cache name of a byte range, equal in all processes."""
        bucket = self.store.bucket
        parts = (bucket.endpoint, bucket.name, bucket.prefix + key, byte_range and [*byte_range])
        return hashlib.sha256(repr(parts).encode()).hexdigest()
