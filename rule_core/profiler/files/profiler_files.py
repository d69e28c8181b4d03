"""ProfilerFiles: the system and framework files of a job, and which to read for a time range."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from rule_core.format.paths import COLLECTIONS, END_OF_JOB
from rule_core.profiler.files import file_names
from rule_core.profiler.files.constants import time_buffer_us, trailing_duration_us
from rule_core.profiler.files.file_names import SystemFile, TraceFile
from rule_core.profiler.files.file_problems import ProfilerFileProblems
from rule_core.storage.base import ObjectNotFoundError, TrialStore

F = TypeVar("F", bound=SystemFile | TraceFile)
Writer = tuple[str, str]  # kind and node


class Listing(Generic[F]):
    """The files under one prefix, in order of discovery.

    Parameters
    ----------
    store, prefix
        Location of the files.
    parse
        Parses keys, ignoring those of other tools.
    """

    def __init__(
        self, store: TrialStore, prefix: str, parse: Callable[[Iterable[str]], Iterator[F]]
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._parse = parse
        self._by_key: dict[str, F] = {}
        self._by_time: list[F] = []

    def new(self, *, whole: bool) -> list[F]:
        """Return the files that are new since the last call.

        Parameters
        ----------
        whole
            Whether to list all files, including late ones.
        """
        after = "" if whole else self._cursor()
        keys = self._store.list_keys(self._prefix, start_after=after)
        new_files = [file for file in self._parse(keys) if file.key not in self._by_key]
        for file in new_files:
            self._by_key[file.key] = file
            insort(self._by_time, file)
        return new_files

    def _cursor(self) -> str:
        """Return the key after which new files of a remote store follow, or "" to list all.

        This requires that the order of keys is the order of times.
        """
        if self._store.costs.parallel <= 1 or not self._by_time:
            return ""
        newest = self._by_time[-1][0]
        start = newest - trailing_duration_us()
        index = bisect_left(self._by_time, start, key=lambda file: file[0])
        last = max((file.key for file in self._by_time[:index]), default="")
        return last if all(file.key > last for file in self._by_time[index:]) else ""


class ProfilerFiles:
    """The files of one training job; `refresh` lists them once and never waits.

    Parameters
    ----------
    store
        The folder with ``system`` and ``framework``.
    problems
        Takes the problems of files that cannot be read.

    Attributes
    ----------
    store, problems
        As given.
    system
        Files of system metrics by node, ascending.
    traces
        Timelines by kind and node, ascending.
    ended
        Whether the end mark existed before the last refresh.
    looks
        The number of calls of `refresh`.
    """

    def __init__(self, store: TrialStore, problems: ProfilerFileProblems) -> None:
        self.store = store
        self.problems = problems
        self.system: dict[str, list[SystemFile]] = {}
        self.traces: dict[Writer, list[TraceFile]] = {}
        self.ended = False
        self.looks = 0
        self._system = Listing(store, file_names.SYSTEM, _each(file_names.system_file))
        self._traces = (
            Listing(store, file_names.TRACES, _each(file_names.trace_file)),
            Listing(store, file_names.TF_TRACES, file_names.tf_trace_files),
        )

    def has_end_mark(self) -> bool:
        """Return whether the end mark of the training job exists.

        In the root, beside profiler data, it counts unless it may be that of tensors.
        """
        empty = self.looks > 0 and not (self.system or self.traces)
        try:
            return (
                self.ended
                or any(map(self._has, file_names.END_MARKS))
                or (self._has(END_OF_JOB) and (empty or not self._has(COLLECTIONS)))
            )
        except ObjectNotFoundError:  # the folder does not exist yet
            return False

    def _has(self, key: str) -> bool:
        """Return whether a file exists, or for a folder's key whether it has files."""
        return any(other == key or key.endswith("/") for other in self.store.list_keys(key))

    def refresh(
        self, *, whole: bool = False, ended: bool | None = None
    ) -> tuple[list[SystemFile], list[TraceFile]]:
        """Look once for the end mark, then for new files; return the new files.

        Parameters
        ----------
        whole
            Whether to look for late files too.
        ended
            Whether the end mark exists; None checks it.

        Raises
        ------
        StorageUnavailableError
            If the store is unavailable.
        """
        self.looks += 1
        try:
            ended = self.has_end_mark() if ended is None else ended
            whole |= ended
            system = self._system.new(whole=whole)
            # A profile and its metadata file may lie far apart.
            traces = [*self._traces[0].new(whole=whole), *self._traces[1].new(whole=True)]
        except ObjectNotFoundError:
            return [], []
        for file in system:
            insort(self.system.setdefault(file.node, []), file)
        for trace in traces:
            insort(self.traces.setdefault((trace.kind, trace.node), []), trace)
        self.ended = ended
        return system, traces

    def is_growing(self, file: SystemFile) -> bool:
        """Return whether a file of system metrics may grow: it is the last one of its node."""
        return not self.ended and self.system[file.node][-1] == file

    def system_between(self, start_us: int, end_us: int) -> list[SystemFile]:
        """Return the files that may contain samples of ``start_us <= time <= end_us``, in order.

        For each node these are the files from the last one that begins at or before the start to
        the first one that begins at or after the end, both moved outward by the time buffer.
        """
        buffer = time_buffer_us()
        selected = []
        for files in self.system.values():
            first = bisect_right(files, start_us - buffer, key=lambda file: file.start_us)
            last = bisect_left(files, end_us + buffer, key=lambda file: file.start_us)
            selected.append(files[max(first - 1, 0) : last + 1])
        return sorted(chain.from_iterable(selected))

    def traces_between(self, start_us: int, end_us: int) -> list[TraceFile]:
        """Return the timelines that may contain events of a time range, in order.

        For each writer these are the files from the first one that ends at or after the start to
        the first one that ends at or after the end, both moved outward by the time buffer.
        """
        buffer = time_buffer_us()
        selected = []
        for files in self.traces.values():
            first = bisect_left(files, start_us - buffer, key=lambda file: file.end_us)
            last = bisect_left(files, end_us + buffer, key=lambda file: file.end_us)
            selected.append(files[first : last + 1])
        return sorted(chain.from_iterable(selected))


def _each(parse: Callable[[str], F | None]) -> Callable[[Iterable[str]], Iterator[F]]:
    """Turn a parser of one key into a parser of many keys."""
    return lambda keys: filter(None, map(parse, keys))
