"""S3Output: a prefix of an S3 bucket that a trial is written to."""

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from smdebug.core.clock import Clock
from smdebug.core.logger import get_logger
from smdebug.storage import aws
from smdebug.storage.protocol import ObjectNotFoundError, StorageUnavailableError
from smdebug.storage.retrying import DEADLINE_S, RetryingStore
from smdebug.storage.s3 import S3Store
from smdebug.storage.s3_bucket import Bucket

PART: Final = 8 << 20  # bytes; S3 takes 10,000 parts of an object, of at least 5 MiB
# What answers say; boto3 takes a body that was lost for one that says nothing.
_SAYS: Final = {"create_multipart_upload": "UploadId", "complete_multipart_upload": "ETag"}
_NAME: Final = "draft"  # of the metadata that tells an object of several parts from all others


class S3Output(RetryingStore):
    """The objects below a prefix, to be read and written; the bucket must be there.

    Parameters
    ----------
    bucket
        Bucket and prefix.
    clock, deadline_s
        See `RetryingStore`; they hold for writing too.
    part
        Bytes that a draft holds back, and sends at once.
    """

    def __init__(
        self, bucket: Bucket, clock: Clock, deadline_s: float = DEADLINE_S, part: int = PART
    ) -> None:
        super().__init__(S3Store(bucket), clock, deadline_s)
        self._bucket = bucket
        self._part = part

    def open(self, key: str) -> "S3Draft":
        """Begin an object, without asking S3 for anything; see `TrialOutput`."""
        return S3Draft(self._send, key, self._part)

    def remove(self, key: str) -> None:
        """Remove an object; see `TrialOutput`."""
        self._send("delete_object", key)

    def _send(self, verb: str, key: str, **wanted: Any) -> dict[str, Any]:
        """Return what S3 answers to a call that changes something.

        Raises
        ------
        OSError
            If S3 does not do it, within the deadline.
        """

        def call() -> dict[str, Any]:
            try:
                answer = self._bucket.call(verb, key, **wanted)
            except aws.errors() as err:
                raise self._bucket.error(verb, key, aws.fault(err)) from err
            if _SAYS.get(verb, verb) not in {verb, *answer}:
                raise StorageUnavailableError(key, "the answer was cut short", transient=True)
            return answer

        try:
            return self.ask(call)
        except (StorageUnavailableError, ObjectNotFoundError) as err:
            reason = getattr(err, "reason", "what was sent of it is gone")
            msg = f"Cannot write '{self._bucket.address(key)}': {reason}."
            raise OSError(msg) from err


class S3Draft:
    """An object whose parts S3 holds back until it is whole; see `Draft`.

    What is no larger than a part is sent at once. One part is in memory at a time, and sent by
    whoever writes: hooks write on a thread of their own.

    Parameters
    ----------
    send
        Makes a call of S3 about a key; raises `OSError`.
    key
        The object's.
    part
        Bytes of a part.
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
        """Append bytes; see `Draft`."""
        for part in parts:
            rest = memoryview(part)
            while rest:
                if len(self._buffer) == self._part:  # and there is more
                    self._send_part()
                taken = rest[: self._part - len(self._buffer)]
                self._buffer += taken
                rest = rest[len(taken) :]

    def _send_part(self) -> None:
        if not self._upload:
            begun = self._send("create_multipart_upload", self._key, Metadata={_NAME: self._token})
            self._upload = begun["UploadId"]
        number = len(self._parts) + 1
        body, self._buffer = self._buffer, bytearray()
        answer = self._send(
            "upload_part", self._key, UploadId=self._upload, PartNumber=number, Body=body
        )
        # S3 wants the checksums back that it was sent.
        sums = {name: text for name, text in answer.items() if name.startswith("Checksum")}
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"], **sums})

    def publish(self) -> None:
        """Have S3 make the object visible; see `Draft`."""
        if not self._upload:
            self._send("put_object", self._key, Body=self._buffer)
        else:
            self._send_part()
            self._complete()
            self._upload = ""
        self._buffer = bytearray()

    def _complete(self) -> None:
        whole = {"Parts": self._parts}
        try:
            self._send(
                "complete_multipart_upload",
                self._key,
                UploadId=self._upload,
                MultipartUpload=whole,
            )
        except OSError:  # S3 no longer knows an upload whose completion it did, and could not say
            if not self._is_published():
                raise

    def _is_published(self) -> bool:
        try:
            found = self._send("head_object", self._key)
        except OSError:
            return False
        return bool(found.get("Metadata", {}).get(_NAME) == self._token)

    def discard(self) -> None:
        """Have S3 forget the parts; see `Draft`."""
        upload, self._upload = self._upload, ""
        self._buffer = bytearray()
        if not upload:
            return
        try:
            self._send("abort_multipart_upload", self._key, UploadId=upload)
        except OSError as err:
            get_logger("storage").warning("Parts of %r stay in the bucket. %s", self._key, err)
