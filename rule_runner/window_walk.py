"""WindowWalk: which time windows of profiler data can be judged, live or afterwards.

A window's number is its step. The data of a window are those of the finished trial, live too: it
is ready once no earlier data can come, and the last one, which is shorter, when the job is over.
Windows in which there can be no data, as after a jump of the clock, are no steps.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from smdebug.core.clock import Clock
from smdebug.storage import ObjectNotFoundError, StorageUnavailableError
from smdebug.storage.local import LocalStore

if TYPE_CHECKING:
    from smdebug.trials.profiler_trial import ProfilerTrial

FIRST_PAUSE_S: Final = 1.0  # between looks that bring nothing
SILENT_US: Final = 60_000_000  # so long before a window must a node's last sample be
GAP_US: Final = 600_000_000  # without data that is told
GAPS_TOLD: Final = 3
_SHOWN: Final = 10


class Following:
    """One trial of profiler data, looked at again and again, for all walks over it.

    Parameters
    ----------
    end_grace
        Seconds without a new file after the end mark that end the trial.
    poll_max
        Longest pause in seconds between two looks that bring nothing.

    Attributes
    ----------
    news
        Whether the last look brought something new.
    ended
        Whether the trial has ended and all its files were looked for.
    trouble
        Why the store does not answer at present; "" if it does.
    """

    def __init__(
        self, trial: "ProfilerTrial", clock: Clock, end_grace: float, poll_max: float
    ) -> None:
        self.trial = trial
        self.news = False
        self.ended = False
        self.trouble = ""
        self._clock = clock
        self._end_grace = end_grace
        self._poll_max = poll_max
        self._seen = False
        self._ended_since: float | None = None
        self._pause = FIRST_PAUSE_S
        self._due = float("-inf")

    @property
    def ending(self) -> bool:
        """Whether the trial has ended, and its last files are looked for."""
        return not self.ended and self._ended_since is not None

    def look(self) -> bool:
        """Look once for files if the pause is over; see `rule_runner.walk.Walk`."""
        self.news = False
        if self.ended or self._clock.monotonic() < self._due:
            return False
        try:
            self.news = self._look()
            self._seen, self.trouble = True, ""
        except ObjectNotFoundError:  # the root is not there, or no more
            pass
        except StorageUnavailableError as err:
            if not (err.transient and self._seen):
                raise
            self.trouble = str(err)
        self._rest()
        return self.news

    def _look(self) -> bool:
        changed = self.trial.refresh()
        if not self.trial.job_finished():
            return changed
        now = self._clock.monotonic()
        if changed or self._ended_since is None:
            self._ended_since = now
        waited = now - self._ended_since >= self._end_grace
        if isinstance(self.trial.store, LocalStore):  # a listing of other stores may lag
            self.trial.refresh()
            waited = True
        if waited and self.trial.loaded_all_steps:
            self.ended = changed = True
        return changed

    def _rest(self) -> None:
        """Set when the trial is looked at again."""
        if self.news:
            self._pause = FIRST_PAUSE_S
        pause = min(self._end_grace, FIRST_PAUSE_S) if self.ending else self._pause
        self._due = self._clock.monotonic() + min(pause, self._poll_max)
        self._pause = min(2 * self._pause, self._poll_max)


class WindowWalk:
    """The time windows of one length; see `rule_runner.walk.Walk`.

    Parameters
    ----------
    length_us
        Length of a window in microseconds.
    leads
        Whether it is the one that looks for files: the first of several that is asked to.
    """

    def __init__(self, following: Following, length_us: int, *, leads: bool) -> None:
        self._following = following
        self._trial = following.trial
        self._length = length_us
        self._leads = leads
        self._steps: list[int] = []

    @property
    def begun(self) -> bool:
        """Whether it is known when the data begin."""
        return self._trial.first_timestamp > 0

    @property
    def ended(self) -> bool:
        """Whether the trial has ended and all its files were looked for."""
        return self._following.ended

    @property
    def ending(self) -> bool:
        """Whether the trial has ended, and its last files are looked for."""
        return self._following.ending

    @property
    def steps(self) -> Sequence[int]:
        """The windows that can be judged."""
        return self._steps

    @property
    def all_steps(self) -> Sequence[int]:
        """The windows that can be judged."""
        return self._steps

    def look(self) -> bool:
        """Look once for files; see `Following.look`."""
        news = self._following.look() if self._leads else self._following.news
        if news:
            self._steps.extend(self._settled())
        return news

    def _settled(self) -> Iterator[int]:
        """Yield the windows after those that are known of which nothing more can come."""
        trial, length = self._trial, self._length
        first = trial.first_timestamp
        after = self._steps[-1] + 1 if self._steps else 0
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
        """Yield the windows after `after` that can be judged now, ascending."""
        yield from self._steps[bisect_right(self._steps, after) :]

    def readable(self, step: int) -> bool:
        """Say that a window can be read: what of it cannot is among the notes."""
        del step
        return True

    def missing_workers(self, step: int) -> list[str]:
        """Return the nodes that have sent system metrics before, and none near a window."""
        start = self._trial.first_timestamp + step * self._length
        return self._trial.silent_nodes(start - SILENT_US, start + self._length)

    def late(self) -> list[int]:
        """Return none: what comes late is counted by the trial."""
        return []

    def lost_files(self) -> int:
        """Return none: what comes after the end is not looked for."""
        return 0

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each thing that is wrong with the trial, for the results."""
        yield from self._trial.problems
        yield from islice(self._gaps(), GAPS_TOLD)
        if self._following.trouble:
            yield self._following.trouble

    def _gaps(self) -> Iterator[str]:
        """Yield a sentence for each long time without any data."""
        for before, after in pairwise(self._steps):
            if (after - before - 1) * self._length >= GAP_US:
                first, last = self._begin_of(before + 1), self._begin_of(after)
                yield (
                    f"There are no data from {first} to {last}: "
                    "the profiler paused, or a clock jumped."
                )

    def _begin_of(self, window: int) -> str:
        return shown_time(self._trial.first_timestamp + window * self._length)

    def awaited(self, after: int) -> str:
        """Say what is waited for, for people."""
        trial, trouble = self._trial, self._following.trouble
        if trouble:
            return f"the storage of profiler trial {trial.path!r}: {trouble}"
        if not self.begun:
            return f"system metrics of profiler trial {trial.path!r}"
        end = trial.first_timestamp + (after + 2) * self._length + trial.source.ahead_us
        return f"data up to {shown_time(end)}, or the end, of profiler trial {trial.path!r}"

    def names(self) -> Sequence[str]:
        """Return none: no rule asks for data by a name that another comes near to."""
        return []

    def holds(self) -> str:
        """Say what the trial holds; see `rule_runner.walk.Walk`."""
        windows = len(self.steps)
        if not self.begun:
            return "holds no profiler data: they lie in its folders 'system' and 'framework'."
        if not windows:
            return "holds no data of a whole time window."
        nodes = ", ".join(map(repr, self._trial.nodes[:_SHOWN])) or "none"
        framework = "and" if self._trial.has_framework_data else "and no"
        return (
            f"holds {windows} windows of {self._length / 1e6:g} s, the nodes {nodes} "
            f"{framework} framework metrics."
        )


def shown_time(time_us: int) -> str:
    """Return a time for people.

    >>> shown_time(1_600_000_020_000_000), shown_time(1 << 62)
    ('2020-09-13 12:27:00 UTC', '4611686018427387904 us')
    """
    try:
        return f"{datetime.fromtimestamp(time_us // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{time_us} us"
