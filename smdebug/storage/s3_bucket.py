"""Bucket: calls of S3 about the objects below one prefix, and what S3 answers, in words."""

import os
import re
from typing import Any, Final

from smdebug.exceptions import SMDebugValueError
from smdebug.storage import aws
from smdebug.storage.protocol import ObjectNotFoundError, StorageUnavailableError

READ_TIMEOUT_S: Final = 10.0  # S3 begins to answer long before that, or not at all
# What boto3 accepts; buckets of old have capitals, underscores and up to 255 characters.
_BUCKET_NAME: Final = re.compile(r"[a-zA-Z0-9.\-_]{3,255}")
_ABSENT: Final = frozenset({"NoSuchKey", "404"})
DENIED: Final = frozenset({"AccessDenied", "AllAccessDisabled", "403", "Forbidden"})
_LIST: Final = "ListBucket"
_GET: Final = "GetObject"
_PUT: Final = "PutObject"
# What a role must be allowed for a call; all that is not here is part of putting an object.
_ACTIONS: Final = {
    "list_objects_v2": _LIST,
    "get_object": _GET,
    "head_object": _GET,
    "delete_object": "DeleteObject",
    "abort_multipart_upload": "AbortMultipartUpload",
}


def parse_s3(uri: str) -> tuple[str, str]:
    """Return bucket and prefix of an address; the prefix is empty or ends with a slash.

    Nothing else is changed: to S3, ``a//b`` is another place than ``a/b``, and ``%20`` no blank.

    Raises
    ------
    SMDebugValueError
        If S3 can have no such address.

    >>> parse_s3("s3://bucket/runs/mnist"), parse_s3("s3://bucket")
    (('bucket', 'runs/mnist/'), ('bucket', ''))
    """
    bucket, _, prefix = uri.strip().partition("://")[2].partition("/")
    if not bucket:
        msg = f"An S3 address must be s3://bucket/prefix, got {uri!r}."
        raise SMDebugValueError(msg)
    if not _BUCKET_NAME.fullmatch(bucket):
        msg = (
            "A bucket's name must be 3 to 255 letters, digits, dots, hyphens and underscores, "
            f"got {bucket!r} in {uri!r}."
        )
        raise SMDebugValueError(msg)
    if not _can_be_key(prefix):
        msg = f"An S3 address must be Unicode without '.' and '..' as parts, got {uri!r}."
        raise SMDebugValueError(msg)
    return bucket, prefix if not prefix or prefix.endswith("/") else f"{prefix}/"


def _can_be_key(key: str) -> bool:
    """Say whether a key reaches S3 as it is: HTTP clients take ``..`` for a way up."""
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
        Of S3; by default one of boto3's own chain, made when it is first needed.
    requester_pays
        Whether this account pays for what it asks of another's bucket.
    read_timeout
        Seconds without a byte after which an answer is given up; for the default client.

    Raises
    ------
    SMDebugValueError
        If S3 can have no such address.
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
        self._read_timeout = read_timeout
        self._always: dict[str, Any] = {"RequestPayer": "requester"} if requester_pays else {}

    @property
    def client(self) -> Any:
        """The client of S3; a process that was forked off gets its own connections.

        Raises
        ------
        StorageUnavailableError
            If boto3 makes none of its configuration.
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
        """The address of the service that the client asks."""
        return str(self.client.meta.endpoint_url)

    def address(self, key: str) -> str:
        """Return the address of a key below the prefix."""
        return f"s3://{self.name}/{self.prefix}{key}"

    def call(self, verb: str, key: str | None = None, **wanted: Any) -> dict[str, Any]:
        """Return what S3 answers.

        Parameters
        ----------
        verb
            The client's method.
        key
            Relative to the prefix, if the call is about an object.
        **wanted
            Its other arguments.

        Raises
        ------
        Exception
            One of `aws.errors`.
        StorageUnavailableError
            If S3 can have no such key, or there is no client.
        """
        if key is not None:
            if not _can_be_key(key):
                raise StorageUnavailableError(key, "S3 can have no such key")
            wanted["Key"] = self.prefix + key
        answer: dict[str, Any] = getattr(self.client, verb)(
            Bucket=self.name, **wanted, **self._always
        )
        return answer

    def error(
        self, verb: str, key: str, found: aws.AwsFault
    ) -> ObjectNotFoundError | StorageUnavailableError:
        """Return what is raised for what went wrong with a call."""
        if found.code in _ABSENT:
            return ObjectNotFoundError(key)
        return StorageUnavailableError(key, self._reason(verb, found), transient=found.transient)

    def _reason(self, verb: str, found: aws.AwsFault) -> str:
        if found.code == "NoSuchBucket":
            return f"there is no bucket {self.name!r}. Check the address, and AWS_ENDPOINT_URL"
        if found.code == "InvalidObjectState":
            return f"{found.code}: the object is in an archive. Restore it first"
        if found.code in DENIED:
            return self._denied(verb, found)
        return found.reason

    def _denied(self, verb: str, found: aws.AwsFault) -> str:
        if "kms:" in found.reason:
            needed = "kms:Decrypt and kms:GenerateDataKey on the key that encrypts the bucket"
            return f"{found.code}. The role needs {needed}"
        action = _ACTIONS.get(verb, _PUT)
        if action == _LIST:
            return f"{found.code}. The role needs s3:ListBucket on {self.name}"
        text = f"{found.code}. The role needs s3:{action} on {self.name}/{self.prefix}*"
        if action == _GET:
            text += ", and s3:ListBucket, without which an absent object is denied too"
        return text
