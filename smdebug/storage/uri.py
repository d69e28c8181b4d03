"""open_store, open_output: the only place that knows what kinds of addresses a trial may have."""

import os
import re
from typing import Final
from urllib.parse import unquote, urlsplit

from smdebug.exceptions import SMDebugValueError
from smdebug.storage.local import LocalStore
from smdebug.storage.local_output import LocalOutput
from smdebug.storage.protocol import TrialOutput, TrialStore

# As Hadoop's file systems call S3, too.
_S3: Final = re.compile(r"\s*s3[an]?://", re.IGNORECASE)


def is_s3(uri: str | os.PathLike[str]) -> bool:
    """Say whether an address is one of S3.

    >>> is_s3("s3://bucket/runs"), is_s3("s3a://bucket"), is_s3("/s3/runs")
    (True, True, False)
    """
    return _S3.match(os.fspath(uri)) is not None


def open_store(uri: str | os.PathLike[str]) -> TrialStore:
    """Return the store behind a plain path, a ``file://`` or an ``s3://`` address.

    Raises
    ------
    SMDebugValueError
        If the address is empty, of a kind that cannot be read, or none that S3 can have; or if
        the environment says of S3 what cannot be understood.
    """
    if is_s3(uri):
        from smdebug.storage import s3_opening as s3  # noqa: PLC0415 - only for S3

        return s3.open_s3_store(os.fspath(uri), s3.S3Settings.from_environment())
    return LocalStore(_local_path(uri, "read"))


def open_output(uri: str | os.PathLike[str]) -> TrialOutput:
    """Return where a trial is written to, behind an address as those of `open_store`.

    Raises
    ------
    SMDebugValueError
        See `open_store`.
    """
    if is_s3(uri):
        from smdebug.storage import s3_opening as s3  # noqa: PLC0415 - only for S3

        return s3.open_s3_output(os.fspath(uri), s3.S3Settings.from_environment())
    return LocalOutput(_local_path(uri, "written"))


def _local_path(uri: str | os.PathLike[str], verb: str) -> str:
    text = os.fspath(uri).strip()
    if not text:
        msg = "The path of a trial must not be empty."
        raise SMDebugValueError(msg)
    scheme, slashes, _ = text.partition("://")
    if not slashes or os.sep in scheme:
        return text
    if scheme.lower() == "file":
        return unquote(urlsplit(text).path)
    msg = (
        f"Trials at {scheme}:// addresses cannot be {verb} yet, got {text!r}. "
        "Copy the trial to a local folder and give its path."
    )
    raise SMDebugValueError(msg)
