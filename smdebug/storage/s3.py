"""S3Store: a trial under a prefix of an S3 bucket."""

from collections.abc import Iterator
from typing import Any, Final

from smdebug.exceptions import SMDebugValueError
from smdebug.storage import aws
from smdebug.storage.protocol import (
    ByteRange,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
)

_ABSENT: Final = frozenset({"NoSuchKey", "404"})
_BEYOND: Final = frozenset({"InvalidRange", "416"})


def parse_s3(uri: str) -> tuple[str, str]:
    """Return bucket and prefix of an address; the prefix is empty or ends with a slash.

    >>> parse_s3("s3://bucket/runs/mnist"), parse_s3("s3://bucket")
    (('bucket', 'runs/mnist/'), ('bucket', ''))
    """
    bucket, _, prefix = uri.strip().partition("://")[2].partition("/")
    if not bucket:
        msg = f"An S3 address must be s3://bucket/prefix, got {uri!r}."
        raise SMDebugValueError(msg)
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""


class S3Store:
    """The objects below a prefix; it only lists and gets.

    Parameters
    ----------
    uri
        ``s3://bucket/prefix``.
    client
        Of S3; by default one of boto3's own chain, made when it is first needed.
    """

    def __init__(self, uri: str, client: Any = None) -> None:
        self._uri = uri.strip()
        self.bucket, self.prefix = parse_s3(uri)
        self._client = client

    @property
    def uri(self) -> str:
        """Return the address as it was given."""
        return self._uri

    @property
    def client(self) -> Any:
        """The client of S3."""
        if self._client is None:
            self._client = aws.client("s3")
        return self._client

    @property
    def costs(self) -> ReadCosts:
        """Return what reading costs here; see `TrialStore`."""
        return ReadCosts(parallel=8, gap=1 << 18)

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys in code-point order; see `TrialStore`."""
        wanted: dict[str, Any] = {"Bucket": self.bucket, "Prefix": self.prefix + prefix}
        if start_after:
            wanted["StartAfter"] = self.prefix + start_after
        try:
            for page in self.client.get_paginator("list_objects_v2").paginate(**wanted):
                for one in page.get("Contents", ()):
                    yield one["Key"][len(self.prefix) :]
        except aws.errors() as err:
            raise StorageUnavailableError(prefix, aws.fault(err).reason) from err

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of an object; see `TrialStore`."""
        wanted: dict[str, Any] = {"Bucket": self.bucket, "Key": self.prefix + key}
        if byte_range is not None:
            start, stop = byte_range
            if stop <= start:
                self._head(key)
                return memoryview(b"")
            wanted["Range"] = f"bytes={start}-{stop - 1}"
        try:
            return memoryview(self.client.get_object(**wanted)["Body"].read()).toreadonly()
        except aws.errors() as err:
            found = aws.fault(err)
            if found.code in _BEYOND:
                return memoryview(b"")
            raise self._error(key, found) from err

    def _head(self, key: str) -> None:
        try:
            self.client.head_object(Bucket=self.bucket, Key=self.prefix + key)
        except aws.errors() as err:
            raise self._error(key, aws.fault(err)) from err

    @staticmethod
    def _error(key: str, found: aws.AwsFault) -> Exception:
        if found.code in _ABSENT:
            return ObjectNotFoundError(key)
        return StorageUnavailableError(key, found.reason)
