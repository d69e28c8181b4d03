"""find_trials: the trials at a path and below it, in a local folder or in S3."""

import math
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from rule_core.clock import SystemClock
from rule_core.exceptions import SMDebugError
from rule_core.format import marks
from rule_core.format.marks import has_marks
from rule_core.format.paths import END_OF_JOB
from rule_core.profiler.converted import format as profiles
from rule_core.profiler.files.one_file import one_file
from rule_core.reading.source_index import SourceIndex
from rule_core.sources.address import TrialAddress, address_of
from rule_core.sources.format import SourceFolder, SourceFormat, Unreadable
from rule_core.sources.formats import format_named
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.sources.recognize import SourceRun, folder_of, recognize
from rule_core.sources.unread import unread_files
from rule_core.storage.base import StorageUnavailableError, TrialStore
from rule_core.storage.local import LocalStore
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import parse_s3
from rule_core.storage.s3.store import S3Store
from rule_core.storage.uri import is_s3, open_store
from rule_core.storage.wait_budget import WaitBudget, WaitEndedError
from rule_core.trials.open_index import LOOKED_FOR, find_place, open_index
from rule_runner.errors import TrialError, translated, unreadable
from rule_runner.loading.trials import trial_address
from rule_runner.results.file_names import RESULTS

LEVELS: Final = 16  # of folders, below the path
LOCAL_FOLDERS: Final = 100_000  # listed at most
S3_FOLDERS: Final = 1_000  # listed at most; each costs a request
ENTRIES: Final = 100_000  # listed at most of one folder
MANY_ENTRIES: Final = 1_000_000  # by a search that is repeated
TRIALS: Final = 1_000  # returned at most, unless asked for more
HINT_TIMEOUT_S: Final = 10.0  # to search for a hint in an error message
HINTED_TRIALS: Final = 50
HINTED_FOLDERS: Final = 10_000
UNREAD_FILES: Final = 100_000  # named at most
# Folders of installed packages and of results, and names that only such folders hold.
PASSED_OVER: Final = frozenset({"node_modules/", "__pycache__/", "site-packages/", "rule-output/"})
PASSED_OVER_WITH: Final = frozenset({"pyvenv.cfg", "conda-meta/"})
_RESULTS_HEAD: Final = b'{\n  "schema_version"'

# Lists a folder, given as "" or with a trailing slash; names of subfolders end with a slash too.
ListFolder = Callable[[str], Iterable[str]]


class TrialFolder(NamedTuple):
    """A trial that was found, and the kinds of data in it.

    Attributes
    ----------
    path
        Its folder, or its only file.
    tensors, profiler
        Whether it holds tensors or other numbers of a training, and profiler data.
    kinds
        The formats of its files; () for saved tensors and profiler data.
    """

    path: str
    tensors: bool
    profiler: bool
    kinds: tuple[str, ...] = ()


class TrialSearch(NamedTuple):
    """The results of a search.

    Attributes
    ----------
    trials
        Ordered by path.
    complete
        Whether the search covered all folders.
    problems
        Sentences on formats that cannot be used.
    not_read
        Why files that may be outputs of a training are not read, in folders without a trial, and
        folders cannot be listed; by path.
    """

    trials: list[TrialFolder]
    complete: bool
    problems: tuple[str, ...] = ()
    not_read: Mapping[str, str] = {}


def find_trials(
    path: str,
    limit: int = TRIALS,
    folder_limit: int | None = None,
    sources: SourceOptions = DEFAULT,
    looked: Callable[[], None] = lambda: None,
) -> TrialSearch:
    """Search a path and the folders below it, level by level, for trials.

    Links below the path, hidden folders, installed packages and results of rule-runner are skipped.
    The search ends after `LEVELS` levels, after `folder_limit` folders, or once it has `limit`
    trials.

    Parameters
    ----------
    path
        A local path or an ``s3://`` address.
    limit
        The largest number of trials to return.
    folder_limit
        The largest number of folders to list; by default `LOCAL_FOLDERS` or `S3_FOLDERS`.
    sources
        How to read outputs of other writers.
    looked
        Called after each folder.

    Raises
    ------
    TrialError
        If the path does not exist or cannot be listed; the message suggests the nearest name.
    """
    search = _search(path, sources=sources, looked=looked)
    search.remaining = search.remaining if folder_limit is None else folder_limit
    top = search.top(path)
    if top is not None:
        return _collect(search, top, limit)
    trials = _file_trials(search)
    if not trials:
        raise TrialError(missing(path))
    return TrialSearch(trials[:limit], len(trials) <= limit)


def find_new_trials(
    path: str, passes_over: Callable[[str], bool], seconds: float, sources: SourceOptions = DEFAULT
) -> Iterator[TrialFolder]:
    """Search as `find_trials` does, but not in folders that are known; yield what is found.

    One search ends after `LOCAL_FOLDERS` or `S3_FOLDERS` folders. The next one finds more, once
    the trials of this one are passed over.

    Parameters
    ----------
    passes_over
        Tells by its relative path whether not to look into a folder.
    seconds
        The longest time to wait for storage in total.
    sources
        How to read outputs of other writers.

    Raises
    ------
    TrialError
        If the path does not exist, cannot be listed, or storage does not answer in time.
    """
    search = _search(path, seconds, MANY_ENTRIES, sources=sources, passes_over=passes_over)
    top = search.top(path)
    if top is None:
        raise TrialError(missing(path))
    yield from search.run(top)


def _file_trials(search: "_Search") -> list[TrialFolder]:
    """Return the trial that a path to a file means; none if there is no such file.

    Raises
    ------
    TrialError
        If no format reads the file, or storage does not answer.
    """
    address = search.address
    profile = TrialFolder(address.path.strip(), tensors=False, profiler=True)
    if profiles.has_known_name(address.path):
        return [profile]
    with (
        translated(TrialError, SMDebugError),
        unreadable(repr(address.path), TrialError, StorageUnavailableError),
    ):
        if not find_place(address.path, search.store, open_store).file:
            return []
        if _is_profile(address, search.store):
            return [profile]
        index = open_index(str(address), options=search.sources)
    kinds = [source.kind for source in index.sources] if isinstance(index, SourceIndex) else []
    if not kinds:
        raise TrialError(
            f"File {str(address)!r} holds nothing that is read as a trial yet. {LOOKED_FOR}"
        )
    path = address.path.strip()
    path = path if is_s3(path) else str(LocalStore(path).root)
    return [TrialFolder(str(address._replace(path=path)), True, False, tuple(kinds))]


def _is_profile(address: TrialAddress, store: TrialStore) -> bool:
    """Return whether a file without a kind is a profile by its content.

    Raises
    ------
    TrialError
        If it is a profile of a kind that is not read.
    """
    folder, name = one_file(store, profiles.may_be_converted)
    recognized = profiles.recognize(folder, name) if name and not address.kind else ""
    if isinstance(recognized, str) and recognized:
        raise TrialError(f"File {address.path!r} is not read. {recognized}")
    return bool(recognized)


def _collect(search: "_Search", top: Sequence[str], limit: int) -> TrialSearch:
    """Return the first trials of a search whose top folder has the names `top`."""
    every = list(islice(search.run(top), limit + 1))
    trials = sorted(every[:limit])
    if not trials:
        search.add_unread(folder_of(search.store, "", top, lambda _: ()), every=True)
    not_read = {
        _path_of(search.address.path, key): reason for key, reason in search.not_read.items()
    }
    complete = search.complete and len(every) <= limit
    return TrialSearch(trials, complete, tuple(search.problems), not_read)


def trials_below(path: str, seconds: float = math.inf) -> list[TrialFolder]:
    """Return the first trials below a path, or [] if the path may be a trial itself.

    A path that does not exist, is empty, or cannot be listed within `seconds` may still become a
    trial.
    """
    with suppress(TrialError, OSError, StorageUnavailableError, WaitEndedError):
        search = _search(path, min(seconds, HINT_TIMEOUT_S))
        search.remaining = min(search.remaining, HINTED_FOLDERS)
        top = sorted(search.names(""))
        if not any(
            name in marks.FOLDERS or name == END_OF_JOB or profiles.has_known_name(name)
            for name in top
        ):
            return _collect(search, top, HINTED_TRIALS).trials
    return []


def missing(path: str, seconds: float = math.inf) -> str:
    """Return the error message for a path that does not exist, with the nearest existing path."""
    address = address_of(path)
    nearest = nearest_path(address.path, seconds)
    hint = f" Did you mean {str(address._replace(path=nearest))!r}?" if nearest else ""
    return f"Trial {path!r} does not exist.{hint}"


def nearest_path(path: str, seconds: float = math.inf) -> str | None:
    """Return the existing path that is most similar to a missing one; None if none is similar.

    Parameters
    ----------
    seconds
        The longest time to wait for storage.
    """
    base, names_in_path = _split(path)
    with suppress(TrialError, OSError):
        names = _search(base, min(seconds, HINT_TIMEOUT_S)).names
        for depth in reversed(range(len(names_in_path))):
            siblings = _list_or_none(names, "".join(f"{name}/" for name in names_in_path[:depth]))
            if siblings is None:
                continue
            takes_files = depth == len(names_in_path) - 1 and "." in names_in_path[depth]
            by_fold = {
                name.removesuffix("/").casefold(): name.removesuffix("/")
                for name in siblings
                if name.endswith("/") or takes_files
            }
            close = get_close_matches(names_in_path[depth].casefold(), by_fold, n=1)
            if not close:
                return None
            near = [*names_in_path[:depth], by_fold[close[0]]]
            whole = [*near, *names_in_path[depth + 1 :]]
            exists = _list_or_none(names, "".join(f"{name}/" for name in whole)) is not None
            return _path_of(base, "/".join(whole if exists else near))
    return None


@dataclass
class _Search:
    """A breadth-first search for trials.

    Attributes
    ----------
    address
        Where it begins.
    names
        Lists a folder.
    store
        Reads files.
    remaining
        How many folders may still be listed.
    entries
        How many names of a folder to look at.
    formats
        The formats to look for; None: all.
    passes_over
        Tells by its relative path whether not to look into a folder.
    looked
        Called after each folder.
    complete
        Whether no folder has been skipped so far.
    problems
        Sentences on formats that cannot be used.
    not_read
        The reasons why files and folders are not read, by key.
    """

    address: TrialAddress
    names: ListFolder
    store: TrialStore
    remaining: int
    entries: int
    formats: Mapping[str, SourceFormat] | None
    sources: SourceOptions = DEFAULT
    passes_over: Callable[[str], bool] = lambda _: False
    looked: Callable[[], None] = lambda: None
    complete: bool = True
    problems: dict[str, None] = field(default_factory=dict)
    not_read: dict[str, str] = field(default_factory=dict)

    def top(self, path: str) -> list[str] | None:
        """Return the names where the search begins, which the user calls `path`; None: no folder.

        Raises
        ------
        TrialError
            If they cannot be listed.
        """
        try:
            return sorted(self.names(""))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as err:
            reason = f"{err.strerror}. Give the folder of a trial or of trials"
        except (StorageUnavailableError, WaitEndedError) as err:
            reason = getattr(err, "reason", "no answer")
        raise TrialError(f"{path!r} cannot be listed: {reason}.")

    def add_unread(
        self, folder: SourceFolder, refused: Iterable[Unreadable] = (), *, every: bool = False
    ) -> None:
        """Add the files of a folder that are not read; see `unread_files`."""
        if len(self.not_read) < UNREAD_FILES:
            for key, reason in unread_files(folder, refused, every=every).items():
                self.not_read.setdefault(key, reason)

    def run(self, top: Sequence[str]) -> Iterator[TrialFolder]:
        """Yield the trials."""
        level: Iterable[tuple[str, Sequence[str]]] = [("", self._bounded(top))]
        for _ in range(LEVELS + 1):
            below: list[str] = []
            for folder, names in level:
                trials, owned = self._look(folder, names)
                self.looked()
                for trial in trials:
                    yield trial._replace(path=_with_root(self.address, trial.path))
                below += [
                    folder + name
                    for name in names
                    if _may_hold(name, owned) and not self.passes_over(folder + name)
                ]
            if not below:
                return
            level = ((folder, self._of(folder)) for folder in below)
        self.complete = False

    def _look(self, folder: str, names: Sequence[str]) -> tuple[list[TrialFolder], Container[str]]:
        """Return the trials in a folder, and the folders that belong to them."""

        def listed(inner: str) -> Sequence[str]:
            return self._of(folder + inner)

        inside = folder_of(self.store, folder, names, listed)
        if _is_passed_over(inside):
            return [], names
        tensors = has_marks(names, marks.TENSORS, listed)
        profiler = has_marks(names, marks.PROFILER, listed) or any(
            map(profiles.has_known_name, names)
        )
        ours = marks.RECORDED if profiler else marks.FOLDERS
        if tensors:
            ours |= {marks.TENSORBOARD}
        owned = ours if tensors or profiler else frozenset[str]()
        refused: Sequence[Unreadable] = ()
        if not tensors or self.formats:
            recognition = recognize(inside._replace(options=self.sources), self.formats)
            self.problems |= dict.fromkeys(recognition.problems)
            refused = recognition.refused
            if recognition.runs or self.formats:
                runs = list(_trials_of(recognition.runs, folder, named=bool(self.formats)))
                if profiler and not self.formats:
                    runs.append(TrialFolder(folder, tensors=False, profiler=True))
                return runs, recognition.owned | owned
        tensors |= END_OF_JOB in names and not profiler  # which may have its end mark here
        if not (tensors or profiler):
            self.add_unread(inside, refused)
            return [], owned
        return [TrialFolder(folder, tensors, profiler)], ours

    def _of(self, folder: str) -> Sequence[str]:
        """Return the names in a folder; none if it cannot be listed or the limit is reached."""
        self.remaining -= 1
        try:
            return self._bounded(sorted(self.names(folder)) if self.remaining >= 0 else None)
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
            return ()
        except OSError as err:
            self.not_read[folder] = f"it cannot be listed: {err.strerror}"
            return ()
        except (StorageUnavailableError, WaitEndedError):
            return self._bounded(None)

    def _bounded(self, names: Sequence[str] | None) -> Sequence[str]:
        self.complete &= names is not None and len(names) <= self.entries
        return (names or ())[: self.entries]


def _trials_of(runs: Sequence[SourceRun], folder: str, *, named: bool) -> Iterator[TrialFolder]:
    """Yield runs in other formats as trials.

    The path contains the format if the user named it, and where the folder alone would mean all
    runs in it.
    """
    for run in runs:
        kinds = tuple(dict.fromkeys(item.kind for _, item in run.sources))
        is_ambiguous = len(runs) > 1 and run.key == folder
        prefix = f"{kinds[0]}:" if named or is_ambiguous else ""
        yield TrialFolder(prefix + run.key, tensors=True, profiler=False, kinds=kinds)


def _may_hold(name: str, owned: Container[str]) -> bool:
    """Return whether to look for trials in a folder of this name."""
    return (
        name.endswith("/")
        and not name.startswith(".")
        and name not in owned
        and name not in PASSED_OVER
    )


def _is_passed_over(folder: SourceFolder) -> bool:
    """Return whether a folder holds installed packages, or results of rule-runner."""
    return not PASSED_OVER_WITH.isdisjoint(folder.names) or (
        RESULTS in folder.names and folder.head(RESULTS).startswith(_RESULTS_HEAD)
    )


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
            return f"s3://{bucket}", [name for name in prefix.split("/") if name]
        return path, []
    parts = Path(path.strip()).expanduser()
    return parts.anchor or ".", [name for name in parts.parts if name != parts.anchor]


def _with_root(address: TrialAddress, relative: str) -> str:
    """Return the path of a trial whose path below the root of a search is `relative`."""
    below = address_of(f"{relative}/")  # a path must follow the format
    return str(below._replace(path=_path_of(address.path, below.path.strip("/"))))


def _path_of(path: str, folder: str) -> str:
    """Return the path of a folder below `path`, in the form for users."""
    if is_s3(path):
        return "/".join(filter(None, [path.strip().removesuffix("/"), folder.removesuffix("/")]))
    return str(Path(open_store(path).uri) / folder)


def _search(
    path: str, seconds: float = math.inf, entries: int | None = None, **options: Any
) -> _Search:
    """Return a search below a path.

    Parameters
    ----------
    seconds
        The longest time to wait for storage in total.
    entries
        How many names of a folder to list at most; by default `ENTRIES`.
    options
        Other attributes of the search.

    Raises
    ------
    TrialError
        If storage of this kind cannot be read.
    """
    address = trial_address(path)
    formats = {address.kind: format_named(address.kind)} if address.kind else None
    list_names, limit = (
        (_s3_names, S3_FOLDERS) if is_s3(address.path) else (_local_names, LOCAL_FOLDERS)
    )
    entries = ENTRIES if entries is None else entries
    with translated(TrialError, SMDebugError):
        names, store = list_names(address.path, entries, seconds)
    return _Search(address, names, store, limit, entries, formats, **options)


def _local_names(path: str, limit: int, _seconds: float) -> tuple[ListFolder, TrialStore]:
    store = open_store(path)

    def names(folder: str) -> list[str]:
        with os.scandir(Path(store.uri) / folder) as entries:
            return [
                entry.name + "/" * entry.is_dir(follow_symlinks=False)
                for entry in islice(entries, limit + 1)
            ]

    return names, store


def _s3_names(path: str, limit: int, seconds: float) -> tuple[ListFolder, TrialStore]:
    from rule_core.storage.s3.settings import S3Settings

    settings = S3Settings.from_environment()
    store = S3Store(settings.bucket(path))
    clock = SystemClock()
    end = clock.monotonic() + seconds
    patient = RetryingStore(store, clock, settings.deadline_s)
    patient.patience = WaitBudget(clock, lambda: end - clock.monotonic())

    def names(folder: str) -> list[str]:
        entries = patient.ask(lambda: list(islice(store.list_folder(folder), limit + 1)))
        if not entries:
            raise FileNotFoundError(folder)
        return entries

    return names, patient
