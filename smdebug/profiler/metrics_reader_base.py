"""MetricsReaderBase: what readers of system metrics and of framework events have in common."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.damages import Damages
from smdebug.profiler.profiler_constants import PYTHONTIMELINE_SUFFIX
from smdebug.profiler.profiler_files import ProfilerFiles
from smdebug.profiler.step_times import step_interval
from smdebug.profiler.trace_event import TraceEvent
from smdebug.profiler.trace_files import events_of
from smdebug.profiler.utils import TimeUnits, convert_utc_timestamp_to_microseconds
from smdebug.storage.uri import is_s3, open_store


class MetricsReaderBase(ABC):
    """Reads the events of a range of time, and only the files that may hold them.

    Parameters
    ----------
    path
        The folder or S3 address that holds ``system`` and ``framework``.
    use_in_memory_cache
        Keep all that was parsed for later questions, not some only.

    Attributes
    ----------
    files
        Which files there are, as of the last look; the first is at construction.
    damages
        What cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], use_in_memory_cache: bool = False) -> None:
        self.path = os.fspath(path)
        self.logger = get_logger()
        store = open_store(path)
        self.files = ProfilerFiles(store)
        self.damages = Damages(store.uri)
        self._keeps_all = use_in_memory_cache
        self.refresh_event_file_list()

    # -- which files there are ---------------------------------------------------------------

    @abstractmethod
    def _stamps(self) -> Iterator[int]:
        """Yield the time of each file, in any order."""

    def refresh_event_file_list(self) -> None:
        """Look for new files.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked.
        """
        self.files.refresh()

    def get_timestamp_of_first_available_file(self) -> int:
        """Return the smallest time of a file, as its name has it; 0 if there is none."""
        return min(self._stamps(), default=0)

    def get_timestamp_of_latest_available_file(self) -> int:
        """Return the largest time of a file, as its name has it; 0 if there is none."""
        return max(self._stamps(), default=0)

    def get_current_time_range_for_event_query(self) -> tuple[int, int]:
        """Return the times of the first and of the latest file; zeros if there is none."""
        first = self.get_timestamp_of_first_available_file()
        return first, self.get_timestamp_of_latest_available_file()

    # -- events ------------------------------------------------------------------------------

    @abstractmethod
    def _events(
        self, start_us: int, end_us: int, event_type: str | None, suffixes: Sequence[str] | None
    ) -> list[Any]:
        """Return the events of a range of time.

        Parameters
        ----------
        event_type
            Of which type only; None is any.
        suffixes
            How names of files end that are looked into; None is anyhow.
        """

    def _is_open_ended(self, end_us: int) -> bool:
        """Say whether new files may hold events up to a time."""
        return end_us >= self.get_timestamp_of_latest_available_file()

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[Any]:
        """Return the events of a range of time, both ends included.

        Parameters
        ----------
        start_time, end_time
            Since the epoch, in `unit`.
        event_type
            Of which type only.
        file_suffix_filter
            How names of files must end.

        Raises
        ------
        SMDebugValueError
            If the environment's time buffer is no number.
        StorageUnavailableError
            If the store cannot be asked now.
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
        """Return the events while ``start_step <= step < end_step``, as Python timelines tell.

        Parameters
        ----------
        mode
            Whose steps are meant; see `smdebug.profiler.step_times.step_interval`.
        event_type, file_suffix_filter
            See `get_events`.
        """
        self.refresh_event_file_list()
        start, end = step_interval(self._timeline_events(), start_step, end_step, mode)
        if not end:
            self.logger.info("No steps from %d to %d are known.", start_step, end_step)
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
    """Reads what lies below a folder.

    Parameters
    ----------
    trace_root_folder
        It holds the folders ``system`` and ``framework``.
    use_in_memory_cache
        See `MetricsReaderBase`.
    """

    def __init__(
        self, trace_root_folder: str | os.PathLike[str], use_in_memory_cache: bool = False
    ) -> None:
        super().__init__(trace_root_folder, use_in_memory_cache)
        self.trace_root_folder = trace_root_folder


class S3Reader(MetricsReaderBase):
    """Reads what lies below an S3 address.

    Parameters
    ----------
    s3_trial_path
        Such as ``s3://bucket/prefix``; it holds ``system`` and ``framework``.
    use_in_memory_cache
        See `MetricsReaderBase`.

    Raises
    ------
    SMDebugValueError
        If it is no S3 address.
    """

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        if not is_s3(s3_trial_path):
            msg = (
                f"{type(self).__name__} needs an address such as s3://bucket/prefix, "
                f"got {os.fspath(s3_trial_path)!r}."
            )
            raise SMDebugValueError(msg)
        super().__init__(s3_trial_path, use_in_memory_cache)
