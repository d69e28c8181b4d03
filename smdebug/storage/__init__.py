"""Where the files of a trial are read from."""

from smdebug.storage.protocol import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from smdebug.storage.uri import open_store

__all__ = [
    "ByteRange",
    "ObjectNotFoundError",
    "StorageUnavailableError",
    "TrialStore",
    "open_store",
]
