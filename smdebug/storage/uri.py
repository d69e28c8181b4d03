"""open_store, open_output: the only place that knows what kinds of addresses a trial may have."""

import os
from urllib.parse import unquote, urlsplit

from smdebug.exceptions import SMDebugValueError
from smdebug.storage.local import LocalStore
from smdebug.storage.local_output import LocalOutput
from smdebug.storage.protocol import TrialOutput, TrialStore


def is_s3(uri: str | os.PathLike[str]) -> bool:
    """Say whether an address is one of S3.

    >>> is_s3("s3://bucket/runs"), is_s3("/s3/runs")
    (True, False)
    """
    return os.fspath(uri).strip().lower().startswith("s3://")


def open_store(uri: str | os.PathLike[str]) -> TrialStore:
    """Return the store behind a plain path or a ``file://`` address.

    Raises
    ------
    SMDebugValueError
        If the address is empty or of a kind that cannot be read.
    """
    text = os.fspath(uri).strip()
    if is_s3(text):
        from smdebug.storage.s3 import S3Store  # noqa: PLC0415 - only when it is needed

        return S3Store(text)
    return LocalStore(_local_path(uri, "read"))


def open_output(uri: str | os.PathLike[str]) -> TrialOutput:
    """Return where a trial is written to, behind a plain path or a ``file://`` address.

    Raises
    ------
    SMDebugValueError
        If the address is empty or of a kind that cannot be written.
    """
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
