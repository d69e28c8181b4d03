"""S3Output: a prefix of an S3 bucket that a trial is written to."""

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from rule_core.clock import Clock
from rule_core.logger import get_logger
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.retrying_store import DEADLINE_S, RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.store import S3Store

PART: Final = 8 << 20  # bytes; S3 takes 10,000 parts of an object, of at least 5 MiB
# Required fields of responses; boto3 parses a lost body as a response without fields.
_REQUIRED_FIELDS: Final = {
    "create_multipart_upload": "UploadId",
    "complete_multipart_upload": "ETag",
}
_NAME: Final = "draft"  # metadata key that identifies the object of an upload


class S3Output(RetryingStore):
    """The objects below a prefix, for reading and writing; the bucket must exist.

    Parameters
    ----------
    bucket
        The bucket and prefix.
    clock, deadline_s
        See `RetryingStore`; they also apply to writes.
    part
        The size of the parts in which an object is sent, in bytes.
    """

    def __init__(
        self, bucket: Bucket, clock: Clock, deadline_s: float = DEADLINE_S, part: int = PART
    ) -> None:
        super().__init__(S3Store(bucket), clock, deadline_s)
        self._bucket = bucket
        self._part = part

    def open(self, key: str) -> "S3PendingFile":
        """Start to write an object, without a request; see `TrialOutput`."""
        return S3PendingFile(self._send, key, self._part)

    def remove(self, key: str) -> None:
        """Remove an object; see `TrialOutput`."""
        self._send("delete_object", key)

    def _send(self, verb: str, key: str, **arguments: Any) -> dict[str, Any]:
        """Return the response of S3 to a modifying call.

        Raises
        ------
        OSError
            If the call does not succeed within the deadline.
        """

        def call() -> dict[str, Any]:
            with self._bucket.errors(verb, key):
                response = self._bucket.call(verb, key, **arguments)
            if _REQUIRED_FIELDS.get(verb, verb) not in {verb, *response}:
                raise StorageUnavailableError(key, "the response was truncated", transient=True)
            return response

        try:
            return self.ask(call)
        except (StorageUnavailableError, ObjectNotFoundError) as err:
            reason = getattr(err, "reason", "the parts sent so far are gone")
            raise OSError(f"Cannot write '{self._bucket.address(key)}': {reason}.") from err


class S3PendingFile:
    """An object whose parts stay invisible until it is published; see `PendingFile`.

    Objects up to the size of a part are sent in one request. Only one part is in memory at a time.
    `write` sends parts synchronously: hooks write in a separate thread.

    Parameters
    ----------
    send
        Sends a request to S3 about a key; raises `OSError`.
    key
        The key of the object.
    part
        The size of a part in bytes.
    """

    def __init__(self, send: Callable[..., dict[str, Any]], key: str, part: int) -> None:
        self._send = send
        self._key = key
        self._part = part
        self._buffer = bytearray()
        self._upload = ""
        self._token = uuid4().hex
        self._parts: list[dict[str, Any]] = []

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes; see `PendingFile`."""
        for part in parts:
            remaining = memoryview(part)
            while remaining:
                if len(self._buffer) == self._part:  # and there is more
                    self._send_part()
                room = self._part - len(self._buffer)
                self._buffer += remaining[:room]
                remaining = remaining[room:]

    def _send_part(self) -> None:
        if not self._upload:
            upload = self._send("create_multipart_upload", self._key, Metadata={_NAME: self._token})
            self._upload = upload["UploadId"]
        number = len(self._parts) + 1
        body, self._buffer = self._buffer, bytearray()
        response = self._send(
            "upload_part", self._key, UploadId=self._upload, PartNumber=number, Body=body
        )
        # S3 requires the checksums of the parts to complete the upload.
        sums = {name: text for name, text in response.items() if name.startswith("Checksum")}
        self._parts.append({"PartNumber": number, "ETag": response["ETag"], **sums})

    def publish(self) -> None:
        """Make the object visible; see `PendingFile`."""
        if not self._upload:
            self._send("put_object", self._key, Body=self._buffer)
        else:
            self._send_part()
            self._complete()
            self._upload = ""
        self._buffer = bytearray()

    def _complete(self) -> None:
        parts = {"Parts": self._parts}
        try:
            self._send(
                "complete_multipart_upload", self._key, UploadId=self._upload, MultipartUpload=parts
            )
        except OSError:  # the upload may be complete although the response was lost
            if not self._is_published():
                raise

    def _is_published(self) -> bool:
        try:
            response = self._send("head_object", self._key)
        except OSError:
            return False
        return bool(response.get("Metadata", {}).get(_NAME) == self._token)

    def discard(self) -> None:
        """Abort the upload; see `PendingFile`."""
        upload, self._upload = self._upload, ""
        self._buffer = bytearray()
        if not upload:
            return
        try:
            self._send("abort_multipart_upload", self._key, UploadId=upload)
        except OSError as err:
            get_logger("storage").warning("Parts of %r remain in the bucket. %s", self._key, err)
