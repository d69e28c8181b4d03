"""ProfilerTrial: the documented questions about a job's system metrics and framework events."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from smdebug.core.clock import Clock, SystemClock
from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.environment import number
from smdebug.exceptions import NoMoreProfilerData, StepNotYetAvailable
from smdebug.profiler.profiler_source import ProfilerSource
from smdebug.profiler.stop_signal import GRACE_S, StopSignal
from smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent, events_of_samples
from smdebug.profiler.system_samples import SystemSamples
from smdebug.profiler.trace_event import TraceEvent
from smdebug.storage.protocol import TrialStore
from smdebug.storage.uri import open_store
from smdebug.trials.profiler_reach import ProfilerReach
from smdebug.trials.view import LOOK_EVERY_S, POLL_S

SAY_SO_AFTER_S: Final = 10.0
SYSTEM: Final = "system metrics"
FRAMEWORK: Final = "framework metrics"


class ProfilerTrial(ProfilerReach):
    """What the profiler of one training job saved; `create_trial` with ``profiler=True`` makes it.

    It has no steps and no tensors: rules judge ranges of time. Times are epoch microseconds.

    Parameters
    ----------
    name, trial_dir
        Any name, and the folder or S3 address that holds ``system`` and ``framework``.
    output_dir
        A folder for what rules write; it is made if it is not there. None is none.
    clock
        Tells the time, and waits; by default the machine's.
    source
        What another view reads already.

    Attributes
    ----------
    name, path, trial_dir, output_dir
        As given.
    temp_dir
        A folder for passing files in `output_dir`, which the platform does not upload.
    dynamic_refresh
        Whether questions look for new files.
    horizon
        Not None while a rule judges: then nothing looks for new files.
    reads
        How many questions were answered with data.
    waited_until
        The latest time up to which data were waited for.
    missed
        What was asked for and never there, in words.
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
        self.dynamic_refresh = True
        self.horizon: int | None = None
        self.reads = 0
        self.waited_until = 0
        self.missed: dict[str, None] = {}
        self._has_read: set[str] = set()
        self.output_dir = output_dir
        self.temp_dir = _made(output_dir)
        super().__init__(self._opened() if source is None else source)

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
        """Return a trial over a store, without a look at its files.

        Parameters
        ----------
        stop_files, stop_grace
            Its data end when such a file is there and the time in it is so many seconds ago.
        waits_for_unseen
            See `ProfilerSource`.
        """
        clock = clock or SystemClock()
        source = ProfilerSource(store, clock, StopSignal(stop_files, stop_grace))
        source.waits_for_unseen = waits_for_unseen
        return cls(name, path, clock=clock, source=source)

    def _opened(self) -> ProfilerSource:
        store = open_store(self.path)
        source = ProfilerSource(store, self.clock, StopSignal.from_environment(store))
        source.refresh()
        if source.is_over:
            source.refresh()  # the job ended before: what its writers wrote is there
        return source

    def share(self) -> Self:
        """Return another view of the same data."""
        return type(self)(
            self.name, self.path, self.output_dir, clock=self.clock, source=self.source
        )

    def __repr__(self) -> str:
        return f"ProfilerTrial(name={self.name!r}, path={self.path!r})"

    # -- how far the data reach, besides what `ProfilerReach` says ---------------------------

    def get_first_timestamp(self) -> int:
        """Return when the data begin; 0 while there are none."""
        self._look()
        return self.first_timestamp

    def get_latest_timestamp(self) -> int:
        """Return up to when all kinds of data are there; 0 while there are none.

        Of a job that is over it is when the newest data end.
        """
        self._look()
        return self.source.latest_us

    # -- waiting -----------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Look once for new files and the end of the job; say whether there was anything new."""
        return self.source.refresh()

    def job_finished(self) -> bool:
        """Say whether the job has ended: by its end mark, or for its rules by a stop signal."""
        return self.source.has_ended()

    def stop_signalled(self) -> bool:
        """Say whether the platform's stop signal is there, and its grace time over."""
        return self.source.stop_signalled()

    def wait_for_data(self, end_time: int, start_time: int) -> None:
        """Return when all data before `end_time` are there, or the job is over.

        Raises
        ------
        NoMoreProfilerData
            If the job is over, and has no data from `start_time` on.
        StepNotYetAvailable
            If they are not there, and `horizon` holds back the look for more.
        """
        began = self.clock.monotonic()
        said = False
        self.waited_until = max(self.waited_until, end_time)
        while end_time > self.settled_timestamp:
            if self.source.is_complete:
                if not self.first_timestamp or start_time > self.newest_timestamp:
                    raise NoMoreProfilerData(end_time)
                return
            if self.horizon is not None:
                raise StepNotYetAvailable(self.horizon, ModeKeys.GLOBAL)
            if not said and self.clock.monotonic() - began >= SAY_SO_AFTER_S:
                said = True
                text = "Profiler trial %r: waiting for data up to %d us; there are up to %d us."
                self.logger.info(text, self.path, end_time, self.settled_timestamp)
            self.source.refresh()
            if end_time > self.settled_timestamp and not self.source.is_complete:
                self.clock.sleep(self.pause_s)

    @property
    def pause_s(self) -> float:
        """How many seconds to wait between two looks that bring nothing."""
        if self.source.is_over:  # a slow writer may still have something
            return number("SMDEBUG_TRAINING_END_DELAY_REFRESH", 1, "seconds")
        return LOOK_EVERY_S if self.source.is_remote else POLL_S

    def _look(self) -> None:
        """Look for new files, unless that is held back; at a remote store not all the time."""
        held = not self.dynamic_refresh or self.horizon is not None or self.source.is_complete
        now = self.clock.monotonic()
        if held or (self.source.is_remote and now - self.source.looked_at < LOOK_EVERY_S):
            return
        self.source.looked_at = now
        self.source.refresh()

    # -- data --------------------------------------------------------------------------------

    def system_samples(self, start: int, end: int) -> SystemSamples:
        """Return the system metrics of ``start <= time < end``, in columns."""
        self._look_up_to(end)
        found = self.source.system_samples(start, end)
        self._note(SYSTEM, found)
        return found

    def framework_events(self, start: int, end: int) -> list[TraceEvent]:
        """Return the framework events that end at ``start <= time < end``.

        They are in the order of their ends, then of their starts and nodes.
        """
        self._look_up_to(end)
        found = self.source.framework_events(start, end)
        self._note(FRAMEWORK, found)
        return found

    def get_system_metrics(self, start_time: int, end_time: int) -> list[ProfilerSystemEvent]:
        """Return the system metrics of ``start_time <= time <= end_time``, file by file."""
        self._look_up_to(end_time)
        found = [
            event
            for one in self.source.system_columns(start_time, end_time)
            for event in events_of_samples(one.time_s, one.value, one.series, self.source.keys)
        ]
        self._note(SYSTEM, found)
        return found

    def get_framework_metrics(self, start_time: int, end_time: int) -> list[TraceEvent]:
        """Return the framework events that overlap a range of time, if only by touching it.

        They come kind by kind, file by file.
        """
        self._look_up_to(end_time)
        found = list(self.source.overlapping_events(start_time, end_time))
        self._note(FRAMEWORK, found)
        return found

    def _look_up_to(self, end: int) -> None:
        if end > self.settled_timestamp:
            self._look()

    def _note(self, what: str, found: Any) -> None:
        """Count an answer; what was never there is missed."""
        if len(found):
            self.reads += 1
            self._has_read.add(what)
            self.missed.pop(what, None)
        elif what not in self._has_read:
            self.missed[what] = None


def _made(output_dir: str | None) -> str | None:
    """Make the folder for what rules write, and return the one in it for passing files."""
    if not output_dir:
        return None
    temp_dir = Path(output_dir, ".sagemaker-ignore")
    try:
        temp_dir.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        text = "Folder %r for what rules write cannot be made: %s. Give output_dir another one."
        get_logger().warning(text, output_dir, err.strerror)
    return str(temp_dir)


def opened(
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
        If the job is over, or `timeout` seconds have passed, before there are any.
    """
    trial = ProfilerTrial(name, trial_dir, output_dir, clock=clock)
    began = trial.clock.monotonic()
    said = False
    while not trial.first_timestamp:
        waited = trial.clock.monotonic() - began
        if trial.loaded_all_steps or (timeout is not None and waited >= timeout):
            error = NoMoreProfilerData(0)
            error.msg = f"Profiler trial {trial.path!r} has no metrics. Check the path."
            raise error
        if waited >= SAY_SO_AFTER_S and not said:
            said = True
            text = "Profiler trial %r: no metrics after %.0f s. Still waiting; check the path."
            trial.logger.warning(text, trial.path, waited)
        trial.clock.sleep(trial.pause_s)
        trial.refresh()
    return trial
