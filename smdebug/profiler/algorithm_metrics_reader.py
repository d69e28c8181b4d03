"""LocalAlgorithmMetricsReader, S3AlgorithmMetricsReader: framework events by time, or by step.

Files are read as a stream: of each, only the events that were asked for are kept.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.file_names import TraceFile
from smdebug.profiler.profiler_constants import PYTHONTIMELINE_SUFFIX
from smdebug.profiler.profiler_files import ProfilerFiles, Writer
from smdebug.profiler.step_times import step_interval
from smdebug.profiler.trace_assembly import LATEST, OpenEvents
from smdebug.profiler.trace_event import Number, TraceEvent
from smdebug.profiler.trace_event_file_parser import overlapping
from smdebug.profiler.trace_files import FILE_TYPES, events_of
from smdebug.profiler.utils import TimeUnits, convert_utc_timestamp_to_microseconds
from smdebug.storage import TrialStore, open_store
from smdebug.storage.local import LocalStore
from smdebug.storage.uri import is_s3

_KINDS: Final = tuple(FILE_TYPES)


class AlgorithmMetricsReader:
    """Reads the framework events of one training job.

    Parameters
    ----------
    store
        The folder that holds ``framework``.
    use_in_memory_cache
        Keep the events of files that were read; by default they are read again for each question.

    Attributes
    ----------
    problems
        A sentence for each damage that was met.
    """

    def __init__(self, store: TrialStore, use_in_memory_cache: bool = False) -> None:
        self._store = store
        self._files = ProfilerFiles(store)
        # The events of files, and those that were still open at their ends.
        self._kept: dict[str, tuple[list[TraceEvent], OpenEvents]] | None = (
            {} if use_in_memory_cache else None
        )
        self._problems: dict[str, None] = {}
        self.refresh_event_file_list()

    @property
    def problems(self) -> list[str]:
        """A sentence for each damage that was met, each once."""
        return list(self._problems)

    # -- files -------------------------------------------------------------------------------

    def refresh_event_file_list(self) -> None:
        """Look once for new files; files of foreign tools are ignored.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked.
        """
        self._files.refresh()

    def get_timestamp_of_first_available_file(self) -> int:
        """Return the time (us) up to which the first file has events; 0 if there is none."""
        return min((files[0].end_us for files in self._files.traces.values()), default=0)

    def get_timestamp_of_latest_available_file(self) -> int:
        """Return the time (us) up to which the last file has events; 0 if there is none."""
        return max((files[-1].end_us for files in self._files.traces.values()), default=0)

    def get_current_time_range_for_event_query(self) -> tuple[int, int]:
        """Return the times (us) of the first and the last file; zeros if there are none."""
        first = self.get_timestamp_of_first_available_file()
        return first, self.get_timestamp_of_latest_available_file()

    # -- events ------------------------------------------------------------------------------

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[TraceEvent]:
        """Return the events that overlap ``[start_time, end_time]``; touching counts.

        Parameters
        ----------
        start_time, end_time
            Since the epoch, in `unit`.
        event_type
            A name or a phase that the events must have; None is any.
        file_suffix_filter
            How the names of files end that are read; None is all.

        Returns
        -------
        list
            Python timelines first, then those of frameworks, TensorFlow's profiles, Horovod's and
            smdataparallel's; in each in the order of the files.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked.
        """
        start = convert_utc_timestamp_to_microseconds(start_time, unit)
        end = convert_utc_timestamp_to_microseconds(end_time, unit)
        self.refresh_event_file_list()
        files = self._files.traces_between(int(start), int(end))
        if file_suffix_filter is not None:
            suffixes = tuple(file_suffix_filter)
            files = [file for file in files if file.key.endswith(suffixes)]
        return list(overlapping(self._events(files), start, end, event_type))

    def get_events_by_step(
        self,
        start_step: int,
        end_step: int,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
        mode: ModeKeys | None = None,
    ) -> list[TraceEvent]:
        """Return the events that overlap the time of the steps ``start_step <= step < end_step``.

        Parameters
        ----------
        start_step, end_step
            See `smdebug.profiler.step_times.step_interval`.
        event_type, file_suffix_filter
            See `get_events`.
        mode
            Whose steps are meant; None is the first that has the numbers.
        """
        start, end = self._get_time_interval_for_step(start_step, end_step, mode)
        if not end:
            get_logger("profiler").info("No steps from %d to %d are known.", start_step, end_step)
            return []
        return self.get_events(
            start, end, event_type=event_type, file_suffix_filter=file_suffix_filter
        )

    def _get_time_interval_for_step(
        self, start_step: int, end_step: int, mode: ModeKeys | None = None
    ) -> tuple[Number, Number]:
        """Return when steps ran (us), as Python timelines tell."""
        self.refresh_event_file_list()
        files = self._files.traces_between(0, LATEST)
        python = [file for file in files if file.kind == PYTHONTIMELINE_SUFFIX]
        return step_interval(self._events(python), start_step, end_step, mode)

    def _events(self, files: Iterable[TraceFile]) -> Iterator[TraceEvent]:
        """Yield the events of files, kind by kind; some begin in one file and end in the next."""
        begun: dict[Writer, OpenEvents] = {}
        for file in sorted(files, key=lambda one: _KINDS.index(one.kind)):
            waiting = begun.setdefault((file.kind, file.node), {})
            if self._kept is None:
                yield from self._read(file, waiting)
                continue
            if file.key not in self._kept:
                events = list(self._read(file, waiting))
                self._kept[file.key] = events, _copy(waiting)
            events, left = self._kept[file.key]
            begun[file.kind, file.node] = _copy(left)
            yield from events

    def _read(self, file: TraceFile, begun: OpenEvents) -> Iterator[TraceEvent]:
        found: list[str] = []
        yield from events_of(self._store, file.key, found, open_events=begun)
        for problem in found:
            if problem not in self._problems:
                get_logger("profiler").warning(problem)
                self._problems[problem] = None


def _copy(begun: OpenEvents) -> OpenEvents:
    return {row: list(waiting) for row, waiting in begun.items()}


class LocalAlgorithmMetricsReader(AlgorithmMetricsReader):
    """Reads framework events from a folder of this machine.

    Parameters
    ----------
    trace_root_folder
        The folder that holds ``framework``; it may not be there yet.
    use_in_memory_cache
        See `AlgorithmMetricsReader`.
    """

    def __init__(
        self, trace_root_folder: str | os.PathLike[str], use_in_memory_cache: bool = False
    ) -> None:
        self.trace_root_folder = os.fspath(trace_root_folder)
        super().__init__(LocalStore(trace_root_folder), use_in_memory_cache)


class S3AlgorithmMetricsReader(AlgorithmMetricsReader):
    """Reads framework events from S3.

    Parameters
    ----------
    s3_trial_path
        ``s3://bucket/prefix``, where ``framework`` is below.
    use_in_memory_cache
        See `AlgorithmMetricsReader`.

    Raises
    ------
    SMDebugValueError
        If it is no address of S3.
    """

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        if not is_s3(s3_trial_path):
            msg = f"The path of S3 metrics must be s3://bucket/prefix, got {s3_trial_path!r}."
            raise SMDebugValueError(msg)
        super().__init__(open_store(s3_trial_path), use_in_memory_cache)
