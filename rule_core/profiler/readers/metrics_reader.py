"""MetricsReaderBase: the base class of readers of system metrics and framework events."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from rule_core.exceptions import SMDebugValueError
from rule_core.logger import get_logger
from rule_core.modes import ModeKeys
from rule_core.profiler.converted.store import ConvertedFiles
from rule_core.profiler.files.constants import PYTHONTIMELINE_SUFFIX
from rule_core.profiler.files.time_units import TimeUnits, convert_utc_timestamp_to_microseconds
from rule_core.profiler.readers.step_times import step_interval
from rule_core.profiler.traces.event import TraceEvent
from rule_core.profiler.traces.files import events_of
from rule_core.storage.uri import is_s3, open_store


class MetricsReaderBase(ABC):
    """Reads the events of a time range from the files that may contain them.

    Parameters
    ----------
    path
        The folder or S3 address with ``system`` and ``framework``.
    use_in_memory_cache
        Whether to keep everything parsed for later queries.

    Attributes
    ----------
    files
        The files, as of the last refresh; the first refresh is at construction.
    file_problems
        The problems of files that cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], use_in_memory_cache: bool = False) -> None:
        self.path = os.fspath(path)
        self.logger = get_logger()
        self.files = ConvertedFiles(open_store(path))
        self.file_problems = self.files.problems
        self._keeps_all = use_in_memory_cache
        self.refresh_event_file_list()

    # -- files -------------------------------------------------------------------------------

    @abstractmethod
    def _stamps(self) -> Iterator[int]:
        """Yield the time of each file, in any order."""

    def refresh_event_file_list(self) -> None:
        """Look for new files.

        Raises
        ------
        StorageUnavailableError
            If the store is unavailable.
        """
        self.files.refresh()

    def get_timestamp_of_first_available_file(self) -> int:
        """Return the smallest time in a file name; 0 without files."""
        return min(self._stamps(), default=0)

    def get_timestamp_of_latest_available_file(self) -> int:
        """Return the largest time in a file name; 0 without files."""
        return max(self._stamps(), default=0)

    def get_current_time_range_for_event_query(self) -> tuple[int, int]:
        """Return the times of the first and the latest file; zeros without files."""
        first = self.get_timestamp_of_first_available_file()
        return first, self.get_timestamp_of_latest_available_file()

    # -- events ------------------------------------------------------------------------------

    @abstractmethod
    def _events(
        self, start_us: int, end_us: int, event_type: str | None, suffixes: Sequence[str] | None
    ) -> list[Any]:
        """Return the events of a time range.

        Parameters
        ----------
        event_type
            Type of the events; None returns all.
        suffixes
            Endings of the file names to read; None reads all.
        """

    def _is_open_ended(self, end_us: int) -> bool:
        """Return whether new files may contain events up to a time."""
        return end_us >= self.get_timestamp_of_latest_available_file()

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[Any]:
        """Return the events of a time range, both ends included.

        Parameters
        ----------
        start_time, end_time
            Since the epoch, in `unit`.
        event_type
            Type of the events; None returns all.
        file_suffix_filter
            Endings of the file names to read; None reads all.

        Raises
        ------
        SMDebugValueError
            If the environment's time buffer is not a number.
        StorageUnavailableError
            If the store is temporarily unavailable.
        """
        start_us = int(convert_utc_timestamp_to_microseconds(start_time, unit))
        end_us = int(convert_utc_timestamp_to_microseconds(end_time, unit))
        if self._is_open_ended(end_us):
            self.refresh_event_file_list()
        return self._events(start_us, end_us, event_type, file_suffix_filter)

    def get_events_by_step(
        self,
        start_step: int,
        end_step: int,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
        *,
        mode: ModeKeys | None = None,
    ) -> list[Any]:
        """Return the events during ``start_step <= step < end_step``, by Python timelines.

        Parameters
        ----------
        mode
            Mode of the steps; see `rule_core.profiler.readers.step_times.step_interval`.
        event_type, file_suffix_filter
            See `get_events`.
        """
        self.refresh_event_file_list()
        start, end = step_interval(self._timeline_events(), start_step, end_step, mode)
        if not end:
            self.logger.info("No steps from %d to %d were found.", start_step, end_step)
            return []
        return self._events(int(start), int(end), event_type, file_suffix_filter)

    def _timeline_events(self) -> Iterator[TraceEvent]:
        """Yield the events of all Python timelines."""
        problems: list[str] = []
        for (kind, _), files in self.files.traces.items():
            if kind == PYTHONTIMELINE_SUFFIX:
                reads = (events_of(self.files.store, file.key, problems) for file in files)
                yield from chain.from_iterable(reads)


class LocalReader(MetricsReaderBase):
    """Reads from a local folder.

    Parameters
    ----------
    trace_root_folder
        The folder with ``system`` and ``framework``.
    use_in_memory_cache
        See `MetricsReaderBase`.
    """

    def __init__(
        self, trace_root_folder: str | os.PathLike[str], use_in_memory_cache: bool = False
    ) -> None:
        super().__init__(trace_root_folder, use_in_memory_cache)
        self.trace_root_folder = trace_root_folder


class S3Reader(MetricsReaderBase):
    """Reads from S3.

    Parameters
    ----------
    s3_trial_path
        An address such as ``s3://bucket/prefix``, with ``system`` and ``framework``.
    use_in_memory_cache
        See `MetricsReaderBase`.

    Raises
    ------
    SMDebugValueError
        If the path is not an S3 address.
    """

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        if not is_s3(s3_trial_path):
            raise SMDebugValueError(
                f"{type(self).__name__} requires an address such as s3://bucket/prefix, "
                f"got {os.fspath(s3_trial_path)!r}."
            )
        super().__init__(s3_trial_path, use_in_memory_cache)
