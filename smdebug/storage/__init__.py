"""Where the files of a trial are read from and written to."""

from smdebug.storage.protocol import (
    ByteRange,
    Draft,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
    TrialOutput,
    TrialStore,
)
from smdebug.storage.uri import open_output, open_store

__all__ = [
    "ByteRange",
    "Draft",
    "ObjectNotFoundError",
    "ReadCosts",
    "StorageUnavailableError",
    "TrialOutput",
    "TrialStore",
    "open_output",
    "open_store",
]
