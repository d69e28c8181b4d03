"""Fetches one file from S3 into a private folder: where it lies, and which version it is."""

import atexit
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rule_runner.errors import RuleSourceError
from smdebug.core.clock import Clock, SystemClock
from smdebug.exceptions import SMDebugValueError
from smdebug.storage import aws
from smdebug.storage.retry import retry
from smdebug.storage.s3 import parse_s3

LIMIT: Final = 1 << 20  # bytes: a rule file is text that somebody wrote
DEADLINE_S: Final = 30.0
_PIECE: Final = 1 << 16
_ABSENT: Final = frozenset({"NoSuchKey", "404"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_FOLDERS: Final[set[Path]] = set()


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that was fetched, and nothing beside it.

    Attributes
    ----------
    uri
        Its address, for messages and results.
    path
        Where it lies until this process ends; its folder is this user's alone.
    version_id
        None if the bucket keeps no versions.
    etag
        None if the store gave none.
    """

    uri: str
    path: Path
    version_id: str | None
    etag: str | None


class _CutShortError(Exception):
    """The connection ended, or became too slow, before all of the file had come."""


def fetch_rule_file(
    uri: str, *, limit: int = LIMIT, deadline_s: float = DEADLINE_S, clock: Clock | None = None
) -> Fetched:
    """Fetch the rule file at ``s3://bucket/key``.

    What passes, such as throttling, is tried again until `deadline_s` seconds are over.

    Parameters
    ----------
    limit
        Bytes that the file may have; of a larger one nothing is kept.

    Raises
    ------
    RuleSourceError
        If there is no such object, it may not be read, or it is too large.
    """
    uri = uri.strip()
    bucket, key = _bucket_and_key(uri)
    clock = clock or SystemClock()
    get = partial(_Getting(uri, limit, clock, clock.monotonic() + deadline_s).get, bucket, key)
    try:
        answer, data = retry(get, passes=_passes, deadline_s=deadline_s, clock=clock)
    except _CutShortError as err:
        msg = f"Rule file {_shown(uri)} cannot be fetched: {err}."
        raise RuleSourceError(msg) from err
    except aws.errors() as err:
        raise _refused(uri, bucket, aws.fault(err)) from err
    path = private_folder() / _file_name(key)
    path.write_bytes(data)
    etag = str(answer.get("ETag") or "").strip('"')
    return Fetched(uri, path, answer.get("VersionId"), etag or None)


def private_folder() -> Path:
    """Make a folder that only this user may enter, and that goes when this process ends."""
    if not _FOLDERS:
        atexit.register(remove_private_folders)
    folder = Path(tempfile.mkdtemp(prefix="rule-runner-")).resolve()
    _FOLDERS.add(folder)
    return folder


def remove_private_folders() -> None:
    """Remove all that was fetched; for a process that ends without its usual end."""
    while _FOLDERS:
        shutil.rmtree(_FOLDERS.pop(), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Getting:
    """One object being asked for, within bounds."""

    uri: str
    limit: int
    clock: Clock
    until: float

    def get(self, bucket: str, key: str) -> tuple[dict[str, Any], bytes]:
        """Return what S3 says of the object, and its bytes."""
        answer = aws.client("s3").get_object(Bucket=bucket, Key=key)
        body = answer["Body"]
        try:
            size = answer.get("ContentLength") or 0
            if size > self.limit:
                raise self._too_large(size)
            data = self._read(body)
        finally:
            body.close()
        if len(data) < size:
            msg = f"only {len(data):,} of its {size:,} bytes came"
            raise _CutShortError(msg)
        return answer, data

    def _read(self, body: Any) -> bytes:
        """Return all bytes; a server may send more than it says, or one now and then."""
        data = bytearray()
        while piece := body.read(_PIECE):
            data += piece
            if len(data) > self.limit:
                raise self._too_large(None)
            if self.clock.monotonic() > self.until:
                msg = f"it came too slowly, {len(data):,} bytes of it in time"
                raise _CutShortError(msg)
        return bytes(data)

    def _too_large(self, size: int | None) -> RuleSourceError:
        """Return the sentence about a file of `size` bytes, or of more than may be."""
        told = "more" if size is None else f"{size:,} bytes"
        return RuleSourceError(
            f"Rule file {_shown(self.uri)} is too large: a rule file may have {self.limit:,} "
            f"bytes, got {told}. Give the address of one Python file."
        )


def _passes(err: Exception) -> bool:
    if isinstance(err, _CutShortError):
        return True
    return isinstance(err, aws.errors()) and aws.fault(err).transient


def _bucket_and_key(uri: str) -> tuple[str, str]:
    try:
        bucket, _ = parse_s3(uri)
    except SMDebugValueError as err:
        raise RuleSourceError(str(err)) from err
    key = uri.partition("://")[2].partition("/")[2]
    if not key or key.endswith("/"):
        msg = (
            f"Rule file address {_shown(uri)} names no file. "
            "Give the address of one Python file, such as s3://bucket/rules/my_rule.py."
        )
        raise RuleSourceError(msg)
    return bucket, key


def _refused(uri: str, bucket: str, found: aws.AwsFault) -> RuleSourceError:
    """Return the sentence about an object that S3 does not give."""
    match found.code:
        case code if code in _ABSENT:
            return RuleSourceError(f"Rule file {_shown(uri)} does not exist.")
        case "NoSuchBucket":
            reason = f"there is no bucket {bucket!r}"
        case "AccessDenied" | "403":
            place = uri.partition("://")[2]
            reason = (
                f"{found.reason}. These credentials need s3:GetObject on arn:aws:s3:::{place}; "
                "without s3:ListBucket a file that is not there is told so too"
            )
        case _:
            reason = found.reason
    return RuleSourceError(f"Rule file {_shown(uri)} cannot be fetched: {reason}.")


def _file_name(key: str) -> str:
    """Return the last part of a key, if it can name a file anywhere."""
    name = key.rpartition("/")[2]
    return name if _PLAIN_NAME.fullmatch(name) else "rule.py"


def _shown(uri: str) -> str:
    return uri if uri.isprintable() else repr(uri)
