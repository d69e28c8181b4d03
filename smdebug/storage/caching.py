"""CachingStore: reads of S3 what this machine does not hold already."""

import hashlib
from collections.abc import Iterator

from smdebug.storage.disk_cache import DiskCache, Kept
from smdebug.storage.protocol import ByteRange, ReadCosts
from smdebug.storage.s3 import S3Store


class CachingStore:
    """A store in S3, and the bytes that were read of it before.

    Each read asks S3 whether the object is still the one that the bytes are of, so that one that
    was replaced, removed or forbidden is never served: a request, but no bytes.
    """

    def __init__(self, store: S3Store, cache: DiskCache) -> None:
        self.store = store
        self.cache = cache

    @property
    def uri(self) -> str:
        """Return the store's root."""
        return self.store.uri

    @property
    def costs(self) -> ReadCosts:
        """Return what reading costs in the store."""
        return self.store.costs

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys as the store does; see `TrialStore`."""
        return self.store.list_keys(prefix, start_after=start_after)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of an object; see `TrialStore`."""
        if byte_range is not None and byte_range.stop <= byte_range.start:
            return self.store.read(key, byte_range)
        name = self._name(key, byte_range)
        kept = self.cache.get(name)
        fetched = self.store.fetch(key, byte_range, unless=kept.etag if kept else "")
        if fetched is None:  # then there was a tag to compare with
            return memoryview(kept.data if kept else b"")
        if fetched.etag:
            self.cache.put(name, Kept(fetched.etag, fetched.data))
        return fetched.data

    def _name(self, key: str, byte_range: ByteRange | None) -> str:
        """Return the name of some bytes, the same in all processes."""
        bucket = self.store.bucket
        parts = (bucket.endpoint, bucket.name, bucket.prefix + key, byte_range and [*byte_range])
        return hashlib.sha256(repr(parts).encode()).hexdigest()
