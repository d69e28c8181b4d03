"""check_file_size: limits the files that are read into memory completely."""

from typing import Final

from rule_core.environment import size
from rule_core.storage.base import StorageUnavailableError

METADATA_BYTES: Final = "RULE_RUNNER_METADATA_BYTES"
DEFAULT_BYTES: Final = 256 << 20


def max_file_bytes() -> int:
    """Return the maximum size in bytes of files that are read completely.

    Raises
    ------
    SMDebugValueError
        If ``RULE_RUNNER_METADATA_BYTES`` is not a size.
    """
    return size(METADATA_BYTES, DEFAULT_BYTES)


def check_file_size(key: str, nbytes: int) -> None:
    """Check the size of a file before it is read completely.

    Raises
    ------
    StorageUnavailableError
        If it is larger than `max_file_bytes` allows.
    """
    limit = max_file_bytes()
    if nbytes > limit:
        reason = (
            f"it has {nbytes} bytes, more than the {limit} that may be read at once. "
            f"Raise {METADATA_BYTES} if this is intended"
        )
        raise StorageUnavailableError(key, reason)
