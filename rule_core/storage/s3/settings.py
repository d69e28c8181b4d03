"""S3Settings: stores and outputs in S3, configured by the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rule_core.clock import SystemClock
from rule_core.environment import number, size
from rule_core.exceptions import SMDebugValueError
from rule_core.storage.retrying_store import DEADLINE_S, RetryingStore
from rule_core.storage.s3.bucket import READ_TIMEOUT_S, Bucket
from rule_core.storage.s3.caching_store import CachingStore, DiskCache
from rule_core.storage.s3.output import S3Output
from rule_core.storage.s3.store import S3Store

DEADLINE: Final = "RULE_RUNNER_S3_DEADLINE"
CACHE: Final = "RULE_RUNNER_CACHE"
CACHE_BYTES: Final = "RULE_RUNNER_CACHE_BYTES"
PAYER: Final = "AWS_REQUEST_PAYER"
LEAST_READ_TIMEOUT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The S3 settings of the environment, in addition to those of boto3.

    Attributes
    ----------
    deadline_s
        Seconds for which calls are retried, from ``RULE_RUNNER_S3_DEADLINE``.
    requester_pays
        Whether ``AWS_REQUEST_PAYER`` is ``requester``.
    cache
        The folder of the disk cache, from ``RULE_RUNNER_CACHE``; none by default.
    cache_bytes
        The size of the cache, from ``RULE_RUNNER_CACHE_BYTES``: ``500000``, ``500MB`` or ``10GiB``.
    """

    deadline_s: float = DEADLINE_S
    requester_pays: bool = False
    cache: Path | None = None
    cache_bytes: int = 10 << 30

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "S3Settings":
        """Read the settings from an environment.

        Raises
        ------
        SMDebugValueError
            If a value is invalid.
        """
        variables = {name: text.strip() for name, text in environ.items() if text.strip()}
        payer = variables.get(PAYER, "")
        if payer not in {"", "requester"}:
            raise SMDebugValueError(
                f"The environment's {PAYER} must be 'requester', got {payer!r}."
            )
        cache = variables.get(CACHE)
        return cls(
            number(DEADLINE, cls().deadline_s, "seconds", environ),
            bool(payer),
            Path(cache).expanduser() if cache else None,
            size(CACHE_BYTES, cls().cache_bytes, environ),
        )

    def bucket(self, uri: str) -> Bucket:
        """Return the bucket at an address, with these settings.

        Raises
        ------
        SMDebugValueError
            If the address is invalid.
        """
        timeout = min(READ_TIMEOUT_S, max(self.deadline_s, LEAST_READ_TIMEOUT_S))
        return Bucket(uri, requester_pays=self.requester_pays, read_timeout=timeout)


def open_s3_store(uri: str, settings: S3Settings) -> RetryingStore:
    """Return a store with retries and, if configured, a disk cache."""
    store = S3Store(settings.bucket(uri))
    if settings.cache is not None:
        cache = DiskCache(settings.cache, settings.cache_bytes)
        store = CachingStore(store.bucket, cache)
    return RetryingStore(store, SystemClock(), settings.deadline_s)


def open_s3_output(uri: str, settings: S3Settings) -> S3Output:
    """Return an output with retries."""
    return S3Output(settings.bucket(uri), SystemClock(), settings.deadline_s)
