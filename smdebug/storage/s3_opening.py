"""open_s3_store, open_s3_output: put stores and outputs of S3 together as the environment asks."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smdebug.core.clock import SystemClock
from smdebug.environment import number
from smdebug.exceptions import SMDebugValueError
from smdebug.storage.caching import CachingStore
from smdebug.storage.disk_cache import DiskCache
from smdebug.storage.retrying import DEADLINE_S, RetryingStore
from smdebug.storage.s3 import S3Store
from smdebug.storage.s3_bucket import READ_TIMEOUT_S, Bucket
from smdebug.storage.s3_output import S3Output

DEADLINE: Final = "RULE_RUNNER_S3_DEADLINE"
CACHE: Final = "RULE_RUNNER_CACHE"
CACHE_BYTES: Final = "RULE_RUNNER_CACHE_BYTES"
PAYER: Final = "AWS_REQUEST_PAYER"
_SIZE: Final = re.compile(r"(\d+) ?(?:([KMGT])(i?)B?)?", re.IGNORECASE)
_POWERS: Final = " KMGT"
LEAST_READ_TIMEOUT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class S3Settings:
    """What the environment says of S3, besides what boto3 reads there.

    Attributes
    ----------
    deadline_s
        Seconds for which a call is tried again; from ``RULE_RUNNER_S3_DEADLINE``.
    requester_pays
        Whether ``AWS_REQUEST_PAYER`` is ``requester``.
    cache
        Folder in which what was read is kept, from ``RULE_RUNNER_CACHE``; none by default.
    cache_bytes
        How much of it, from ``RULE_RUNNER_CACHE_BYTES``: a number, or such as ``500MB``, ``10GiB``.
    """

    deadline_s: float = DEADLINE_S
    requester_pays: bool = False
    cache: Path | None = None
    cache_bytes: int = 10 << 30

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "S3Settings":
        """Return what an environment says.

        Raises
        ------
        SMDebugValueError
            If a value cannot be understood.
        """
        given = {name: text.strip() for name, text in environ.items() if text.strip()}
        payer = given.get(PAYER, "")
        if payer not in {"", "requester"}:
            msg = f"The environment's {PAYER} must be 'requester', got {payer!r}."
            raise SMDebugValueError(msg)
        cache = given.get(CACHE)
        return cls(
            number(DEADLINE, cls().deadline_s, "seconds", environ),
            bool(payer),
            Path(cache).expanduser() if cache else None,
            _size(given[CACHE_BYTES]) if CACHE_BYTES in given else cls().cache_bytes,
        )

    def bucket(self, uri: str) -> Bucket:
        """Return the objects at an address, to be asked as these settings say.

        Raises
        ------
        SMDebugValueError
            If S3 can have no such address.
        """
        timeout = min(READ_TIMEOUT_S, max(self.deadline_s, LEAST_READ_TIMEOUT_S))
        return Bucket(uri, requester_pays=self.requester_pays, read_timeout=timeout)


def _size(text: str) -> int:
    """Return a number of bytes.

    >>> _size("500MB"), _size("1 GiB"), _size("7")
    (500000000, 1073741824, 7)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        msg = f"The environment's {CACHE_BYTES} must be a size such as 10GiB, got {text!r}."
        raise SMDebugValueError(msg)
    number, letter, binary = found.groups()
    power = _POWERS.index((letter or " ").upper())
    return int(number) * int((1024 if binary else 1000) ** power)


def open_s3_store(uri: str, settings: S3Settings) -> RetryingStore:
    """Return a store that is patient and, if asked, keeps what it read."""
    store = S3Store(settings.bucket(uri))
    if settings.cache is None:
        return RetryingStore(store, SystemClock(), settings.deadline_s)
    kept = CachingStore(store, DiskCache(settings.cache, settings.cache_bytes))
    return RetryingStore(kept, SystemClock(), settings.deadline_s)


def open_s3_output(uri: str, settings: S3Settings) -> S3Output:
    """Return an output that is patient."""
    return S3Output(settings.bucket(uri), SystemClock(), settings.deadline_s)
