"""Fetches one rule file from S3 into a private folder."""

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rule_core.clock import Clock, SystemClock
from rule_core.exceptions import SMDebugValueError
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.retry import retry
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.settings import S3Settings
from rule_runner.errors import RuleSourceError, reason_of, restated, translated
from rule_runner.loading.private_folders import private_folder
from rule_runner.text_files import shown

LIMIT: Final = 1 << 20  # bytes of a rule file
_GET: Final = "get_object"
_PIECE: Final = 1 << 16
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that was fetched from S3, alone in its folder.

    Attributes
    ----------
    uri
        Its address, for messages and results.
    path
        The local copy, in a private folder that is removed when this process ends.
    version_id
        None if the bucket keeps no versions.
    etag
        None if the store sent none.
    """

    uri: str
    path: Path
    version_id: str | None
    etag: str | None


def fetch_rule_file(
    uri: str, *, limit: int = LIMIT, deadline_s: float | None = None, clock: Clock | None = None
) -> Fetched:
    """Fetch the rule file at ``s3://bucket/key``.

    Transient errors, such as throttling, are retried until the deadline.

    Parameters
    ----------
    limit
        Largest size of the file in bytes; nothing of a larger file is kept.
    deadline_s
        Seconds; by default the deadline of S3 requests.

    Raises
    ------
    RuleSourceError
        If the object does not exist, cannot be read, or is too large.
    """
    uri = uri.strip()
    clock = clock or SystemClock()
    bucket, name, patience = _place(uri)
    deadline_s = patience if deadline_s is None else deadline_s
    request = _ObjectRequest(bucket, name, limit, clock, clock.monotonic() + deadline_s)
    subject, cause = f"Rule file {shown(uri)}", StorageUnavailableError
    problem = f"{subject} cannot be fetched: "
    with (
        translated(RuleSourceError, cause, before=problem, after=".", words=reason_of),
        restated(RuleSourceError, ObjectNotFoundError, sentence=f"{subject} does not exist."),
    ):
        answer, data = retry(request.get, cause, deadline_s=deadline_s, clock=clock)
    path = private_folder() / (name if _PLAIN_NAME.fullmatch(name) else "rule.py")
    path.write_bytes(data)
    etag = str(answer.get("ETag") or "").strip('"')
    return Fetched(uri, path, answer.get("VersionId"), etag or None)


def _place(uri: str) -> tuple[Bucket, str, float]:
    """Return the folder of an address, the name in it, and the deadline in seconds."""
    folder, _, name = uri.rpartition("/")
    if not name or folder.endswith("/"):
        raise RuleSourceError(
            f"Rule file address {shown(uri)} names no file. "
            "Give the address of one Python file, such as s3://bucket/rules/my_rule.py."
        )
    with translated(RuleSourceError, SMDebugValueError):
        settings = S3Settings.from_environment()
        return settings.bucket(folder), name, settings.deadline_s


@dataclass(frozen=True, slots=True)
class _ObjectRequest:
    """The request for one object, with limits of size and time."""

    bucket: Bucket
    key: str
    limit: int
    clock: Clock
    until: float

    def get(self) -> tuple[dict[str, Any], bytes]:
        """Return the response of S3 and the bytes of the object.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the object does not exist, or S3 does not return it.
        RuleSourceError
            If it is too large.
        """
        with self.bucket.errors(_GET, self.key):
            answer = self.bucket.call(_GET, self.key)
            with closing(answer["Body"]) as body:
                size = answer.get("ContentLength") or 0
                if size > self.limit:
                    raise self._too_large(size)
                return answer, self._read(body)

    def _read(self, body: Any) -> bytes:
        """Return all bytes; a server may send more than announced, or send them slowly."""
        data = bytearray()
        while piece := body.read(_PIECE):
            data += piece
            if len(data) > self.limit:
                raise self._too_large(None)
            if self.clock.monotonic() > self.until:
                reason = f"only {len(data):,} bytes of it arrived in time"
                raise StorageUnavailableError(self.key, reason, transient=True)
        return bytes(data)

    def _too_large(self, size: int | None) -> RuleSourceError:
        """Return the error for a file of `size` bytes; None if the size is unknown."""
        actual = "more" if size is None else f"{size:,}"
        return RuleSourceError(
            f"Rule file {shown(self.bucket.address(self.key))} is too large: the limit is "
            f"{self.limit:,} bytes, got {actual}. Give the address of one Python file."
        )
