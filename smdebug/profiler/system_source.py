"""SystemSource: samples of system metrics by range of time, of which only the files are read."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from smdebug.core.read_pool import IN_FLIGHT, ReadPool
from smdebug.profiler.bounded_cache import BoundedCache
from smdebug.profiler.damages import Damages
from smdebug.profiler.file_names import SystemFile
from smdebug.profiler.profiler_files import ProfilerFiles
from smdebug.profiler.system_columns import (
    CHUNK,
    SystemColumns,
    parse_system_metrics,
    pieces_of,
)
from smdebug.profiler.system_samples import SeriesTable, SystemSamples, joined
from smdebug.storage.protocol import ByteRange, ObjectNotFoundError, StorageUnavailableError

MINUTE_US: Final = 60_000_000  # what a file of system metrics holds
CACHED_BYTES: Final = 32 << 20
_SLACK_S: Final = 1e-3  # seconds: what microseconds as floats may be off, with room
Read = Callable[[], memoryview]


class SystemSource:
    """Reads what `ProfilerFiles` lists.

    Parameters
    ----------
    files
        What there is.
    damages
        Takes what cannot be read.
    cached_bytes
        How much of what was parsed is kept for the next question; None is all.
    """

    def __init__(
        self, files: ProfilerFiles, damages: Damages, cached_bytes: int | None = CACHED_BYTES
    ) -> None:
        self._files = files
        self._store = files.store
        self._damages = damages
        self.series = SeriesTable()
        self._cache = BoundedCache[SystemColumns](cached_bytes, lambda one: one.nbytes)
        self._looked: dict[str, int] = {}  # files that may grow: at which look they were parsed
        self._spans: dict[str, tuple[float, float]] = {}  # seconds; of those that do not grow
        parallel = self._store.costs.parallel
        self._pool = ReadPool[memoryview](parallel) if parallel > 1 else None

    def samples(self, start_us: int, end_us: int) -> SystemSamples:
        """Return the samples of ``start_us <= time < end_us``.

        Samples that stand in two files are returned once.
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
        """Yield the samples of ``start_us <= time <= end_us`` of each file, as they were written.

        Times are compared as whole nanoseconds.

        Parameters
        ----------
        suffixes
            How the names of the files must end; None is anyhow.
        """
        for _, columns in self._between(start_us, end_us, suffixes):
            near = _near(columns, start_us, end_us)
            time_ns = (near.time_s * 1000 * 1000 * 1000).astype(np.int64)
            yield _part(near, (time_ns >= start_us * 1000) & (time_ns <= end_us * 1000))

    def last_time_us(self, files: Sequence[SystemFile]) -> int:
        """Return the time of the last sample in some files; 0 if they have none."""
        found = (columns.time_us[-1] for _, columns in self._parsed(files) if len(columns.time_s))
        return int(max(found, default=0))

    def next_time_us(self, file: SystemFile, time_us: int) -> int | None:
        """Return when the first sample of a file at or after a time is; None if there is none.

        Within the file's minute that is not looked at: it may be at once.
        """
        if time_us < file.start_us + MINUTE_US:
            return time_us
        for _, columns in self._parsed([file]):
            times = columns.time_us
            at = int(np.searchsorted(times, time_us))
            return int(times[at]) if at < len(times) else None
        return None

    def _between(
        self, start_us: int, end_us: int, suffixes: Sequence[str] | None = None
    ) -> Iterator[tuple[SystemFile, SystemColumns]]:
        """Yield the files that have samples near a range of time, in order."""
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
        """Yield files with their samples; what cannot be read is left out."""
        known = {file.key: found for file in files if (found := self._known(file)) is not None}
        reads = self._reads([file for file in files if file.key not in known])
        for file in files:
            columns = known.pop(file.key, None)
            if columns is None:
                columns = self._parse(file, next(reads))
            if columns is not None:
                yield file, columns

    def _known(self, file: SystemFile) -> SystemColumns | None:
        looked = self._looked.get(file.key, self._files.looks)
        return self._cache.get(file.key) if looked == self._files.looks else None

    def _reads(self, files: Sequence[SystemFile]) -> Iterator[Read]:
        """Yield what gives the beginning of each file; of a remote store they come meanwhile."""
        waiting = deque(partial(self._store.read, file.key, ByteRange(0, CHUNK)) for file in files)
        if self._pool is None:
            yield from waiting
            return
        flying = deque(self._pool.submit(waiting.popleft()) for _ in _up_to(waiting, self._pool))
        while flying:
            first = flying.popleft()
            if waiting:
                flying.append(self._pool.submit(waiting.popleft()))
            yield first.result

    def _parse(self, file: SystemFile, read: Read) -> SystemColumns | None:
        """Return the samples of a file, or None.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked now.
        """
        try:
            found = parse_system_metrics(pieces_of(self._store, file.key, read), self.series)
        except (ObjectNotFoundError, StorageUnavailableError) as err:
            if getattr(err, "transient", False):
                raise
            self._damages.report(file.key, str(err))
            return None
        grows = self._files.is_growing(file) or (found.cut_off and not self._files.ended)
        if grows:
            self._looked[file.key] = self._files.looks
        else:
            self._looked.pop(file.key, None)
            self._settle(file.key, found)
        self._cache.put(file.key, found)
        return found

    def _settle(self, key: str, found: SystemColumns) -> None:
        """Take note of a file that is whole."""
        times = found.time_s
        self._spans[key] = (float(times[0]), float(times[-1])) if len(times) else (1.0, 0.0)
        if found.problem():
            self._damages.report(key, found.problem(), found.bad_lines + found.cut_off)
        else:
            self._damages.mended(key)


def _up_to(waiting: Sequence[Read], pool: ReadPool[memoryview]) -> range:
    return range(min(len(waiting), IN_FLIGHT * pool.size))


def _near(columns: SystemColumns, start_us: int, end_us: int) -> SystemColumns:
    """Return the samples of a range of time, and perhaps a few beside it."""
    first = int(np.searchsorted(columns.time_s, start_us / 1e6 - _SLACK_S))
    last = int(np.searchsorted(columns.time_s, end_us / 1e6 + _SLACK_S))
    return _part(columns, slice(first, last))


def _part(columns: SystemColumns, chosen: slice | NDArray[np.bool_]) -> SystemColumns:
    return SystemColumns(columns.time_s[chosen], columns.value[chosen], columns.series[chosen])
