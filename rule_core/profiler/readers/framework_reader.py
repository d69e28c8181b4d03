"""Readers of framework events by time range or step, in a local folder or S3.

Files are streamed, and only the requested events are kept.
"""

import os
from collections.abc import Iterable, Iterator, Sequence

from rule_core.profiler.files.file_names import TraceFile
from rule_core.profiler.readers.metrics_reader import LocalReader, MetricsReaderBase, S3Reader
from rule_core.profiler.traces.assembler import OpenEvents, copy_open_events
from rule_core.profiler.traces.event import TraceEvent, overlapping
from rule_core.profiler.traces.files import by_kind, events_of


class AlgorithmMetricsReader(MetricsReaderBase):
    """Reads framework events; see `MetricsReaderBase`.

    An event is in a time range if it overlaps or touches it; its type is its name or its phase.
    Events are ordered by kind (Python timelines, framework timelines, TensorFlow profiles, Horovod,
    smdataparallel), then by file.

    Parameters
    ----------
    path
        The folder or S3 address with ``framework``, which need not exist yet.
    use_in_memory_cache
        Whether to keep the events of files; by default each query reads them again.
    """

    def __init__(self, path: str | os.PathLike[str], use_in_memory_cache: bool = False) -> None:
        super().__init__(path, use_in_memory_cache)
        # The events of each file, and those still open at its end.
        self._events_by_key: dict[str, tuple[list[TraceEvent], OpenEvents]] = {}

    def _stamps(self) -> Iterator[int]:
        for files in self.files.traces.values():
            yield from (file.end_us for file in files)

    def _is_open_ended(self, end_us: int) -> bool:
        """Return True: a new file may contain events of any time, only its last end is known."""
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
        """Yield the events of files; an event may begin in one file and end in the next."""
        open_events: dict[tuple[str, str], OpenEvents] = {}
        for file in by_kind(files):
            pending = open_events.setdefault((file.kind, file.node), {})
            if not self._keeps_all:
                yield from self._read(file, pending)
                continue
            if file.key not in self._events_by_key:
                events = list(self._read(file, pending))
                self._events_by_key[file.key] = events, copy_open_events(pending)
            events, still_open = self._events_by_key[file.key]
            open_events[file.kind, file.node] = copy_open_events(still_open)
            yield from events

    def _read(self, file: TraceFile, open_events: OpenEvents) -> Iterator[TraceEvent]:
        problems: list[str] = []
        yield from events_of(self.files.store, file.key, problems, open_events=open_events)
        if problems:
            self.file_problems.report(file.key, " ".join(problems), len(problems))


class LocalAlgorithmMetricsReader(LocalReader, AlgorithmMetricsReader):
    """Reads framework events from a folder; see `LocalReader`."""


class S3AlgorithmMetricsReader(S3Reader, AlgorithmMetricsReader):
    """Reads framework events from S3; see `S3Reader`."""
