"""ProfilerFiles: which system and framework files of a job there are, and which to read."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from smdebug.profiler import file_names
from smdebug.profiler.file_names import SystemFile, TraceFile
from smdebug.profiler.profiler_constants import time_buffer_us, trailing_duration_us
from smdebug.storage.protocol import ObjectNotFoundError, TrialStore

F = TypeVar("F", bound=SystemFile | TraceFile)
Writer = tuple[str, str]  # kind and node


class Listing(Generic[F]):
    """The files under one prefix, as they come.

    Parameters
    ----------
    store, prefix
        Where they are.
    parse
        Returns what keys say; those of foreign tools are left out.
    """

    def __init__(
        self, store: TrialStore, prefix: str, parse: Callable[[Iterable[str]], Iterator[F]]
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._parse = parse
        self._known: dict[str, F] = {}
        self._by_time: list[F] = []

    def new(self, *, whole: bool) -> list[F]:
        """Return the files that were not there at the last look.

        Parameters
        ----------
        whole
            Look for files that come late, too, however late.
        """
        after = "" if whole else self._cursor()
        keys = self._store.list_keys(self._prefix, start_after=after)
        found = [one for one in self._parse(keys) if one.key not in self._known]
        for one in found:
            self._known[one.key] = one
            insort(self._by_time, one)
        return found

    def _cursor(self) -> str:
        """Return the key behind which new files of a remote store are: "" if that is not known.

        It is known as long as names are in the order of time.
        """
        if self._store.costs.parallel <= 1 or not self._by_time:
            return ""
        newest = self._by_time[-1][0]
        at = bisect_left(self._by_time, newest - trailing_duration_us(), key=lambda one: one[0])
        last = max((one.key for one in self._by_time[:at]), default="")
        return last if all(one.key > last for one in self._by_time[at:]) else ""


class ProfilerFiles:
    """The files of one training job; `refresh` looks once at what is there, and never waits.

    Parameters
    ----------
    store
        The folder that holds ``system`` and ``framework``.

    Attributes
    ----------
    system
        Files of system metrics by node, ascending.
    traces
        Timelines by kind and node, ascending.
    ended
        Whether the training job had left its end mark before the last look.
    looks
        How often `refresh` was called.
    """

    def __init__(self, store: TrialStore) -> None:
        self.store = store
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
        """Say whether the training job has left its end mark."""
        try:
            return self.ended or any(
                mark in self.store.list_keys(mark) for mark in file_names.END_MARKS
            )
        except ObjectNotFoundError:  # the folder itself is not there yet
            return False

    def refresh(
        self, *, whole: bool = False, ended: bool | None = None
    ) -> tuple[list[SystemFile], list[TraceFile]]:
        """Look once for new files, and for the end mark before; return the new files.

        Parameters
        ----------
        whole
            Look for files that came late, too.
        ended
            Whether the end mark is there; None is to look for it.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked.
        """
        self.looks += 1
        try:
            ended = self.has_end_mark() if ended is None else ended
            whole |= ended
            system = self._system.new(whole=whole)
            # A profile and the file that says its time may lie far apart.
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
        """Say whether more may be written to a file of system metrics: its node has no later."""
        return not self.ended and self.system[file.node][-1] == file

    def system_between(self, start_us: int, end_us: int) -> list[SystemFile]:
        """Return the files that may hold samples of ``start_us <= time <= end_us``, in order.

        Of each node: from the one that begins at or before the start to the first that begins at
        or after the end, both moved outward by the time buffer.
        """
        buffer = time_buffer_us()
        found = []
        for files in self.system.values():
            first = bisect_right(files, start_us - buffer, key=lambda one: one.start_us)
            last = bisect_left(files, end_us + buffer, key=lambda one: one.start_us)
            found.append(files[max(first - 1, 0) : last + 1])
        return sorted(chain.from_iterable(found))

    def traces_between(self, start_us: int, end_us: int) -> list[TraceFile]:
        """Return the timelines that may hold events of a range of time, in order.

        Of each writer: from the first that ends at or after the start to the first that ends at or
        after the end, both moved outward by the time buffer.
        """
        buffer = time_buffer_us()
        found = []
        for files in self.traces.values():
            first = bisect_left(files, start_us - buffer, key=lambda one: one.end_us)
            last = bisect_left(files, end_us + buffer, key=lambda one: one.end_us)
            found.append(files[first : last + 1])
        return sorted(chain.from_iterable(found))


def _each(parse: Callable[[str], F | None]) -> Callable[[Iterable[str]], Iterator[F]]:
    """Return what parses many keys, made of what parses one."""

    def parse_all(keys: Iterable[str]) -> Iterator[F]:
        for key in keys:
            found = parse(key)
            if found is not None:
                yield found

    return parse_all
