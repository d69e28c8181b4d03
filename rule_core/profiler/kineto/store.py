"""KinetoStore: a folder with traces of torch.profiler, seen as a folder of profiler data."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rule_core.exceptions import SMDebugRuntimeError
from rule_core.logger import get_logger
from rule_core.profiler.file_names import trace_file
from rule_core.profiler.kineto.conversion import convert_trace
from rule_core.profiler.kineto.trace_names import is_json_name, is_trace, is_trace_name
from rule_core.storage.base import (
    ByteRange,
    FileStatus,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.local import LocalStore
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.uri import is_s3, open_store

_PROFILER_FOLDERS: Final = ("system/", "framework/")
_END_MARK: Final = "framework/training_job_end.ts"
_MOST_KEYS: Final = 20_000  # listed to find traces
_MOST_SNIFFED: Final = 1_000  # JSON files of other names that are looked into
_TOO_MANY: Final = f"Traces are looked for among the first {_MOST_KEYS:,} files only."
Report = Callable[[str, str, int], None]


class KinetoStore:
    """The files of a job; if a profiler wrote none, those that its traces are converted to.

    A folder with ``system`` or ``framework`` keeps its files as they are. Traces are converted
    once, when they are first listed. They are written when they are complete, so the job has ended.

    Parameters
    ----------
    store
        The folder.
    report
        Called with the key of a trace, a problem, and the number of lost parts.
    only
        The key of the only trace to read; "" reads all.

    Raises
    ------
    SMDebugRuntimeError
        By `list_keys`, if the temporary files cannot be written.
    """

    def __init__(self, store: TrialStore, report: Report, only: str = "") -> None:
        self._store = store
        self._report = report
        self._only = only
        self._files: dict[str, Path] = {}
        self._is_profiled = False
        self._converted: set[str] = set()
        self._not_traces: set[str] = set()
        self._sizes: dict[str, int] = {}  # of traces
        self._ends: dict[str, tuple[str, int]] = {}  # node, and end in epoch us, of traces
        self._folder: TemporaryDirectory[str] | None = None

    @property
    def uri(self) -> str:
        """The root as the user would write it."""
        return f"{self._store.uri}/{self._only}" if self._only else self._store.uri

    @property
    def costs(self) -> ReadCosts:
        """The costs of reading; converted files are local."""
        return ReadCosts() if self._files else self._store.costs

    @property
    def has_traces(self) -> bool:
        """Whether the files that were listed come from traces."""
        return bool(self._files)

    def finds_traces(self) -> bool:
        """Return whether there are traces and no files of a profiler, without reading the traces.

        A folder that does not exist or cannot be listed has none.
        """
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return not self._has_profiler_files() and bool(self._converted or self._new_traces())
        return False

    def traces_ending(self, time_us: int) -> list[str]:
        """Return the key of the first trace of each node that ends at or after a time."""
        later = sorted(
            (end, key, node) for key, (node, end) in self._ends.items() if end >= time_us
        )
        first: dict[str, str] = {}
        for _, key, node in later:
            first.setdefault(node, key)
        return list(first.values())

    def trace_bytes(self) -> int:
        """Return the size of all traces; 0 if the folder has files of a profiler.

        A folder that does not exist or cannot be listed has none.
        """
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            if not self._has_profiler_files():
                for key in self._new_traces():
                    self._sizes[key] = self._store.status(key).size
        return sum(self._sizes.values())

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys; see `TrialStore`."""
        if not prefix:
            yield from [self._only] if self._only else self._store.list_keys("")
        elif not self._has_traces_only():
            yield from self._store.list_keys(prefix, start_after=start_after)
        else:
            keys = (key for key in (*self._files, _END_MARK) if key.startswith(prefix))
            yield from sorted(key for key in keys if key > start_after)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of `key`; see `TrialStore`."""
        path = self._files.get(key)
        if path is None:
            return self._store.read(key, byte_range)
        return LocalStore(path.parent).read(path.name, byte_range)

    def status(self, key: str) -> FileStatus:
        """Return the size and time of `key`; see `TrialStore`."""
        path = self._files.get(key)
        return (
            self._store.status(key) if path is None else LocalStore(path.parent).status(path.name)
        )

    def _has_traces_only(self) -> bool:
        """Convert new traces; return whether the folder has traces and no files of a profiler."""
        if self._has_profiler_files():
            return False
        for key in self._new_traces():
            self._convert(key)
        return bool(self._converted)

    def _has_profiler_files(self) -> bool:
        if not (self._only or self._files or self._is_profiled):
            folders = (next(self._store.list_keys(name), None) for name in _PROFILER_FOLDERS)
            self._is_profiled = any(folders)
        return self._is_profiled

    def _new_traces(self) -> list[str]:
        keys = [self._only] if self._only else self._all_keys()
        new = [key for key in keys if is_json_name(key) and key not in self._converted]
        others = [key for key in new if not is_trace_name(key) and key not in self._not_traces]
        looked_at = others[:_MOST_SNIFFED]
        self._not_traces |= {key for key in looked_at if not is_trace(self._store, key)}
        skipped = {*self._not_traces, *others[_MOST_SNIFFED:]}
        return [key for key in new if key not in skipped]

    def _all_keys(self) -> list[str]:
        keys = list(islice(self._store.list_keys(""), _MOST_KEYS + 1))
        if len(keys) > _MOST_KEYS:
            self._report("traces", _TOO_MANY, 1)
        return keys[:_MOST_KEYS]

    def _convert(self, key: str) -> None:
        self._converted.add(key)
        get_logger("profiler").info("Reading trace %r of torch.profiler.", key)
        try:
            number = len(self._converted)
            trace = convert_trace(self._store, key, number, self._temporary_folder())
        except ObjectNotFoundError:  # removed meanwhile
            self._converted.discard(key)
        except StorageUnavailableError as err:
            if err.transient:
                self._converted.discard(key)
                raise
            self._report(key, str(err), 1)
        except OSError as err:
            msg = (
                f"Trace {key!r} cannot be converted in a temporary folder: {err.strerror}. "
                "Set TMPDIR to a folder with free space."
            )
            raise SMDebugRuntimeError(msg) from err
        else:
            self._files |= trace.files
            timelines = [file for file in map(trace_file, trace.files) if file]
            if timelines:
                self._ends[key] = timelines[0].node, timelines[0].end_us
            if trace.problems:
                self._report(key, " ".join(trace.problems), max(trace.lost, 1))

    def _temporary_folder(self) -> Path:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="rule-runner-traces-")
            weakref.finalize(self, self._folder.cleanup)
        return Path(self._folder.name)


def with_traces(store: TrialStore, report: Report) -> KinetoStore:
    """Return a store in which traces of torch.profiler look like the files of a profiler.

    Parameters
    ----------
    store
        A folder, or what `open_store` returns for the path of one trace.
    report
        See `KinetoStore`.
    """
    folder, _, name = store.uri.rstrip("/").rpartition("/")
    if not (is_json_name(name) and (is_s3(store.uri) or Path(store.uri).is_file())):
        return KinetoStore(store, report)
    parent = open_store(folder or "/")
    if isinstance(parent, RetryingStore) and isinstance(store, RetryingStore):
        parent.patience = store.patience
    return KinetoStore(parent, report, name)
