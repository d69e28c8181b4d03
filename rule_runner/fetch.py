"""Fetches one file from S3 into a private folder: where it lies, and which version it is."""

import atexit
import re
import shutil
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rule_runner.errors import RuleSourceError
from smdebug.core.clock import Clock, SystemClock
from smdebug.exceptions import SMDebugValueError
from smdebug.storage import ObjectNotFoundError, StorageUnavailableError, aws
from smdebug.storage.retry import retry
from smdebug.storage.s3_bucket import Bucket
from smdebug.storage.s3_opening import S3Settings

LIMIT: Final = 1 << 20  # bytes: a rule file is text that somebody wrote
_GET: Final = "get_object"
_PIECE: Final = 1 << 16
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


def fetch_rule_file(
    uri: str, *, limit: int = LIMIT, deadline_s: float | None = None, clock: Clock | None = None
) -> Fetched:
    """Fetch the rule file at ``s3://bucket/key``.

    What passes, such as throttling, is tried again within the deadline.

    Parameters
    ----------
    limit
        Bytes that the file may have; of a larger one nothing is kept.
    deadline_s
        Seconds; by default those for all of S3.

    Raises
    ------
    RuleSourceError
        If there is no such object, it may not be read, or it is too large.
    """
    uri = uri.strip()
    clock = clock or SystemClock()
    bucket, name, patience = _place(uri)
    deadline_s = patience if deadline_s is None else deadline_s
    getting = _Getting(bucket, name, limit, clock, clock.monotonic() + deadline_s)
    try:
        answer, data = retry(getting.get, passes=_passes, deadline_s=deadline_s, clock=clock)
    except ObjectNotFoundError as err:
        msg = f"Rule file {_shown(uri)} does not exist."
        raise RuleSourceError(msg) from err
    except StorageUnavailableError as err:
        msg = f"Rule file {_shown(uri)} cannot be fetched: {err.reason}."
        raise RuleSourceError(msg) from err
    path = private_folder() / (name if _PLAIN_NAME.fullmatch(name) else "rule.py")
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


def _place(uri: str) -> tuple[Bucket, str, float]:
    """Return the folder of an address, the name in it, and for how long it is asked for."""
    folder, _, name = uri.rpartition("/")
    if not name or folder.endswith("/"):
        msg = (
            f"Rule file address {_shown(uri)} names no file. "
            "Give the address of one Python file, such as s3://bucket/rules/my_rule.py."
        )
        raise RuleSourceError(msg)
    try:
        settings = S3Settings.from_environment()
        return settings.bucket(folder), name, settings.deadline_s
    except SMDebugValueError as err:
        raise RuleSourceError(str(err)) from err


@dataclass(frozen=True, slots=True)
class _Getting:
    """One object being asked for, within bounds."""

    bucket: Bucket
    key: str
    limit: int
    clock: Clock
    until: float

    def get(self) -> tuple[dict[str, Any], bytes]:
        """Return what S3 says of the object, and its bytes.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If it is not there, or S3 does not give it.
        RuleSourceError
            If it is too large.
        """
        try:
            answer = self.bucket.call(_GET, self.key)
            with closing(answer["Body"]) as body:
                size = answer.get("ContentLength") or 0
                if size > self.limit:
                    raise self._too_large(size)
                data = self._read(body)
        except aws.errors() as err:
            raise self.bucket.error(_GET, self.key, aws.fault(err)) from err
        return answer, data

    def _read(self, body: Any) -> bytes:
        """Return all bytes; a server may send more than it says, or one now and then."""
        data = bytearray()
        while piece := body.read(_PIECE):
            data += piece
            if len(data) > self.limit:
                raise self._too_large(None)
            if self.clock.monotonic() > self.until:
                reason = f"only {len(data):,} bytes of it came in time"
                raise StorageUnavailableError(self.key, reason, transient=True)
        return bytes(data)

    def _too_large(self, size: int | None) -> RuleSourceError:
        """Return the sentence about a file of `size` bytes, or of more than may be."""
        told = "more" if size is None else f"{size:,}"
        return RuleSourceError(
            f"Rule file {_shown(self.bucket.address(self.key))} is too large: a rule file may have "
            f"{self.limit:,} bytes, got {told}. Give the address of one Python file."
        )


def _passes(err: Exception) -> bool:
    return isinstance(err, StorageUnavailableError) and err.transient


def _shown(uri: str) -> str:
    return uri if uri.isprintable() else repr(uri)
