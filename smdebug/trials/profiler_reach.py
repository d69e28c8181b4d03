"""ProfilerReach: what a profiler trial holds, and up to when, without a look for more."""

from pathlib import Path

from smdebug.profiler.profiler_source import ProfilerSource
from smdebug.storage.protocol import TrialStore


class ProfilerReach:
    """The part of a profiler trial that tells how far its data reach.

    Times are epoch microseconds.

    Attributes
    ----------
    source
        What is read, shared by all views of the trial.
    """

    def __init__(self, source: ProfilerSource) -> None:
        self.source = source

    @property
    def store(self) -> TrialStore:
        """Where the files are."""
        return self.source.store

    @property
    def stop_files(self) -> tuple[Path, ...]:
        """Files of this machine that end the data, `stop_grace` seconds after the time in them."""
        return self.source.signal.files

    @property
    def stop_grace(self) -> float:
        """See `stop_files`."""
        return self.source.signal.grace_s

    @property
    def first_timestamp(self) -> int:
        """When the data begin; 0 while there are none."""
        return self.source.first_us

    @property
    def newest_timestamp(self) -> int:
        """When the newest data end; 0 while there are none."""
        return self.source.newest_us

    @property
    def settled_timestamp(self) -> int:
        """The time before which all data are there; see `ProfilerSource.settled_us`."""
        return self.source.settled_us

    def next_timestamp(self, time_us: int) -> int | None:
        """Return the first time at or after `time_us` at which there may be data; None is never."""
        return self.source.next_us(time_us)

    def silent_nodes(self, start_us: int, end_us: int) -> list[str]:
        """Return the nodes that have no system metrics of a range of time, but earlier ones."""
        return self.source.silent_nodes(start_us, end_us)

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the job is over and all its files were looked for."""
        return self.source.is_complete

    @property
    def nodes(self) -> list[str]:
        """The nodes that have written system metrics, sorted; without any, those of timelines."""
        return self.source.nodes

    @property
    def has_framework_data(self) -> bool:
        """Whether any timeline is there."""
        return bool(self.source.files.traces)

    @property
    def damaged(self) -> int:
        """How many lines, records or files could not be read."""
        return self.source.damages.count

    @property
    def late(self) -> int:
        """How many files came with data from before a time that was settled already."""
        return self.source.late

    @property
    def problems(self) -> list[str]:
        """A sentence for each thing that is wrong with the files."""
        found = [f"{key}: {text}" for key, text in self.source.damages.problems.items()]
        if self.late:
            files = "file" if self.late == 1 else "files"
            found.append(f"{self.late} {files} came too late to be judged as a whole.")
        return found
