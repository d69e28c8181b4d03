"""FrameSource: what frames are made of, read file by file."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from smdebug.core.patterns import search
from smdebug.profiler.algorithm_metrics_reader import (
    AlgorithmMetricsReader,
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
)
from smdebug.profiler.analysis.utils.frame_rows import EventRows, SampleRows
from smdebug.profiler.damages import Damages
from smdebug.profiler.profiler_files import ProfilerFiles
from smdebug.profiler.system_metrics_reader import (
    LocalSystemMetricsReader,
    S3SystemMetricsReader,
    SystemMetricsReader,
)
from smdebug.profiler.system_samples import SeriesKey
from smdebug.profiler.system_source import SystemSource
from smdebug.profiler.trace_event import TraceEvent
from smdebug.profiler.trace_source import CACHED_BYTES, TraceSource
from smdebug.storage.uri import is_s3, open_store

EVER_US: Final = (0, 1 << 53)  # until the year 2255


class FrameSource:
    """Samples and events of one training job.

    Parameters
    ----------
    path
        The folder or S3 address that holds ``system`` and ``framework``.
    keep_events
        Keep all events that were parsed, not some only.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep_events: bool) -> None:
        self._path = os.fspath(path)
        store = open_store(path)
        damages = Damages(store.uri)
        self._files = ProfilerFiles(store)
        self._system = SystemSource(self._files, damages)
        cached = sys.maxsize if keep_events else CACHED_BYTES
        self._traces = TraceSource(self._files, damages, cached)
        self._files.refresh()

    @cached_property
    def system_reader(self) -> SystemMetricsReader:
        """A reader of system metrics by itself."""
        reader = S3SystemMetricsReader if is_s3(self._path) else LocalSystemMetricsReader
        return reader(self._path)

    @cached_property
    def framework_reader(self) -> AlgorithmMetricsReader:
        """A reader of framework metrics by itself."""
        reader = S3AlgorithmMetricsReader if is_s3(self._path) else LocalAlgorithmMetricsReader
        return reader(self._path)

    def refresh(self) -> None:
        """Look for new files."""
        self._files.refresh()

    @property
    def first_system_us(self) -> int:
        """Epoch microseconds at which system metrics begin, by names of files; 0 without any."""
        return min((files[0].start_us for files in self._files.system.values()), default=0)

    @property
    def last_trace_us(self) -> int:
        """Epoch microseconds at which timelines end, by names of files; 0 without any."""
        return max((files[-1].end_us for files in self._files.traces.values()), default=0)

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """The series of samples by their numbers."""
        return self._system.series.keys

    def take_samples(
        self, rows: SampleRows, start_us: int, end_us: int, names: Sequence[str]
    ) -> None:
        """Add the samples of ``start_us <= time <= end_us`` with some names; none are all."""
        for columns in self._system.columns(start_us, end_us):
            named = np.array([not names or key.name in names for key in self.keys])
            rows.extend(columns, named[columns.series])

    def events(self, start_us: int, end_us: int, names: Sequence[str]) -> Iterator[TraceEvent]:
        """Yield the events that overlap a range of time; of these names or phases; none are all."""
        for event in self._traces.overlapping(start_us, end_us):
            if not names or event.event_name in names or event.event_phase in names:
                yield event

    def take_events(
        self, rows: EventRows, start_us: int, end_us: int, names: Sequence[str]
    ) -> None:
        """Add the events that `events` yields; none if the range does not end after it begins."""
        if start_us < end_us:
            rows.extend(self.events(start_us, end_us, names))

    def take_matching(
        self, rows: EventRows, start_us: int, end_us: int, patterns: Sequence[str]
    ) -> None:
        """Add the events of a range in whose name or phase a pattern is found; none are all."""
        if start_us < end_us:
            rows.extend(
                event
                for event in self.events(start_us, end_us, ())
                if not patterns or _matches(event, patterns)
            )


def _matches(event: TraceEvent, patterns: Sequence[str]) -> bool:
    names = event.event_name, event.event_phase
    return any(search(pattern, name) for pattern in patterns for name in names)
