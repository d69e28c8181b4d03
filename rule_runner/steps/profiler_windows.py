"""ProfilerWindows: the time windows of profiler data that are ready to be judged.

The number of a window is its step. A window is ready once no data of it, or from before it, can
arrive, so that live and later evaluations see the same data. The last, shorter window is ready when
the job is over. Windows without any data, such as those after a clock jump, are not steps.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from rule_core.clock import Clock, pause_after
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.local import LocalStore
from rule_runner.results.schema import WindowTimes
from rule_runner.steps.protocol import StepSource

if TYPE_CHECKING:
    from rule_core.trials.profiler_trial import ProfilerTrial

FIRST_PAUSE_S: Final = 1.0  # between looks that find nothing
SILENT_US: Final = 60_000_000  # age of a silent node's last sample at the start of a window
GAP_US: Final = 600_000_000  # shortest time without data that is reported
GAPS_REPORTED: Final = 3
_SHOWN: Final = 10


class ProfilerPoller:
    """Polls one profiler trial on behalf of all its window lengths.

    Parameters
    ----------
    end_grace
        Seconds without a new file after the end mark that end the trial.
    poll_max
        Longest pause in seconds between two looks that find nothing.

    Attributes
    ----------
    changed
        Whether the last look found something new.
    ended
        Whether the trial has ended and its last files have been listed.
    problem
        Why the store does not answer at present; "" if it does.
    """

    def __init__(
        self, trial: "ProfilerTrial", clock: Clock, end_grace: float, poll_max: float
    ) -> None:
        self.trial = trial
        self.changed = False
        self.ended = False
        self.problem = ""
        self._clock = clock
        self._end_grace = end_grace
        self._poll_max = poll_max
        self._answered = False
        self._ended_since: float | None = None
        self._quiet_looks = 0
        self._due = float("-inf")

    @property
    def ending(self) -> bool:
        """Whether the trial has ended and its last files may still arrive."""
        return not self.ended and self._ended_since is not None

    def look(self, *, at_once: bool = False, last: bool = False) -> bool:
        """Look once for files if the pause is over; see `StepSource.look`."""
        self.changed = False
        if self.ended or (self._clock.monotonic() < self._due and not (at_once or last)):
            return False
        try:
            self.changed = self._look(last=last)
            self._answered, self.problem = True, ""
        except ObjectNotFoundError:  # the root does not exist
            pass
        except StorageUnavailableError as err:
            if not (err.transient and self._answered):
                raise
            self.problem = str(err)
        self._pause_looks()
        return self.changed

    def _look(self, *, last: bool) -> bool:
        changed = self.trial.refresh()
        if not self.trial.job_finished():
            return changed
        now = self._clock.monotonic()
        if changed or self._ended_since is None:
            self._ended_since = now
        waited = last or now - self._ended_since >= self._end_grace
        if isinstance(self.trial.store, LocalStore):  # a listing of other stores may lag
            self.trial.refresh()
            waited = True
        if waited and self.trial.loaded_all_steps:
            self.ended = changed = True
        return changed

    def _pause_looks(self) -> None:
        """Set when to look at the trial again."""
        self._quiet_looks = 1 if self.changed else self._quiet_looks + 1
        pause = min(self._end_grace, FIRST_PAUSE_S)
        if not self.ending:
            pause = pause_after(self._quiet_looks, FIRST_PAUSE_S)
        self._due = self._clock.monotonic() + min(pause, self._poll_max)


class ProfilerWindows(StepSource):
    """The time windows of one length; see `rule_runner.steps.protocol.StepSource`.

    Parameters
    ----------
    length_us
        Length of a window in microseconds.
    leads
        Whether this source lets the poller look for files: true for the first of several.

    Attributes
    ----------
    steps, all_steps
        The windows that are ready to be judged.
    """

    def __init__(self, poller: ProfilerPoller, length_us: int, *, leads: bool) -> None:
        self._poller = poller
        self._trial = poller.trial
        self._length = length_us
        self._leads = leads
        self._steps: list[int] = []

    @property
    def steps(self) -> list[int]:
        """The windows that can receive no more data, ascending."""
        return self._steps

    @property
    def begun(self) -> bool:
        """Whether the start of the data is known."""
        return self._trial.first_timestamp > 0

    def windows(self) -> WindowTimes | None:
        """Return when the windows begin; see `StepSource`."""
        return WindowTimes(self._trial.first_timestamp, self._length) if self.begun else None

    @property
    def ended(self) -> bool:
        """Whether the trial has ended and its last files have been listed."""
        return self._poller.ended

    @property
    def ending(self) -> bool:
        """Whether the trial has ended and its last files may still arrive."""
        return self._poller.ending

    def look(self, *, at_once: bool = False, last: bool = False) -> bool:
        """Look once for files; see `ProfilerPoller.look`."""
        poller = self._poller
        changed = poller.look(at_once=at_once, last=last) if self._leads else poller.changed
        if changed:
            self.steps.extend(self._settled())
        return changed

    def _settled(self) -> Iterator[int]:
        """Yield the windows after the known ones that can receive no more data."""
        trial, length = self._trial, self._length
        first = trial.first_timestamp
        after = self.steps[-1] + 1 if self.steps else 0
        while first > 0:
            begins = trial.next_timestamp(first + after * length)
            if begins is None or begins > trial.newest_timestamp:
                return
            window = (begins - first) // length
            after = window + 1
            if not self.ended and first + after * length > trial.settled_timestamp:
                return
            yield window

    def ready(self, after: int) -> Iterator[int]:
        """Yield the windows after `after` that are ready to be judged, ascending."""
        yield from self.steps[bisect_right(self.steps, after) :]

    def step_name(self, step: int) -> str:
        """Return a window for people."""
        return f"window {step}"

    def missing_workers(self, step: int) -> list[str]:
        """Return the nodes that sent system metrics earlier, but none near a window.

        Unreadable parts of a window are reported in the notes.
        """
        start = self._trial.first_timestamp + step * self._length
        return self._trial.silent_nodes(start - SILENT_US, start + self._length)

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each problem of the trial, for the results."""
        yield from self._trial.problems
        yield from islice(self._gaps(), GAPS_REPORTED)
        if self._poller.problem:
            yield self._poller.problem

    def _gaps(self) -> Iterator[str]:
        """Yield a sentence for each long gap in the data."""
        for before, after in pairwise(self.steps):
            if (after - before - 1) * self._length >= GAP_US:
                first, last = self._begin_of(before + 1), self._begin_of(after)
                yield (
                    f"There is no data from {first} to {last}: "
                    "the profiler paused, or a clock jumped."
                )

    def _begin_of(self, window: int) -> str:
        return format_time(self._trial.first_timestamp + window * self._length)

    def describe_wait(self, after: int) -> str:
        """Return what the window after `after` is waiting for, for messages."""
        trial, problem = self._trial, self._poller.problem
        if problem:
            return f"the storage of profiler trial {trial.path!r}: {problem}"
        if not self.begun:
            return f"system metrics of profiler trial {trial.path!r}"
        end = trial.first_timestamp + (after + 2) * self._length + trial.source.ahead_us
        return f"data up to {format_time(end)}, or the end, of profiler trial {trial.path!r}"

    def describe_contents(self) -> str:
        """Return the contents of the trial; see `StepSource`."""
        windows = len(self.steps)
        if not self.begun:
            return (
                "holds no profiler data in its folders 'system' and 'framework', and no trace of "
                "torch.profiler."
            )
        if not windows:
            return "does not hold the data of a whole time window."
        nodes = ", ".join(map(repr, self._trial.nodes[:_SHOWN])) or "none"
        framework = "and" if self._trial.has_framework_data else "and no"
        return (
            f"holds {windows} windows of {self._length / 1e6:g} s, the nodes {nodes} "
            f"{framework} framework metrics."
        )


def format_time(time_us: int) -> str:
    """Return a time in microseconds since the epoch as text.

    >>> format_time(1_600_000_020_000_000), format_time(1 << 62)
    ('2020-09-13 12:27:00 UTC', '4611686018427387904 us')
    """
    try:
        return f"{datetime.fromtimestamp(time_us // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{time_us} us"
