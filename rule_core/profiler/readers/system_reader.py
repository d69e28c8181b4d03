"""Readers of system metrics by time range, in a local folder or S3."""

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from rule_core.exceptions import SMDebugNotImplementedError
from rule_core.profiler.files.constants import time_buffer_us
from rule_core.profiler.readers.metrics_reader import LocalReader, MetricsReaderBase, S3Reader
from rule_core.profiler.system.legacy_parser import ProfilerSystemEvent, events_of_samples
from rule_core.profiler.system.samples import SystemSamples
from rule_core.profiler.system.source import CACHED_BYTES, SystemSource


class SystemMetricsReader(MetricsReaderBase):
    """Reads system metrics; see `MetricsReaderBase`."""

    def __init__(self, path: str | os.PathLike[str], use_in_memory_cache: bool = False) -> None:
        super().__init__(path, use_in_memory_cache)
        cached = math.inf if use_in_memory_cache else CACHED_BYTES
        self._source = SystemSource(self.files, cached)

    def _stamps(self) -> Iterator[int]:
        for files in self.files.system.values():
            yield from (file.start_us for file in files)

    def _is_open_ended(self, end_us: int) -> bool:
        return super()._is_open_ended(end_us + time_buffer_us())

    def _events(
        self, start_us: int, end_us: int, event_type: str | None, suffixes: Sequence[str] | None
    ) -> list[ProfilerSystemEvent]:
        return [
            event
            for columns in self._source.columns(start_us, end_us, suffixes)
            for event in events_of_samples(columns, self._source.series.keys)
            if event_type in {None, event.type}
        ]

    def samples(self, start_us: int, end_us: int) -> SystemSamples:
        """Return the samples of ``start_us <= time < end_us`` in columns, which use less memory."""
        if self._is_open_ended(end_us):
            self.refresh_event_file_list()
        return self._source.samples(start_us, end_us)


class LocalSystemMetricsReader(LocalReader, SystemMetricsReader):
    """Reads system metrics from a folder; see `LocalReader`."""


class S3SystemMetricsReader(S3Reader, SystemMetricsReader):
    """Reads system metrics from S3; see `S3Reader`."""


class S3NumpySystemMetricsReader:
    """An internal bulk reader of SageMaker, which is not supported.

    Raises
    ------
    SMDebugNotImplementedError
        Always; the message names the replacement.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        raise SMDebugNotImplementedError(
            "S3NumpySystemMetricsReader is not supported. Use the arrays that "
            "S3SystemMetricsReader(address).samples(start_us, end_us) returns."
        )
