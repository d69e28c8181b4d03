"""ProfilerRange: the data that a profiler trial has loaded, and the times they cover."""

from pathlib import Path

from rule_core.profiler.converted.format import FLIGHT_RECORDER, KINETO
from rule_core.profiler.kineto.trace_names import recorded_traces
from rule_core.profiler.readers.source import ProfilerSource
from rule_core.storage.base import TrialStore


class ProfilerRange:
    """The data that a profiler trial has loaded; nothing here looks for new files.

    Times are epoch microseconds.

    Attributes
    ----------
    source
        The reader of the files, shared by all views of the trial.
    """

    def __init__(self, source: ProfilerSource) -> None:
        self.source = source

    @property
    def store(self) -> TrialStore:
        """The store with the files."""
        return self.source.store

    @property
    def stop_files(self) -> tuple[Path, ...]:
        """Local stop files; the data end `stop_grace` seconds after the time in such a file."""
        return self.source.signal.files

    @property
    def stop_grace(self) -> float:
        """See `stop_files`."""
        return self.source.signal.grace_s

    @property
    def first_timestamp(self) -> int:
        """The start of the data; 0 without data."""
        return self.source.first_us

    @property
    def newest_timestamp(self) -> int:
        """The end of the newest data; 0 without data."""
        return self.source.newest_us

    @property
    def settled_timestamp(self) -> int:
        """The time before which the data are complete; see `ProfilerSource.settled_us`."""
        return self.source.settled_us

    def next_timestamp(self, time_us: int) -> int | None:
        """Return the first time from `time_us` on that may have data, or None."""
        return self.source.next_us(time_us)

    def silent_nodes(self, start_us: int, end_us: int) -> list[str]:
        """Return the nodes with system metrics before a time range but not in it."""
        return self.source.silent_nodes(start_us, end_us)

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the job has ended and all its files have been loaded."""
        return self.source.is_complete

    @property
    def nodes(self) -> list[str]:
        """The nodes with system metrics, or else those with timelines, sorted."""
        return self.source.nodes

    @property
    def has_framework_data(self) -> bool:
        """Whether a timeline file exists."""
        return bool(self.source.files.traces)

    @property
    def has_torch_traces(self) -> bool:
        """Whether the data comes from traces of torch.profiler."""
        return KINETO in self.source.files.store.formats

    @property
    def has_flight_recorder_dumps(self) -> bool:
        """Whether the data comes from dumps of torch.distributed's flight recorder."""
        return FLIGHT_RECORDER in self.source.files.store.formats

    def torch_traces(self, start_us: int, end_us: int) -> list[str]:
        """Return the keys of traces of torch.profiler from a time range, by time.

        Raises
        ------
        StorageUnavailableError
            If the store is unavailable.
        """
        store = self.source.files.store
        if self.has_torch_traces:
            return store.files_ending(start_us)
        return [
            trace.key
            for trace in recorded_traces(store)
            if trace.start_us < end_us and trace.end_us >= start_us
        ]

    def has_system_metric(self, dimension: str = "") -> bool:
        """Return whether the trial has samples of a metric, or of any before the first read."""
        keys = self.source.keys
        if not (dimension and keys):
            return bool(self.source.files.system)
        return any(key.dimension == dimension for key in keys)

    @property
    def damaged(self) -> int:
        """The number of unreadable lines, records and files."""
        return self.source.files.problems.count

    @property
    def late(self) -> int:
        """The number of files that arrived after their time range was considered complete."""
        return self.source.late

    @property
    def problems(self) -> list[str]:
        """A sentence for each problem with the files."""
        problems = [f"{key}: {text}" for key, text in self.source.files.problems.problems.items()]
        if self.late:
            files = "file" if self.late == 1 else "files"
            problems.append(f"{self.late} {files} arrived too late to be evaluated completely.")
        return problems
