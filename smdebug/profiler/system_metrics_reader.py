"""Readers of system metrics by range of time, in a local folder or in S3."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.profiler.metrics_reader_base import LocalReader, MetricsReaderBase, S3Reader
from smdebug.profiler.profiler_constants import time_buffer_us
from smdebug.profiler.system_profiler_file_parser import (
    ProfilerSystemEvent,
    ProfilerSystemEvents,
    events_of_samples,
)
from smdebug.profiler.system_samples import SystemSamples
from smdebug.profiler.system_source import CACHED_BYTES, SystemSource

__all__ = [
    "LocalSystemMetricsReader",
    "ProfilerSystemEvents",
    "S3NumpySystemMetricsReader",
    "S3SystemMetricsReader",
    "SystemMetricsReader",
]


class SystemMetricsReader(MetricsReaderBase):
    """Reads system metrics; see `MetricsReaderBase`."""

    def __init__(self, path: str | os.PathLike[str], use_in_memory_cache: bool = False) -> None:
        super().__init__(path, use_in_memory_cache)
        cached = None if use_in_memory_cache else CACHED_BYTES
        self._source = SystemSource(self.files, self.damages, cached)

    def _stamps(self) -> Iterator[int]:
        for files in self.files.system.values():
            yield from (file.start_us for file in files)

    def _is_open_ended(self, end_us: int) -> bool:
        return super()._is_open_ended(end_us + time_buffer_us())

    def _events(
        self, start_us: int, end_us: int, event_type: str | None, suffixes: Sequence[str] | None
    ) -> list[ProfilerSystemEvent]:
        found = [
            event
            for one in self._source.columns(start_us, end_us, suffixes)
            for event in events_of_samples(
                one.time_s, one.value, one.series, self._source.series.keys
            )
        ]
        return found if event_type is None else [one for one in found if one.type == event_type]

    def samples(self, start_us: int, end_us: int) -> SystemSamples:
        """Return the samples of ``start_us <= time < end_us`` in columns, which cost less."""
        if self._is_open_ended(end_us):
            self.refresh_event_file_list()
        return self._source.samples(start_us, end_us)


class LocalSystemMetricsReader(LocalReader, SystemMetricsReader):
    """Reads the system metrics below a folder; see `LocalReader`."""


class S3SystemMetricsReader(S3Reader, SystemMetricsReader):
    """Reads the system metrics below an S3 address; see `S3Reader`."""


class S3NumpySystemMetricsReader:
    """A bulk reader of the platform's own that is not offered.

    Raises
    ------
    SMDebugNotImplementedError
        Always: it says what to use instead.
    """

    def __init__(self, *given: Any, **more: Any) -> NoReturn:
        del given, more
        msg = (
            "S3NumpySystemMetricsReader is not offered. Use the arrays that "
            "S3SystemMetricsReader(address).samples(start_us, end_us) returns."
        )
        raise SMDebugNotImplementedError(msg)
