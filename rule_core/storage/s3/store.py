"""S3Store: a trial under a prefix of an S3 bucket."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

from rule_core.storage import aws
from rule_core.storage.base import ByteRange, FileStatus, ReadCosts, StorageUnavailableError
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.size_limit import check_file_size

PARALLEL: Final = 8
GAP: Final = 1 << 18  # bytes: about the transfer during the latency of a request
_LIST: Final = "list_objects_v2"
_GET: Final = "get_object"
_HEAD: Final = "head_object"
_BEYOND: Final = frozenset({"InvalidRange", "416"})
_UNCHANGED: Final = frozenset({"NotModified", "304"})
_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_ERROR: Final = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<Error\b.*?<Code>([\w.]+)</Code>", re.DOTALL)
LONGEST_ERROR: Final = 1 << 12  # bytes, up to the code
_NO_LISTING: Final = "the response is not a listing of S3. Check AWS_ENDPOINT_URL"
_TRUNCATED: Final = "the response was truncated"


class ObjectBytes(NamedTuple):
    """Bytes of an object and the ETag of its content."""

    data: memoryview
    etag: str


class S3Store:
    """The objects below a prefix; read-only, with a single attempt for each call.

    Parameters
    ----------
    bucket
        The bucket and prefix, or their address.
    """

    costs = ReadCosts(parallel=PARALLEL, gap=GAP)

    def __init__(self, bucket: Bucket | str) -> None:
        self.bucket = Bucket(bucket) if isinstance(bucket, str) else bucket
        self.uri = self.bucket.uri

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys in code-point order; see `TrialStore`.

        Empty objects that consoles create for folders are omitted.
        """
        root = len(self.bucket.prefix)
        after = {"StartAfter": self.bucket.prefix + start_after} if start_after else {}
        for page in self._pages(prefix, after):
            for item in page.get("Contents", ()):
                key = item["Key"][root:]
                if key > start_after and not key.endswith("/"):
                    yield key

    def times(self) -> Iterator[float]:
        """Yield when each object was written, in seconds since the epoch.

        Raises
        ------
        StorageUnavailableError
            If the store fails.
        """
        for page in self._pages("", {}):
            for item in page.get("Contents", ()):
                yield item["LastModified"].timestamp()

    def list_folder(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder; names of folders end with a slash, as does `folder`.

        Raises
        ------
        StorageUnavailableError
            If the store fails.
        """
        root = len(self.bucket.prefix + folder)
        for page in self._pages(folder, {"Delimiter": "/"}):
            for item in page.get("CommonPrefixes", ()):
                yield item["Prefix"][root:]
            for item in page.get("Contents", ()):
                if not item["Key"].endswith("/"):
                    yield item["Key"][root:]

    def _pages(self, prefix: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
        arguments = {"Prefix": self.bucket.prefix + prefix, **arguments}
        while True:
            page = self._page(prefix, arguments)
            yield page
            if not page.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def _page(self, prefix: str, arguments: dict[str, Any]) -> dict[str, Any]:
        address = self.bucket.address(prefix)
        with self.bucket.errors(_LIST, address):
            page = self.bucket.call(_LIST, **arguments)
        if "Name" not in page:  # boto3 parses a lost body as an empty listing
            raise StorageUnavailableError(address, _NO_LISTING, transient=True)
        return page

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of an object; see `TrialStore`."""
        fetched = self.fetch(key, byte_range)
        return fetched.data if fetched is not None else memoryview(b"")

    def status(self, key: str) -> FileStatus:
        """Return the size and time of an object; see `TrialStore`."""
        with self.bucket.errors(_HEAD, key):
            response = self.bucket.call(_HEAD, key)
        return FileStatus(response["ContentLength"], response["LastModified"].timestamp())

    def fetch(
        self, key: str, byte_range: ByteRange | None = None, *, unless: str = ""
    ) -> ObjectBytes | None:
        """Return bytes of an object and the ETag of the same content.

        Parameters
        ----------
        key, byte_range
            See `read`.
        unless
            An ETag; returns None if the object still has it.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            See `read`.
        """
        start, stop = byte_range or ByteRange(0, 0)
        arguments: dict[str, Any] = {"IfNoneMatch": unless} if unless else {}
        if byte_range is not None:  # an empty range requests one byte, to check existence
            arguments["Range"] = f"bytes={start}-{max(stop - 1, start)}"
        try:
            response = self.bucket.call(_GET, key, **arguments)
            with closing(response["Body"]) as body:
                if byte_range is None:
                    check_file_size(key, response.get("ContentLength", 0))
                data = memoryview(body.read())  # boto3 checks the length of a complete read
        except aws.errors() as err:
            fault = aws.fault(err)
            if fault.code in _UNCHANGED and unless:
                return None
            if fault.code in _BEYOND:
                return ObjectBytes(memoryview(b""), "")
            raise self.bucket.error(_GET, key, fault) from err
        error = _ERROR.match(data[:LONGEST_ERROR]) if "ETag" not in response else None
        if error is not None:  # some stores fail after sending status 200
            code = error[1].decode()
            raise StorageUnavailableError(key, f"{code}, in place of the object", transient=True)
        if byte_range is not None:
            data = _within(data, response.get("ContentRange"), byte_range, key)
        return ObjectBytes(data, str(response.get("ETag", "")))


def _within(
    data: memoryview, content_range: str | None, byte_range: ByteRange, key: str
) -> memoryview:
    """Return the requested bytes from those of the response.

    Raises
    ------
    StorageUnavailableError
        If the response does not contain all of them.
    """
    first, total = 0, len(data)  # a server without range support returns everything
    if content_range is not None:
        match = _RANGE.fullmatch(content_range)
        if match is None:
            reason = f"S3 returned an invalid range, got {content_range!r}"
            raise StorageUnavailableError(key, reason)
        first, total = int(match[1]), int(match[3])
    start, stop = byte_range.start - first, min(byte_range.stop, total) - first
    if start < 0 or stop > len(data):
        raise StorageUnavailableError(key, _TRUNCATED, transient=True)
    return data[start : max(stop, start)]
