"""changed_since: whether any file of a trial was written after some time."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rule_core.clock import SystemClock
from rule_core.sources.address import address_of
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.store import S3Store
from rule_core.storage.uri import is_s3
from rule_runner.errors import TrialError, reason_of, translated


def changed_since(path: str, time: float) -> bool:
    """Return whether a file of a trial was written at or after `time`, or that is unknown.

    It is unknown for runs that a server keeps.

    Parameters
    ----------
    path
        The path of the trial, as `find_trials` returns it.
    time
        Seconds since the epoch.

    Raises
    ------
    TrialError
        If storage does not answer.
    """
    address = address_of(path).path
    if is_s3(address):
        return _changed_in_s3(address, time)
    if not os.path.lexists(address):
        return True
    return any(modified >= time for modified in _times(address))


def _times(path: str) -> Iterator[float]:
    """Yield when a file, or each file below a folder, was written."""
    if not Path(path).is_dir():
        yield Path(path).stat().st_mtime
        return
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):  # removed meanwhile
                yield (Path(folder) / name).stat().st_mtime


def _changed_in_s3(address: str, time: float) -> bool:
    from rule_core.storage.s3.settings import S3Settings

    settings = S3Settings.from_environment()
    store = S3Store(settings.bucket(address))
    patient = RetryingStore(store, SystemClock(), settings.deadline_s)
    problem, cause = f"{address!r} cannot be listed: ", StorageUnavailableError
    with translated(TrialError, cause, before=problem, after=".", words=reason_of):
        return patient.ask(lambda: any(modified >= time for modified in store.times()))
