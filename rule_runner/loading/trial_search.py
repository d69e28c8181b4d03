"""find_trials: the trials at a path and below it, in a local folder or in S3."""

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from rule_core.clock import SystemClock
from rule_core.exceptions import SMDebugError
from rule_core.format.paths import COLLECTIONS, END_OF_JOB, EVENTS, INDEX
from rule_core.storage import StorageUnavailableError, open_store
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import parse_s3
from rule_core.storage.s3.store import S3Store
from rule_core.storage.uri import is_s3
from rule_core.storage.wait_budget import WaitBudget, WaitEndedError
from rule_runner.errors import TrialError

LEVELS: Final = 8  # of folders, below the path
LOCAL_FOLDERS: Final = 10_000  # listed at most
S3_FOLDERS: Final = 1_000  # listed at most; each costs a request
ENTRIES: Final = 10_000  # listed at most of one folder
HINT_TIMEOUT_S: Final = 10.0  # to search for a hint in an error message
HINTED_TRIALS: Final = 50

_COLLECTIONS: Final = COLLECTIONS.partition("/")
# The subfolders that identify a trial, and patterns of the names in them.
_TENSORS: Final = {
    f"{_COLLECTIONS[0]}/": re.compile(_COLLECTIONS[2]),
    INDEX: re.compile(r"\d{9,}/"),
    EVENTS: re.compile(r"\d{12,}/"),
}
_PROFILER: Final = {
    "system/": re.compile(rf"incremental/|{END_OF_JOB}"),
    "framework/": re.compile(rf"pevents/|tensorflow/|{END_OF_JOB}"),
}
_OF_TRIALS: Final = {*_TENSORS, *_PROFILER, "closed/"}

# Lists a folder, given as "" or with a trailing slash; names of subfolders end with a slash too.
ListFolder = Callable[[str], Iterable[str]]


class TrialFolder(NamedTuple):
    """The root of a trial, and the kinds of data in it."""

    path: str
    tensors: bool
    profiler: bool


class TrialSearch(NamedTuple):
    """The results of a search, ordered by path, and whether it covered all folders."""

    trials: list[TrialFolder]
    complete: bool


def find_trials(path: str, limit: int = 1000) -> TrialSearch:
    """Search a path and the folders below it, level by level, for trials.

    Links below the path and hidden folders are skipped. The search ends after `LEVELS` levels,
    after `LOCAL_FOLDERS` or `S3_FOLDERS` folders, or once it has `limit` trials.

    Parameters
    ----------
    path
        A local path or an ``s3://`` address.
    limit
        The largest number of trials to return.

    Raises
    ------
    TrialError
        If the path does not exist or cannot be listed; the message suggests the nearest name.
    """
    names, folders = _open(path)
    try:
        top = sorted(names(""))
    except FileNotFoundError:
        raise TrialError(missing(path)) from None
    except OSError as err:
        msg = f"{path!r} cannot be listed: {err.strerror}. Give the folder of a trial or of trials."
        raise TrialError(msg) from err
    except StorageUnavailableError as err:
        msg = f"{path!r} cannot be listed: {err.reason}."
        raise TrialError(msg) from err
    return _collect(path, _Search(names, folders), top, limit)


def _collect(path: str, search: "_Search", top: Sequence[str], limit: int) -> TrialSearch:
    """Return the first trials of a search whose top folder has the names `top`."""
    roots = list(islice(search.run(top), limit + 1))
    trials = [
        TrialFolder(_path_of(path, folder), tensors, profiler)
        for folder, tensors, profiler in sorted(roots[:limit])
    ]
    return TrialSearch(trials, search.complete and len(roots) <= limit)


def trials_below(path: str, seconds: float = math.inf) -> list[TrialFolder]:
    """Return the first trials below a path, or [] if the path may be a trial itself.

    A path that does not exist, is empty, or cannot be listed within `seconds` may still become a
    trial.
    """
    with suppress(TrialError, OSError, StorageUnavailableError, WaitEndedError):
        names, folders = _open(path, min(seconds, HINT_TIMEOUT_S))
        top = sorted(names(""))
        if not any(name in _OF_TRIALS or name == END_OF_JOB for name in top):
            return _collect(path, _Search(names, folders), top, HINTED_TRIALS)[0]
    return []


def missing(path: str, seconds: float = math.inf) -> str:
    """Return the error message for a path that does not exist, with the nearest existing path."""
    nearest = nearest_path(path, seconds)
    hint = f" Did you mean {nearest!r}?" if nearest else ""
    return f"Trial {path!r} does not exist.{hint}"


def nearest_path(path: str, seconds: float = math.inf) -> str | None:
    """Return the existing path that is most similar to a missing one; None if none is similar.

    Parameters
    ----------
    seconds
        The longest time to wait for storage.
    """
    base, parts = _split(path)
    with suppress(TrialError, OSError):
        names, _ = _open(base, min(seconds, HINT_TIMEOUT_S))
        for depth in reversed(range(len(parts))):
            siblings = _list_or_none(names, "".join(f"{part}/" for part in parts[:depth]))
            if siblings is None:
                continue
            by_fold = {name[:-1].casefold(): name[:-1] for name in siblings if name.endswith("/")}
            close = get_close_matches(parts[depth].casefold(), by_fold, n=1)
            if not close:
                return None
            near = [*parts[:depth], by_fold[close[0]]]
            whole = [*near, *parts[depth + 1 :]]
            exists = _list_or_none(names, "".join(f"{part}/" for part in whole)) is not None
            return _path_of(base, "/".join(whole if exists else near))
    return None


class _Search:
    """A breadth-first search for trials.

    Attributes
    ----------
    complete
        Whether no folder has been skipped so far.
    """

    def __init__(self, names: ListFolder, folders: int) -> None:
        self._names = names
        self._remaining = folders
        self.complete = True

    def run(self, top: Sequence[str]) -> Iterator[tuple[str, bool, bool]]:
        """Yield the folder of each trial, and whether it holds tensors and profiler data."""
        level = [("", self._bounded(top))]
        for _ in range(LEVELS + 1):
            below: list[str] = []
            for folder, names in level:
                tensors = END_OF_JOB in names or self._has(folder, names, _TENSORS)
                profiler = self._has(folder, names, _PROFILER)
                if tensors or profiler:
                    yield folder, tensors, profiler
                below += [folder + name for name in names if _may_hold(name, tensors or profiler)]
            level = [(folder, self._of(folder)) for folder in below]
            if not level:
                return
        self.complete = False

    def _has(self, folder: str, names: Sequence[str], marks: dict[str, re.Pattern[str]]) -> bool:
        return any(
            mark.fullmatch(name)
            for inner, mark in marks.items()
            if inner in names
            for name in self._of(folder + inner)
        )

    def _of(self, folder: str) -> Sequence[str]:
        """Return the names in a folder; none if it cannot be listed or the limit is reached."""
        self._remaining -= 1
        return self._bounded(_list_or_none(self._names, folder) if self._remaining >= 0 else None)

    def _bounded(self, names: Sequence[str] | None) -> Sequence[str]:
        self.complete &= names is not None and len(names) <= ENTRIES
        return (names or ())[:ENTRIES]


def _may_hold(name: str, in_trial: bool) -> bool:
    """Return whether to look for trials in a folder of this name."""
    hidden = name.startswith(".") or not name.endswith("/")
    return not hidden and not (in_trial and name in _OF_TRIALS)


def _list_or_none(names: ListFolder, folder: str) -> list[str] | None:
    """Return the sorted names in a folder, or None if it does not exist or cannot be listed."""
    with suppress(OSError, StorageUnavailableError, WaitEndedError):
        return sorted(names(folder))
    return None


def _split(path: str) -> tuple[str, list[str]]:
    """Return the root of a path, and the names of its folders."""
    if is_s3(path):
        with suppress(SMDebugError):
            bucket, prefix = parse_s3(path)
            return f"s3://{bucket}", [part for part in prefix.split("/") if part]
        return path, []
    parts = Path(path.strip()).expanduser()
    return parts.anchor or ".", [part for part in parts.parts if part != parts.anchor]


def _path_of(path: str, folder: str) -> str:
    """Return the path of a folder below `path`, in the form for users."""
    if is_s3(path):
        return "/".join(filter(None, [path.strip().removesuffix("/"), folder.removesuffix("/")]))
    return str(Path(open_store(path).uri) / folder)


def _open(path: str, seconds: float = math.inf) -> tuple[ListFolder, int]:
    """Return a function that lists the folders below a path, and the limit of its calls.

    Parameters
    ----------
    seconds
        The longest time to wait for storage in total.

    Raises
    ------
    TrialError
        If storage of this kind cannot be read.
    """
    try:
        return (
            (_s3_names(path, seconds), S3_FOLDERS)
            if is_s3(path)
            else (_local_names(path), LOCAL_FOLDERS)
        )
    except SMDebugError as err:
        raise TrialError(str(err)) from err


def _local_names(path: str) -> ListFolder:
    root = Path(open_store(path).uri)

    def names(folder: str) -> list[str]:
        with os.scandir(root / folder) as entries:
            return [
                entry.name + "/" * entry.is_dir(follow_symlinks=False)
                for entry in islice(entries, ENTRIES + 1)
            ]

    return names


def _s3_names(path: str, seconds: float) -> ListFolder:
    from rule_core.storage.s3.settings import S3Settings

    settings = S3Settings.from_environment()
    store = S3Store(settings.bucket(path))
    clock = SystemClock()
    end = clock.monotonic() + seconds
    patient = RetryingStore(store, clock, settings.deadline_s)
    patient.patience = WaitBudget(clock, lambda: end - clock.monotonic())

    def names(folder: str) -> list[str]:
        entries = patient.ask(lambda: list(islice(store.list_folder(folder), ENTRIES + 1)))
        if not entries:
            raise FileNotFoundError(folder)
        return entries

    return names
