"""Bucket: calls of S3 about the objects below a prefix, and their error messages."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from rule_core.exceptions import SMDebugValueError
from rule_core.storage import aws
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError

READ_TIMEOUT_S: Final = 10.0  # S3 starts to respond long before that, or not at all
# As boto3 accepts; old buckets may have capitals, underscores and up to 255 characters.
_BUCKET_NAME: Final = re.compile(r"[a-zA-Z0-9.\-_]{3,255}")
_ABSENT: Final = frozenset({"NoSuchKey", "404"})
DENIED: Final = frozenset({"AccessDenied", "AllAccessDisabled", "403", "Forbidden"})
_SKEWED: Final = "RequestTimeTooSkewed"
_CLOCKS_DIFFER: Final = "RequestTimeTooSkewed: a clock of the store differs from this machine's"
_LIST: Final = "ListBucket"
_GET: Final = "GetObject"
_PUT: Final = "PutObject"
# The permissions of calls; all other calls need the permission to put objects.
_ACTIONS: Final = {
    "list_objects_v2": _LIST,
    "get_object": _GET,
    "head_object": _GET,
    "delete_object": "DeleteObject",
    "abort_multipart_upload": "AbortMultipartUpload",
}


def parse_s3(uri: str) -> tuple[str, str]:
    """Split an address into bucket and prefix; the prefix is empty or ends with a slash.

    The prefix is not normalized: in S3, ``a//b`` differs from ``a/b``, and ``%20`` from a blank.

    Raises
    ------
    SMDebugValueError
        If the address is invalid.

    >>> parse_s3("s3://bucket/runs/mnist"), parse_s3("s3://bucket")
    (('bucket', 'runs/mnist/'), ('bucket', ''))
    """
    bucket, _, prefix = uri.strip().partition("://")[2].partition("/")
    if not bucket:
        raise SMDebugValueError(f"An S3 address must be s3://bucket/prefix, got {uri!r}.")
    if not _BUCKET_NAME.fullmatch(bucket):
        raise SMDebugValueError(
            "A bucket's name must be 3 to 255 letters, digits, dots, hyphens and underscores, "
            f"got {bucket!r} in {uri!r}."
        )
    if not _can_be_key(prefix):
        raise SMDebugValueError(
            f"An S3 address must be Unicode without '.' and '..' as parts, got {uri!r}."
        )
    return bucket, prefix if not prefix or prefix.endswith("/") else f"{prefix}/"


def _can_be_key(key: str) -> bool:
    """Return whether a key reaches S3 unchanged; HTTP clients resolve ``..``."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return {".", ".."}.isdisjoint(key.split("/"))


class Bucket:
    """The objects below a prefix.

    Parameters
    ----------
    uri
        ``s3://bucket/prefix``.
    client
        A client of S3; by default one with boto3's default configuration, created on first use.
    requester_pays
        Whether this account pays for requests to other accounts' buckets.
    read_timeout
        The read timeout of the default client, in seconds.

    Raises
    ------
    SMDebugValueError
        If the address is invalid.
    """

    def __init__(
        self,
        uri: str,
        client: Any = None,
        *,
        requester_pays: bool = False,
        read_timeout: float = READ_TIMEOUT_S,
    ) -> None:
        self.uri = uri.strip()
        self.name, self.prefix = parse_s3(uri)
        self._client = client
        self._pid = os.getpid()
        self._has_responded = False
        self._read_timeout = read_timeout
        self._always: dict[str, Any] = {"RequestPayer": "requester"} if requester_pays else {}

    @property
    def client(self) -> Any:
        """The client of S3; a forked process gets its own.

        Raises
        ------
        StorageUnavailableError
            If boto3 cannot create one from its configuration.
        """
        if self._client is None or os.getpid() != self._pid:
            self._client, self._pid = self._new_client(), os.getpid()
        return self._client

    def _new_client(self) -> Any:
        timeout = self._read_timeout
        connect = min(timeout, aws.CONNECT_TIMEOUT_S)
        try:
            return aws.client("s3", connect_timeout=connect, read_timeout=timeout)
        except aws.errors() as err:
            raise StorageUnavailableError(self.uri, aws.fault(err).reason) from err

    @property
    def endpoint(self) -> str:
        """The address of the service."""
        return str(self.client.meta.endpoint_url)

    def address(self, key: str) -> str:
        """Return the address of a key below the prefix."""
        return f"s3://{self.name}/{self.prefix}{key}"

    def call(self, verb: str, key: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Return the response of S3 to a call.

        Parameters
        ----------
        verb
            The client's method.
        key
            Relative to the prefix, if the call is about an object.
        **arguments
            Its other arguments.

        Raises
        ------
        Exception
            One of `aws.errors`.
        StorageUnavailableError
            If S3 does not support this key, or there is no client.
        """
        if key is not None:
            if not _can_be_key(key):
                raise StorageUnavailableError(key, "S3 does not support this key")
            arguments["Key"] = self.prefix + key
        response: dict[str, Any] = getattr(self.client, verb)(
            Bucket=self.name, **arguments, **self._always
        )
        self._has_responded = True
        return response

    @contextmanager
    def errors(self, verb: str, key: str) -> Iterator[None]:
        """Turn a fault of a call inside the block into the exception that `error` returns."""
        try:
            yield
        except aws.errors() as err:
            raise self.error(verb, key, aws.fault(err)) from err

    def error(
        self, verb: str, key: str, fault: aws.AwsFault
    ) -> ObjectNotFoundError | StorageUnavailableError:
        """Translate a fault of a call into an exception to raise."""
        if fault.code in _ABSENT:
            return ObjectNotFoundError(key)
        skewed = fault.code == _SKEWED and self._has_responded  # by some of the store's machines
        return StorageUnavailableError(
            key,
            _CLOCKS_DIFFER if skewed else self._reason(verb, fault),
            transient=fault.transient or skewed,
            retry_after=fault.retry_after,
        )

    def _reason(self, verb: str, fault: aws.AwsFault) -> str:
        if fault.code == "NoSuchBucket":
            return f"bucket {self.name!r} does not exist. Check the address, and AWS_ENDPOINT_URL"
        if fault.code == "InvalidObjectState":
            return f"{fault.code}: the object is in an archive. Restore it first"
        if fault.code in DENIED:
            return self._denied(verb, fault)
        return fault.reason

    def _denied(self, verb: str, fault: aws.AwsFault) -> str:
        if "kms:" in fault.reason:
            needed = "kms:Decrypt and kms:GenerateDataKey on the key that encrypts the bucket"
            return f"{fault.code}. The role needs {needed}"
        action = _ACTIONS.get(verb, _PUT)
        if action == _LIST:
            return f"{fault.code}. The role needs s3:ListBucket on {self.name}"
        text = f"{fault.code}. The role needs s3:{action} on {self.name}/{self.prefix}*"
        if action == _GET:
            text += ", and s3:ListBucket, without which an absent object is denied too"
        return text
