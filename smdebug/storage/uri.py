"""open_store: the only place that knows what kinds of addresses a trial may have."""

import os
from urllib.parse import unquote, urlsplit

from smdebug.exceptions import SMDebugValueError
from smdebug.storage.local import LocalStore
from smdebug.storage.protocol import TrialStore


def open_store(uri: str | os.PathLike[str]) -> TrialStore:
    """Return the store behind a plain path or a ``file://`` address.

    Raises
    ------
    SMDebugValueError
        If the address is empty or of a kind that cannot be read.
    """
    text = os.fspath(uri).strip()
    if not text:
        msg = "The path of a trial must not be empty."
        raise SMDebugValueError(msg)
    scheme, slashes, _ = text.partition("://")
    if not slashes or os.sep in scheme:
        return LocalStore(text)
    if scheme.lower() == "file":
        return LocalStore(unquote(urlsplit(text).path))
    msg = (
        f"Trials at {scheme}:// addresses cannot be read yet, got {text!r}. "
        "Copy the trial to a local folder and give its path."
    )
    raise SMDebugValueError(msg)
