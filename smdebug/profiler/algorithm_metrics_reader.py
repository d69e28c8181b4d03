"""Readers of framework events by range of time, or by step, in a local folder or in S3.

Files are read as a stream: of each, only the events that were asked for are kept.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from smdebug.profiler.file_names import TraceFile
from smdebug.profiler.metrics_reader_base import LocalReader, MetricsReaderBase, S3Reader
from smdebug.profiler.trace_assembly import OpenEvents
from smdebug.profiler.trace_event import TraceEvent, overlapping
from smdebug.profiler.trace_files import FILE_TYPES, events_of

_KINDS: Final = tuple(FILE_TYPES)


class AlgorithmMetricsReader(MetricsReaderBase):
    """Reads framework events; see `MetricsReaderBase`.

    An event is in a range of time if it overlaps it, if only by touching; its type is its name or
    its phase. Events come kind by kind: of Python timelines, of those of frameworks, of profiles
    of TensorFlow, of Horovod's and of smdataparallel's; of each in the order of the files.

    Parameters
    ----------
    path
        The folder or S3 address that holds ``framework``; it may not be there yet.
    use_in_memory_cache
        Keep the events of files that were read; by default they are read again for each question.
    """

    def __init__(self, path: str | os.PathLike[str], use_in_memory_cache: bool = False) -> None:
        super().__init__(path, use_in_memory_cache)
        # The events of files, and those that were still open at their ends.
        self._kept: dict[str, tuple[list[TraceEvent], OpenEvents]] = {}

    def _stamps(self) -> Iterator[int]:
        for files in self.files.traces.values():
            yield from (file.end_us for file in files)

    def _is_open_ended(self, end_us: int) -> bool:
        """Say that new files may hold any event: names of files tell when their last one ends."""
        del end_us
        return True

    def _events(
        self, start_us: int, end_us: int, event_type: str | None, suffixes: Sequence[str] | None
    ) -> list[TraceEvent]:
        files = self.files.traces_between(start_us, end_us)
        if suffixes is not None:
            files = [file for file in files if file.key.endswith(tuple(suffixes))]
        return list(overlapping(self._events_of(files), start_us, end_us, event_type))

    def _events_of(self, files: Iterable[TraceFile]) -> Iterator[TraceEvent]:
        """Yield the events of files; some begin in one file and end in the next."""
        begun: dict[tuple[str, str], OpenEvents] = {}
        for file in sorted(files, key=lambda one: _KINDS.index(one.kind)):
            waiting = begun.setdefault((file.kind, file.node), {})
            if not self._keeps_all:
                yield from self._read(file, waiting)
                continue
            if file.key not in self._kept:
                events = list(self._read(file, waiting))
                self._kept[file.key] = events, _copy(waiting)
            events, left = self._kept[file.key]
            begun[file.kind, file.node] = _copy(left)
            yield from events

    def _read(self, file: TraceFile, begun: OpenEvents) -> Iterator[TraceEvent]:
        problems: list[str] = []
        yield from events_of(self.files.store, file.key, problems, open_events=begun)
        if problems:
            self.damages.report(file.key, " ".join(problems), len(problems))


def _copy(begun: OpenEvents) -> OpenEvents:
    return {row: list(waiting) for row, waiting in begun.items()}


class LocalAlgorithmMetricsReader(LocalReader, AlgorithmMetricsReader):
    """Reads the framework events below a folder; see `LocalReader`."""


class S3AlgorithmMetricsReader(S3Reader, AlgorithmMetricsReader):
    """Reads the framework events below an S3 address; see `S3Reader`."""
