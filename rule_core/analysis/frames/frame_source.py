"""FrameSource: the samples and events for frames, read file by file."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from rule_core.analysis.frames.frame_rows import EventRows, SampleRows
from rule_core.model.patterns import search
from rule_core.profiler.converted.store import ConvertedFiles
from rule_core.profiler.readers.framework_reader import (
    AlgorithmMetricsReader,
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
)
from rule_core.profiler.readers.system_reader import (
    LocalSystemMetricsReader,
    S3SystemMetricsReader,
    SystemMetricsReader,
)
from rule_core.profiler.system.samples import SeriesKey
from rule_core.profiler.system.source import SystemSource
from rule_core.profiler.traces.event import TraceEvent
from rule_core.profiler.traces.source import CACHED_BYTES, TraceSource
from rule_core.storage.uri import is_s3, open_store

EVER_US: Final = (0, 1 << 53)  # up to the year 2255


class FrameSource:
    """Reads the samples and events of one training job.

    Parameters
    ----------
    path
        The folder or S3 address with ``system`` and ``framework``.
    keep_events
        Whether to keep all parsed events in memory.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep_events: bool) -> None:
        self._path = os.fspath(path)
        self._files = ConvertedFiles(open_store(path))
        self._system = SystemSource(self._files)
        self._traces = TraceSource(self._files, sys.maxsize if keep_events else CACHED_BYTES)
        self._files.refresh()

    @cached_property
    def system_reader(self) -> SystemMetricsReader:
        """A separate reader of system metrics."""
        reader = S3SystemMetricsReader if is_s3(self._path) else LocalSystemMetricsReader
        return reader(self._path)

    @cached_property
    def framework_reader(self) -> AlgorithmMetricsReader:
        """A separate reader of framework metrics."""
        reader = S3AlgorithmMetricsReader if is_s3(self._path) else LocalAlgorithmMetricsReader
        return reader(self._path)

    def refresh(self) -> None:
        """Look for new files."""
        self._files.refresh()

    @property
    def first_system_us(self) -> int:
        """The start of system metrics in epoch microseconds, by file names; 0 without any."""
        return min((files[0].start_us for files in self._files.system.values()), default=0)

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """The series of samples, by number."""
        return self._system.series.keys

    def take_samples(
        self, rows: SampleRows, start_us: int, end_us: int, names: Sequence[str]
    ) -> None:
        """Add the samples of ``start_us <= time <= end_us`` with `names`; all if empty."""
        for columns in self._system.columns(start_us, end_us):
            is_selected = np.array([not names or key.name in names for key in self.keys])
            rows.extend(columns, is_selected[columns.series])

    def events(self, start_us: int, end_us: int, names: Sequence[str]) -> Iterator[TraceEvent]:
        """Yield the events that overlap a time range, by name or phase; all if `names` is empty."""
        for event in self._traces.overlapping(start_us, end_us):
            if not names or event.event_name in names or event.event_phase in names:
                yield event

    def take_events(
        self, rows: EventRows, start_us: int, end_us: int, names: Sequence[str]
    ) -> None:
        """Add the events that `events` yields, or nothing for an empty range."""
        if start_us < end_us:
            rows.extend(self.events(start_us, end_us, names))

    def take_matching(self, rows: EventRows, patterns: Sequence[str]) -> None:
        """Add all events whose name or phase matches a pattern; all without patterns."""
        rows.extend(
            event
            for event in self.events(*EVER_US, ())
            if not patterns or _matches(event, patterns)
        )


def _matches(event: TraceEvent, patterns: Sequence[str]) -> bool:
    names = event.event_name, event.event_phase
    return any(search(pattern, name) for pattern in patterns for name in names)
