"""Storage of trials: local folders, S3 and memory."""

from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    PendingFile,
    ReadCosts,
    StorageUnavailableError,
    TrialOutput,
    TrialStore,
)
from rule_core.storage.uri import open_output, open_store

__all__ = [
    "ByteRange",
    "ObjectNotFoundError",
    "PendingFile",
    "ReadCosts",
    "StorageUnavailableError",
    "TrialOutput",
    "TrialStore",
    "open_output",
    "open_store",
]
