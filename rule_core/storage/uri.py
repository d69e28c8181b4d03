"""open_store, open_output: open the store of a trial by the kind of its address."""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from rule_core.exceptions import SMDebugValueError
from rule_core.storage.base import ByteRange, TrialOutput, TrialStore
from rule_core.storage.local import LocalStore
from rule_core.storage.local_output import LocalOutput
from rule_core.storage.size_limit import max_file_bytes

# Including the schemes of Hadoop's file systems.
_S3: Final = re.compile(r"\s*s3[an]?://", re.IGNORECASE)


def is_s3(uri: str | os.PathLike[str]) -> bool:
    """Return whether an address is in S3.

    >>> is_s3("s3://bucket/runs"), is_s3("s3a://bucket"), is_s3("/s3/runs")
    (True, True, False)
    """
    return _S3.match(os.fspath(uri)) is not None


def open_store(uri: str | os.PathLike[str]) -> TrialStore:
    """Return the store behind a plain path, a ``file://`` or an ``s3://`` address.

    Raises
    ------
    SMDebugValueError
        If the address is empty, of an unsupported kind or invalid, or if an S3 setting of the
        environment is invalid.
    """
    max_file_bytes()  # report an invalid setting now, not at the first large file
    if is_s3(uri):
        from rule_core.storage.s3 import settings as s3

        return s3.open_s3_store(os.fspath(uri), s3.S3Settings.from_environment())
    return LocalStore(_local_path(uri, "read"))


def open_output(uri: str | os.PathLike[str]) -> TrialOutput:
    """Return the output of a trial at an address such as those of `open_store`.

    Raises
    ------
    SMDebugValueError
        See `open_store`.
    """
    if is_s3(uri):
        from rule_core.storage.s3 import settings as s3

        return s3.open_s3_output(os.fspath(uri), s3.S3Settings.from_environment())
    return LocalOutput(_local_path(uri, "written"))


def read_file(address: str, limit: int) -> bytes:
    """Return the content of a file at a path or an ``s3://`` address.

    Raises
    ------
    OSError, ObjectNotFoundError, StorageUnavailableError, SMDebugValueError
        If it cannot be read.
    ValueError
        If it is missing, not a file, or of more than `limit` bytes.
    """
    content, path = b"", Path(address)
    is_file = is_s3(address) or path.is_file()
    if is_s3(address):
        folder, _, name = address.strip().rpartition("/")
        content = bytes(open_store(folder).read(name, ByteRange(0, limit + 1)))
    elif is_file:
        with path.open("rb") as stream:
            content = stream.read(limit + 1)
    if not is_file or len(content) > limit:
        raise ValueError(f"it is missing, not a file, or of more than {limit >> 20} MiB")
    return content


def _local_path(uri: str | os.PathLike[str], verb: str) -> str:
    text = os.fspath(uri).strip()
    if not text:
        raise SMDebugValueError("The path of a trial must not be empty.")
    scheme, slashes, _ = text.partition("://")
    if not slashes or os.sep in scheme:
        return text
    if scheme.lower() == "file":
        return unquote(urlsplit(text).path)
    raise SMDebugValueError(
        f"Trials at {scheme}:// addresses cannot be {verb} yet, got {text!r}. "
        "Copy the trial to a local folder and give its path."
    )
