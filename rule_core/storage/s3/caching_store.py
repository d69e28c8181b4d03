"""CachingStore: reads from S3 through a disk cache."""

import hashlib

from rule_core.storage.base import ByteRange
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.disk_cache import CachedObject, DiskCache
from rule_core.storage.s3.store import S3Store


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
