"""S3Store: a trial under a prefix of an S3 bucket."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

from smdebug.storage import aws
from smdebug.storage.protocol import ByteRange, ReadCosts, StorageUnavailableError
from smdebug.storage.s3_bucket import Bucket, parse_s3

__all__ = ["Fetched", "S3Store", "parse_s3"]

PARALLEL: Final = 8
GAP: Final = 1 << 18  # bytes: about what a connection carries while a request would travel
_LIST: Final = "list_objects_v2"
_GET: Final = "get_object"
_BEYOND: Final = frozenset({"InvalidRange", "416"})
_UNCHANGED: Final = frozenset({"NotModified", "304"})
_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_NO_LISTING: Final = "the answer is no listing of S3. Check AWS_ENDPOINT_URL"
_CUT: Final = "the answer was cut short"


class Fetched(NamedTuple):
    """Bytes of an object, and the tag of the content that they are of."""

    data: memoryview
    etag: str


class S3Store:
    """The objects below a prefix; it only lists and gets, and tries each call once.

    Parameters
    ----------
    bucket
        Bucket and prefix, or their address.
    """

    def __init__(self, bucket: Bucket | str) -> None:
        self.bucket = Bucket(bucket) if isinstance(bucket, str) else bucket

    @property
    def uri(self) -> str:
        """Return the address as it was given."""
        return self.bucket.uri

    @property
    def costs(self) -> ReadCosts:
        """Return what reading costs here; see `TrialStore`."""
        return ReadCosts(parallel=PARALLEL, gap=GAP)

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys in code-point order; see `TrialStore`.

        The empty objects that consoles put in the place of folders are left out.
        """
        root = len(self.bucket.prefix)
        wanted: dict[str, Any] = {"Prefix": self.bucket.prefix + prefix}
        if start_after:
            wanted["StartAfter"] = self.bucket.prefix + start_after
        while True:
            page = self._page(prefix, wanted)
            for one in page.get("Contents", ()):
                key = one["Key"][root:]
                if key > start_after and not key.endswith("/"):
                    yield key
            if not page.get("IsTruncated"):
                return
            wanted["ContinuationToken"] = page["NextContinuationToken"]

    def _page(self, prefix: str, wanted: dict[str, Any]) -> dict[str, Any]:
        place = self.bucket.address(prefix)
        try:
            page = self.bucket.call(_LIST, **wanted)
        except aws.errors() as err:
            raise self.bucket.error(_LIST, place, aws.fault(err)) from err
        if "Name" not in page:  # boto3 takes a body that was lost for a listing of nothing
            raise StorageUnavailableError(place, _NO_LISTING, transient=True)
        return page

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of an object; see `TrialStore`."""
        fetched = self.fetch(key, byte_range)
        return fetched.data if fetched is not None else memoryview(b"")

    def fetch(
        self, key: str, byte_range: ByteRange | None = None, *, unless: str = ""
    ) -> Fetched | None:
        """Return bytes of an object and their tag, of one and the same content.

        Parameters
        ----------
        key, byte_range
            See `read`.
        unless
            A tag; if the object still has it, the answer is None.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            See `read`.
        """
        start, stop = byte_range or ByteRange(0, 0)
        wanted: dict[str, Any] = {"IfNoneMatch": unless} if unless else {}
        if byte_range is not None:  # of no bytes at all: one, to hear whether the object is there
            wanted["Range"] = f"bytes={start}-{max(stop - 1, start)}"
        try:
            answer = self.bucket.call(_GET, key, **wanted)
            with closing(answer["Body"]) as body:
                data = memoryview(body.read())  # whole: boto3 counts
        except aws.errors() as err:
            found = aws.fault(err)
            if found.code in _UNCHANGED and unless:
                return None
            if found.code in _BEYOND:
                return Fetched(memoryview(b""), "")
            raise self.bucket.error(_GET, key, found) from err
        if byte_range is not None:
            data = _within(data, answer.get("ContentRange"), byte_range, key)
        return Fetched(data, str(answer.get("ETag", "")))


def _within(data: memoryview, content_range: str | None, wanted: ByteRange, key: str) -> memoryview:
    """Return the bytes that were asked for out of those that were answered.

    Raises
    ------
    StorageUnavailableError
        If they are not all there.
    """
    first, total = 0, len(data)  # a server that knows no ranges gives all
    if content_range is not None:
        found = _RANGE.fullmatch(content_range)
        if found is None:
            reason = f"S3 answered with a range that is none, got {content_range!r}"
            raise StorageUnavailableError(key, reason)
        first, total = int(found[1]), int(found[3])
    start, stop = wanted.start - first, min(wanted.stop, total) - first
    if start < 0 or stop > len(data):
        raise StorageUnavailableError(key, _CUT, transient=True)
    return data[start : max(stop, start)]
