"""Marks: short texts that change when data of a trial arrive."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from rule_core.exceptions import SMDebugError
from rule_core.sources.address import address_of
from rule_core.storage.uri import is_s3, open_store
from rule_runner.index.records import TrialRecord
from rule_runner.loading.trials import open_profiler_trial

_ENTRIES: Final = 100_000  # of a local trial, looked at most
_STATUSES: Final = 16  # of files in S3, asked for at most; each costs a request
UNKNOWN: Final = ""


def mark_of(trial: str, earlier: str = UNKNOWN) -> str:
    """Return the mark of a trial.

    In S3, only keys after the last one of the earlier mark are listed: steps have ascending keys.
    A trial with few files, which may be replaced as they grow, is checked by their times and sizes.

    Parameters
    ----------
    trial
        Its path or address.
    earlier
        Its mark when it was last looked at.

    Returns
    -------
    str
        The mark; `earlier` if the trial cannot be read.
    """
    place = address_of(trial).path
    if is_s3(place):
        return _s3_mark(place, earlier)
    return _local_mark(place) or earlier


def last_change(trial: str, mark: str) -> float | None:
    """Return when the data of a trial changed last, in seconds since the epoch.

    Parameters
    ----------
    trial, mark
        Its path or address, and its mark.

    Returns
    -------
    float | None
        None if the mark does not tell: that of a trial with many objects in S3.

    Examples
    --------
    >>> last_change("/runs/a", "2 70 1700000000500000000")
    1700000000.5
    >>> last_change("s3://bucket/a", "log.csv" + chr(10) + "70-1700000000.5")
    1700000000.5
    """
    if not is_s3(address_of(trial).path):
        return int(mark.split()[2]) / 1e9 if mark else None
    times = [float(part.partition("-")[2]) for part in mark.partition("\n")[2].split()]
    return max(times, default=None)


def is_absent(trial: str) -> bool:
    """Return whether a trial is not there; unknown for other places than local folders."""
    place = address_of(trial).path
    return "://" not in place and not Path(place).exists()


def has_new_traces(trial: TrialRecord) -> bool:
    """Return whether traces have arrived since the last evaluation, which read all at once."""
    return is_of_traces(trial) and mark_of(trial.path, trial.mark) != trial.mark


def is_of_traces(trial: TrialRecord) -> bool:
    """Return whether a trial is a folder of traces or other files that are converted.

    A trace covers a time that other ranks' traces cover too, so verdicts are not continued.
    """
    if trial.tensors or not trial.profiler:
        return False
    return bool(open_profiler_trial(trial.path, None).source.files.store.finds_formats())


def _local_mark(path: str) -> str:
    """Return the number of files and folders, and the time of the last change; "" if unknown."""
    newest, size, count = 0, 0, 0
    for status in islice(_statuses(path), _ENTRIES):
        newest = max(newest, status.st_mtime_ns)
        size += status.st_size
        count += 1
    return f"{count} {size} {newest}" if count else UNKNOWN


def _statuses(path: str) -> Iterator[os.stat_result]:
    """Yield the status of a file, or of everything in a folder."""
    folders = [path]
    with suppress(OSError):
        yield Path(path).lstat()
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):  # removed meanwhile
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)


def _s3_mark(address: str, earlier: str) -> str:
    try:
        store = open_store(address)
        last = earlier.partition("\n")[0]
        statuses = ""
        keys = list(islice(store.list_keys(""), _STATUSES + 1)) if not last else []
        few = 0 < len(keys) <= _STATUSES or "\n" in earlier
        for key in store.list_keys("", start_after=last):
            last = key
        if few:
            keys = keys or list(islice(store.list_keys(""), _STATUSES))
            statuses = "\n" + " ".join(
                f"{status.size}-{status.modified}" for status in map(store.status, keys)
            )
    except SMDebugError:
        return earlier
    return last + statuses
