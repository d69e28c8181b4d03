"""ProfilerTrial: queries over the system metrics and framework events of a training job."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from rule_core.clock import Clock, SystemClock
from rule_core.environment import number
from rule_core.exceptions import NoMoreProfilerData, StepNotYetAvailable
from rule_core.logger import get_logger
from rule_core.modes import ModeKeys
from rule_core.profiler.converted.format import FLIGHT_RECORDER, KINETO
from rule_core.profiler.files.stop_signal import GRACE_S, StopSignal
from rule_core.profiler.kineto.trace_names import recorded_traces
from rule_core.profiler.readers.source import ProfilerSource
from rule_core.profiler.system.legacy_parser import ProfilerSystemEvent, events_of_samples
from rule_core.profiler.system.samples import SystemSamples
from rule_core.profiler.traces.event import TraceEvent
from rule_core.storage.base import TrialStore
from rule_core.storage.uri import open_store
from rule_core.trials.snapshot_view import LOOK_EVERY_S, POLL_S, WARN_AFTER_S, Refreshing

SYSTEM: Final = "system metrics"
FRAMEWORK: Final = "framework metrics"


class ProfilerTrial(Refreshing):
    """The profiler data of one training job, opened by `create_trial` with ``profiler=True``.

    It has no steps and no tensors: rules evaluate time ranges. Times are epoch microseconds.

    Parameters
    ----------
    name, trial_dir
        Any name, and the folder or S3 address that holds ``system`` and ``framework``.
    output_dir
        The output folder for rules, created if necessary. None disables output.
    clock
        By default the clock of the machine.
    source
        The source of another view of the same trial.

    Attributes
    ----------
    name, path, trial_dir, output_dir
        The arguments.
    source
        The reader of the files, shared by all views of the trial.
    store
        The store with the files.
    stop_files, stop_grace
        Local stop files; the data end `stop_grace` seconds after the time in such a file.
    temp_dir
        A folder for temporary files in `output_dir`, which the platform does not upload.
    dynamic_refresh
        Whether queries look for new files.
    horizon
        Not None while a rule runs; queries then do not look for new files.
    judged, is_whole
        As of a tensor trial; without effect.
    reads
        The number of queries that returned data.
    waited_until
        The latest time whose data were waited for.
    missed
        The kinds of data that were requested but never existed.
    """

    def __init__(
        self,
        name: str,
        trial_dir: str | os.PathLike[str],
        output_dir: str | None = None,
        *,
        clock: Clock | None = None,
        source: ProfilerSource | None = None,
    ) -> None:
        self.name = name
        self.path = self.trial_dir = os.fspath(trial_dir).strip()
        self.clock = clock or SystemClock()
        self.logger = get_logger()
        self.waited_until = 0
        self.missed: dict[str, None] = {}
        self._has_read: set[str] = set()
        self.output_dir = output_dir
        self.temp_dir = _make_temp_dir(output_dir)
        self.source = self._open_source() if source is None else source
        self.store = self.source.store
        self.stop_files = self.source.signal.files
        self.stop_grace = self.source.signal.grace_s

    @classmethod
    def over(
        cls,
        store: TrialStore,
        name: str,
        path: str,
        stop_files: Sequence[Path] = (),
        stop_grace: float = GRACE_S,
        clock: Clock | None = None,
        *,
        waits_for_unseen: bool = False,
    ) -> Self:
        """Return a trial over a store without reading its files.

        Parameters
        ----------
        stop_files, stop_grace
            The data end `stop_grace` seconds after the time in such a file.
        waits_for_unseen
            See `ProfilerSource`.
        """
        clock = clock or SystemClock()
        source = ProfilerSource(store, clock, StopSignal(stop_files, stop_grace))
        source.waits_for_unseen = waits_for_unseen
        return cls(name, path, clock=clock, source=source)

    def _open_source(self) -> ProfilerSource:
        store = open_store(self.path)
        source = ProfilerSource(store, self.clock, StopSignal.from_environment(store))
        source.refresh()
        if source.is_over:
            source.refresh()  # the job had ended before: all files exist now
        return source

    def share(self) -> Self:
        """Return another view of the same data."""
        return type(self)(
            self.name, self.path, self.output_dir, clock=self.clock, source=self.source
        )

    def __repr__(self) -> str:
        return f"ProfilerTrial(name={self.name!r}, path={self.path!r})"

    # -- what is loaded; nothing of this looks for new files ---------------------------------

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
    def problems(self) -> list[str]:
        """A sentence for each problem with the files."""
        problems = [
            f"{key}: {message}" for key, message in self.source.files.problems.problems.items()
        ]
        if late := self.source.late:
            files = "file" if late == 1 else "files"
            problems.append(f"{late} {files} arrived too late to be evaluated completely.")
        return problems

    # -- times -------------------------------------------------------------------------------

    def get_latest_timestamp(self) -> int:
        """Return the time up to which all kinds of data exist; 0 without data.

        Once the job has ended it is the end of the newest data.
        """
        self._look()
        return self.source.latest_us

    # -- waiting -----------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Look for new files and the end of the job; return whether anything changed."""
        return self.source.refresh()

    def job_finished(self) -> bool:
        """Return whether the job has ended, by its end mark or the platform's stop signal."""
        return self.source.has_ended()

    def wait_for_data(self, end_time: int, start_time: int) -> None:
        """Wait until all data before `end_time` exist or the job has ended.

        Raises
        ------
        NoMoreProfilerData
            If the job has ended without data from `start_time` on.
        StepNotYetAvailable
            If they do not exist yet and `horizon` prevents looking for new files.
        """
        began = self.clock.monotonic()
        has_logged = False
        self.waited_until = max(self.waited_until, end_time)
        while end_time > self.settled_timestamp:
            if self.source.is_complete:
                if not self.first_timestamp or start_time > self.newest_timestamp:
                    raise NoMoreProfilerData(end_time)
                return
            if self.horizon is not None:
                raise StepNotYetAvailable(self.horizon, ModeKeys.GLOBAL)
            if not has_logged and self.clock.monotonic() - began >= WARN_AFTER_S:
                has_logged = True
                message = "Profiler trial %r: waiting for data up to %d us; data exist up to %d us."
                self.logger.info(message, self.path, end_time, self.settled_timestamp)
            self.source.refresh()
            if end_time > self.settled_timestamp and not self.source.is_complete:
                self.clock.sleep(self.pause_s)

    @property
    def pause_s(self) -> float:
        """Seconds to wait before the next look for new files."""
        if self.source.is_over:  # a slow writer may still add data
            return number("SMDEBUG_TRAINING_END_DELAY_REFRESH", 1, "seconds")
        return LOOK_EVERY_S if self.source.is_remote else POLL_S

    def expire(self) -> None:
        """Make the next query look for new files; see `TrialView.expire`."""
        self.source.looked_at = float("-inf")

    def _look(self) -> None:
        """Look for new files unless disabled; in remote stores only every `LOOK_EVERY_S`."""
        disabled = not self.dynamic_refresh or self.horizon is not None or self.source.is_complete
        now = self.clock.monotonic()
        if disabled or (self.source.is_remote and now - self.source.looked_at < LOOK_EVERY_S):
            return
        self.source.looked_at = now
        self.source.refresh()

    # -- data --------------------------------------------------------------------------------

    def system_samples(self, start: int, end: int) -> SystemSamples:
        """Return the system metrics with ``start <= time < end`` as columns."""
        self._look_up_to(end)
        samples = self.source.system_samples(start, end)
        self._note(SYSTEM, samples)
        return samples

    def framework_events(self, start: int, end: int) -> list[TraceEvent]:
        """Return the framework events whose end is in ``start <= time < end``.

        They are sorted by end, start and node.
        """
        self._look_up_to(end)
        events = self.source.framework_events(start, end)
        self._note(FRAMEWORK, events)
        return events

    def get_system_metrics(self, start_time: int, end_time: int) -> list[ProfilerSystemEvent]:
        """Return the system metrics with ``start_time <= time <= end_time``, file by file."""
        self._look_up_to(end_time)
        events = [
            event
            for columns in self.source.system_columns(start_time, end_time)
            for event in events_of_samples(columns, self.source.keys)
        ]
        self._note(SYSTEM, events)
        return events

    def get_framework_metrics(self, start_time: int, end_time: int) -> list[TraceEvent]:
        """Return the framework events that overlap or touch a time range.

        They are grouped by kind and file.
        """
        self._look_up_to(end_time)
        events = list(self.source.overlapping_events(start_time, end_time))
        self._note(FRAMEWORK, events)
        return events

    def _look_up_to(self, end: int) -> None:
        if end > self.settled_timestamp:
            self._look()

    def _note(self, kind: str, data: Any) -> None:
        """Record a query: data that never existed are missed."""
        if len(data):
            self.reads += 1
            self._has_read.add(kind)
            self.missed.pop(kind, None)
        elif kind not in self._has_read:
            self.missed[kind] = None


def _make_temp_dir(output_dir: str | None) -> str | None:
    """Create the output folder and return its folder for temporary files."""
    if not output_dir:
        return None
    temp_dir = Path(output_dir, ".sagemaker-ignore")
    try:
        temp_dir.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        message = "Output folder %r cannot be created: %s. Choose another output_dir."
        get_logger().warning(message, output_dir, err.strerror)
    return str(temp_dir)


def open_profiler_trial(
    name: str,
    trial_dir: str,
    output_dir: str | None = None,
    timeout: float | None = None,
    clock: Clock | None = None,
) -> ProfilerTrial:
    """Return a profiler trial once it has data; see `smdebug.trials.create_trial`.

    Raises
    ------
    NoMoreProfilerData
        If the job has ended or `timeout` seconds have passed before any data exist.
    """
    trial = ProfilerTrial(name, trial_dir, output_dir, clock=clock)
    began = trial.clock.monotonic()
    has_warned = False
    while not trial.first_timestamp:
        waited = trial.clock.monotonic() - began
        if trial.loaded_all_steps or (timeout is not None and waited >= timeout):
            error = NoMoreProfilerData(0)
            error.msg = f"Profiler trial {trial.path!r} has no metrics. Check the path."
            raise error
        if waited >= WARN_AFTER_S and not has_warned:
            has_warned = True
            message = "Profiler trial %r: no metrics after %.0f s. Still waiting; check the path."
            trial.logger.warning(message, trial.path, waited)
        trial.clock.sleep(trial.pause_s)
        trial.refresh()
    return trial
