"""ConvertedStore: a folder with files of other tools, seen as a folder of profiler data."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rule_core.exceptions import SMDebugRuntimeError
from rule_core.logger import get_logger
from rule_core.profiler.converted.format import (
    FORMATS,
    ConvertedFormat,
    has_known_name,
    may_be_converted,
    recognize,
)
from rule_core.profiler.files.conversion import Converted, NumberedKey
from rule_core.profiler.files.file_names import trace_file
from rule_core.profiler.files.file_problems import ProfilerFileProblems
from rule_core.profiler.files.one_file import one_file
from rule_core.profiler.files.profiler_files import ProfilerFiles
from rule_core.storage.base import (
    ByteRange,
    FileStatus,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.local import LocalStore

_PROFILER_FOLDERS: Final = ("system/", "framework/")
_END_MARK: Final = "framework/training_job_end.ts"
_MOST_KEYS: Final = 20_000  # listed to find files
_MOST_SNIFFED: Final = 1_000  # files of other names that are looked into
_TOO_MANY: Final = f"Files of other tools are looked for among the first {_MOST_KEYS:,} files only."
Report = Callable[[str, str, int], None]


class ConvertedStore:
    """The files of a job; if a profiler wrote none, those that other tools' are converted to.

    A folder with ``system`` or ``framework`` keeps its files as they are. Files of other tools are
    converted once, when they are first listed. They are written when they are complete, so the job
    has ended.

    Parameters
    ----------
    store
        The folder.
    report
        Called with the key of a file, a problem, and the number of lost parts.
    only
        The key of the only file to read; "" reads all.

    Attributes
    ----------
    only
        As given.
    is_profiled
        Whether a profiler wrote files, as far as they were looked for.
    refusals
        Why files that were looked into cannot be read, by key.

    Raises
    ------
    SMDebugRuntimeError
        By `list_keys`, if the temporary files cannot be written.
    """

    def __init__(self, store: TrialStore, report: Report, only: str = "") -> None:
        self.refusals: dict[str, str] = {}
        self._store = store
        self._report = report
        self.only = only
        self._files: dict[str, Path] = {}
        self.is_profiled = False
        self._numbers = count(1)
        self._formats: dict[str, ConvertedFormat | None] = {}  # None: of no format
        self._converted: set[str] = set()
        self._sizes: dict[str, int] = {}  # of recognized files
        self._ends: dict[str, tuple[str, int]] = {}  # node, and end in epoch us, of timelines
        self._starts: list[int | None] = []  # of converted files, in epoch us
        self._folder: TemporaryDirectory[str] | None = None

    @property
    def uri(self) -> str:
        """The root as the user would write it."""
        return f"{self._store.uri}/{self.only}" if self.only else self._store.uri

    @property
    def costs(self) -> ReadCosts:
        """The costs of reading; converted files are local."""
        return ReadCosts() if self._files else self._store.costs

    @property
    def converts(self) -> bool:
        """Whether the files that were listed come from other tools."""
        return bool(self._files)

    @property
    def first_us(self) -> int | None:
        """The start of the data in epoch microseconds; None if only names of files have it."""
        return min((start or 0 for start in self._starts), default=0) or None

    @property
    def formats(self) -> list[ConvertedFormat]:
        """The formats of the files that were converted."""
        used = {self._formats[key] for key in self._converted} if self._files else ()
        return [each for each in FORMATS if each in used]

    def finds_formats(self) -> list[ConvertedFormat]:
        """Return the formats of files if a profiler wrote none, without converting them.

        A folder that does not exist or cannot be listed has none.
        """
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            used = self._recognized().values()
            return [each for each in FORMATS if each in used]
        return []

    def files_ending(self, time_us: int) -> list[str]:
        """Return, for each node, the key of the first timeline that ends at or after a time."""
        later = sorted(
            (end, key, node) for key, (node, end) in self._ends.items() if end >= time_us
        )
        first: dict[str, str] = {}
        for _, key, node in later:
            first.setdefault(node, key)
        return list(first.values())

    def bytes_to_convert(self) -> int:
        """Return the size of all files of other tools; 0 if a profiler wrote files.

        A folder that does not exist or cannot be listed has none.
        """
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            for key in self._recognized():
                if key not in self._sizes:
                    self._sizes[key] = self._store.status(key).size
        return sum(self._sizes.values())

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys; see `TrialStore`."""
        if not prefix:
            yield from [self.only] if self.only else self._store.list_keys("")
        elif not self._has_converted_only():
            yield from self._store.list_keys(prefix, start_after=start_after)
        else:
            keys = (key for key in (*self._files, _END_MARK) if key.startswith(prefix))
            yield from sorted(key for key in keys if key > start_after)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of `key`; see `TrialStore`."""
        store, name = self._located(key)
        return store.read(name, byte_range)

    def status(self, key: str) -> FileStatus:
        """Return the size and time of `key`; see `TrialStore`."""
        store, name = self._located(key)
        return store.status(name)

    def _located(self, key: str) -> tuple[TrialStore, str]:
        """Return the store of a file, and its key there."""
        path = self._files.get(key)
        return (self._store, key) if path is None else (LocalStore(path.parent), path.name)

    def _has_converted_only(self) -> bool:
        """Convert new files; return whether there are any, and no files of a profiler."""
        recognized = self._recognized()
        if self.is_profiled:
            return False
        new = {key: recognized[key] for key in recognized if key not in self._converted}
        for each in FORMATS:
            if keys := [key for key, format_of in new.items() if format_of is each]:
                self._convert(each, keys)
        for key, reason in self.refusals.items() if self._converted else ():
            self._report(key, reason, 1)
        return bool(self._converted)

    def _recognized(self) -> dict[str, ConvertedFormat]:
        """Return the formats of files by key; none if a profiler wrote files."""
        if not (self.only or self._files or self.is_profiled):
            folders = (next(self._store.list_keys(name), None) for name in _PROFILER_FOLDERS)
            self.is_profiled = any(folders)
        if self.is_profiled:
            return {}
        self._recognize_new()
        return {key: each for key, each in self._formats.items() if each is not None}

    def _recognize_new(self) -> None:
        keys = [self.only] if self.only else self._all_keys()
        new = [key for key in keys if key not in self._formats and may_be_converted(key)]
        by_content = [key for key in new if not has_known_name(key)]
        for key in sorted({*new} - {*by_content[_MOST_SNIFFED:]}):
            recognized = recognize(self._store, key)
            self._formats[key] = None if isinstance(recognized, str) else recognized
            if recognized and isinstance(recognized, str):
                self.refusals[key] = recognized

    def _all_keys(self) -> list[str]:
        keys = list(islice(self._store.list_keys(""), _MOST_KEYS + 1))
        if len(keys) > _MOST_KEYS:
            self._report("files", _TOO_MANY, 1)
        return keys[:_MOST_KEYS]

    def _convert(self, format_of: ConvertedFormat, keys: list[str]) -> None:
        get_logger("profiler").info("Reading %d %s.", len(keys), format_of.label)
        numbered = [NumberedKey(next(self._numbers), key) for key in keys]
        try:
            for converted in format_of.convert(self._store, numbered, self._temporary_folder()):
                self._add(converted)
        except OSError as err:
            raise SMDebugRuntimeError(
                f"The {format_of.label} in {self.uri!r} cannot be converted in a temporary "
                f"folder: {err.strerror}. Set TMPDIR to a folder with free space."
            ) from err

    def _add(self, converted: Converted) -> None:
        self._converted.add(converted.source)
        self._files |= converted.files
        if converted.files:
            self._starts.append(converted.first_us)
        timelines = [file for file in map(trace_file, converted.files) if file]
        if timelines:
            self._ends[converted.source] = timelines[0].node, max(file.end_us for file in timelines)
        if converted.problems:
            text = " ".join(converted.problems)
            self._report(converted.source, text, max(converted.lost, 1))

    def _temporary_folder(self) -> Path:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="rule-runner-profiles-")
            weakref.finalize(self, self._folder.cleanup)
        return Path(self._folder.name)


class ConvertedFiles(ProfilerFiles):
    """The files of a job, converted if other tools wrote all of them.

    Parameters
    ----------
    store
        A folder, or what `open_store` returns for the path of one file.
    """

    store: ConvertedStore

    def __init__(self, store: TrialStore) -> None:
        problems = ProfilerFileProblems(store.uri)
        folder, name = one_file(store, may_be_converted)
        super().__init__(ConvertedStore(folder, problems.report, name), problems)
