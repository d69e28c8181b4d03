"""SystemSource: system metrics by time range, read from the files that overlap it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
from cachetools import LRUCache

from rule_core.profiler.files.file_names import SystemFile
from rule_core.profiler.files.file_problems import lasting_reason
from rule_core.profiler.files.profiler_files import ProfilerFiles
from rule_core.profiler.system.columns import CHUNK, SystemColumns, parse_system_metrics, pieces_of
from rule_core.profiler.system.samples import SeriesTable, SystemSamples, joined
from rule_core.storage.base import ByteRange, ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.read_pool import Read, read_each, read_pool

MINUTE_US: Final = 60_000_000  # the time that one file of system metrics covers
CACHED_BYTES: Final = 32 << 20
_SLACK_S: Final = 1e-3  # seconds: more than the rounding error of microseconds as floats


class SystemSource:
    """Reads samples of system metrics from the files of a training job.

    Parameters
    ----------
    files
        The files, as last listed; they collect the problems of those that cannot be read.
    cached_bytes
        Size in bytes of the cache of parsed files.
    """

    def __init__(self, files: ProfilerFiles, cached_bytes: float = CACHED_BYTES) -> None:
        self._files = files
        self._store = files.store
        self.series = SeriesTable()
        self._cache: LRUCache[str, SystemColumns] = LRUCache(
            cached_bytes, lambda columns: columns.nbytes
        )
        self._parsed_at: dict[str, int] = {}  # listing at which a growing file was parsed
        self._spans: dict[str, tuple[float, float]] = {}  # seconds, of complete files
        self._pool = read_pool(self._store)

    def samples(self, start_us: int, end_us: int) -> SystemSamples:
        """Return the samples of ``start_us <= time < end_us``.

        Samples that two files contain are returned once.
        """
        parts, last = [], dict[str, float]()
        overlap = False
        for file, columns in self._between(start_us, end_us):
            overlap |= columns.time_s[0] <= last.get(file.node, -1.0)
            last[file.node] = max(float(columns.time_s[-1]), last.get(file.node, -1.0))
            near = _near(columns, start_us, end_us)
            time_us = near.time_us
            inside = (time_us >= start_us) & (time_us < end_us)
            parts.append((time_us[inside], near.value[inside], near.series[inside]))
        return joined(parts, self.series.keys, distinct=overlap)

    def columns(
        self, start_us: int, end_us: int, suffixes: Sequence[str] | None = None
    ) -> Iterator[SystemColumns]:
        """Yield the samples of ``start_us <= time <= end_us`` of each file, in file order.

        Times are compared as whole nanoseconds.

        Parameters
        ----------
        suffixes
            Endings of the file names to read; None reads all files.
        """
        for _, columns in self._between(start_us, end_us, suffixes):
            near = _near(columns, start_us, end_us)
            time_ns = (near.time_s * 1000 * 1000 * 1000).astype(np.int64)
            yield near.where((time_ns >= start_us * 1000) & (time_ns <= end_us * 1000))

    def last_time_us(self, files: Sequence[SystemFile]) -> int:
        """Return the time of the last sample in `files`; 0 if they have none."""
        times = (columns.time_us[-1] for _, columns in self._parsed(files) if len(columns.time_s))
        return int(max(times, default=0))

    def next_time_us(self, file: SystemFile, time_us: int) -> int | None:
        """Return the time of a file's first sample at or after `time_us`; None if it has none.

        Within the file's minute the file is not read, and the result is `time_us`.
        """
        if time_us < file.start_us + MINUTE_US:
            return time_us
        for _, columns in self._parsed([file]):
            times = columns.time_us
            index = int(np.searchsorted(times, time_us))
            return int(times[index]) if index < len(times) else None
        return None

    def _between(
        self, start_us: int, end_us: int, suffixes: Sequence[str] | None = None
    ) -> Iterator[tuple[SystemFile, SystemColumns]]:
        """Yield the files with samples near a time range, in order."""
        start_s, end_s = start_us / 1e6 - _SLACK_S, end_us / 1e6 + _SLACK_S

        def may_have(file: SystemFile) -> bool:
            if suffixes is not None and not file.key.endswith(tuple(suffixes)):
                return False
            first, last = self._spans.get(file.key, (start_s, end_s))
            return first <= end_s and last >= start_s

        files = filter(may_have, self._files.system_between(start_us, end_us))
        for file, columns in self._parsed(list(files)):
            if len(columns.time_s):
                yield file, columns

    def _parsed(self, files: Sequence[SystemFile]) -> Iterator[tuple[SystemFile, SystemColumns]]:
        """Yield files with their samples; skip files that cannot be read."""
        cached = {file.key: hit for file in files if (hit := self._cached(file)) is not None}
        missing = [file.key for file in files if file.key not in cached]
        reads = read_each(self._store, self._pool, missing, ByteRange(0, CHUNK))
        for file in files:
            columns = cached.pop(file.key, None)
            if columns is None:
                columns = self._parse(file, next(reads)[1])
            if columns is not None:
                yield file, columns

    def _cached(self, file: SystemFile) -> SystemColumns | None:
        parsed_at = self._parsed_at.get(file.key, self._files.looks)
        return self._cache.get(file.key) if parsed_at == self._files.looks else None

    def _parse(self, file: SystemFile, read: Read) -> SystemColumns | None:
        """Return the samples of a file, or None.

        Raises
        ------
        StorageUnavailableError
            If the store is temporarily unavailable.
        """
        try:
            columns = parse_system_metrics(pieces_of(self._store, file.key, read), self.series)
        except (ObjectNotFoundError, StorageUnavailableError) as err:
            self._files.problems.report(file.key, lasting_reason(err))
            return None
        if self._files.is_growing(file) or (columns.cut_off and not self._files.ended):
            self._parsed_at[file.key] = self._files.looks
        else:
            self._parsed_at.pop(file.key, None)
            self._record_complete(file.key, columns)
        self._cache.pop(file.key, None)
        with suppress(ValueError):  # larger than the whole cache
            self._cache[file.key] = columns
        return columns

    def _record_complete(self, key: str, columns: SystemColumns) -> None:
        """Record the time span and the problems of a file that no longer grows."""
        times = columns.time_s
        self._spans[key] = (float(times[0]), float(times[-1])) if len(times) else (1.0, 0.0)
        problem = columns.problem()
        if problem:
            self._files.problems.report(key, problem, columns.bad_lines + columns.cut_off)
        else:
            self._files.problems.clear(key)


def _near(columns: SystemColumns, start_us: int, end_us: int) -> SystemColumns:
    """Return the samples of a time range, and possibly a few next to it."""
    first = int(np.searchsorted(columns.time_s, start_us / 1e6 - _SLACK_S))
    last = int(np.searchsorted(columns.time_s, end_us / 1e6 + _SLACK_S))
    return columns.where(slice(first, last))
