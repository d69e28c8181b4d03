"""WindowWalk: which time windows of profiler data can be judged, live or afterwards.

A window's number is its step. The data of a window are those of the finished trial, live too: it
is ready once no earlier data can come, and the last one, which is shorter, when the job is over.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from smdebug.core.clock import Clock
from smdebug.storage import ObjectNotFoundError, StorageUnavailableError

if TYPE_CHECKING:
    from smdebug.trials.profiler_trial import ProfilerTrial

FIRST_PAUSE_S: Final = 1.0  # between looks that bring nothing
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
        # The end mark is looked for first: all that its writer wrote is there by then.
        finished = self.trial.job_finished()
        changed = self.trial.refresh()
        if not finished:
            return changed
        now = self._clock.monotonic()
        if changed or self._ended_since is None:
            self._ended_since = now
        if now - self._ended_since >= self._end_grace:
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

    @property
    def begun(self) -> bool:
        """Whether it is known when the data begin, or nothing more can come."""
        return self._trial.first_timestamp > 0 or self.ended

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
        first = self._trial.first_timestamp
        if first <= 0:
            return range(0)
        if self.ended:  # the last one is as long as its data
            newest = self._trial.newest_timestamp
            return range((newest - first) // self._length + 1 if newest >= first else 0)
        return range(max(0, (self._trial.settled_timestamp - first) // self._length))

    @property
    def all_steps(self) -> Sequence[int]:
        """The windows that can be judged."""
        return self.steps

    def look(self) -> bool:
        """Look once for files; see `Following.look`."""
        return self._following.look() if self._leads else self._following.news

    def ready(self, after: int) -> Iterator[int]:
        """Yield the windows after `after` that can be judged now, ascending."""
        yield from range(after + 1, len(self.steps))

    def readable(self, step: int) -> bool:
        """Say that a window can be read: what of it cannot is among the notes."""
        del step
        return True

    def missing_workers(self, step: int) -> list[str]:
        """Return none: a node that sends nothing is for rules to judge."""
        del step
        return []

    def late(self) -> list[int]:
        """Return none: what comes late is counted by the trial."""
        return []

    def lost_files(self) -> int:
        """Return none: what comes after the end is not looked for."""
        return 0

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each thing that is wrong with the trial, for the results."""
        yield from self._trial.problems
        if self._following.trouble:
            yield self._following.trouble

    def awaited(self, after: int) -> str:
        """Say what is waited for, for people."""
        trial, trouble = self._trial, self._following.trouble
        if trouble:
            return f"the storage of profiler trial {trial.path!r}: {trouble}"
        if not self.begun:
            return f"system metrics of profiler trial {trial.path!r}"
        end = trial.first_timestamp + (after + 2) * self._length
        at = datetime.fromtimestamp(end / 1e6, UTC)
        return (
            f"data up to {at:%Y-%m-%d %H:%M:%S} UTC, or the end, of profiler trial {trial.path!r}"
        )

    def names(self) -> Sequence[str]:
        """Return the names of the nodes."""
        return sorted(self._trial.nodes)

    def holds(self) -> str:
        """Say what the trial holds; see `rule_runner.walk.Walk`."""
        windows = len(self.steps)
        if not windows:
            return "holds no data of a whole time window."
        nodes = ", ".join(map(repr, self.names()[:_SHOWN])) or "none"
        framework = "and" if self._trial.has_framework_data else "and no"
        return (
            f"holds {windows} windows of {self._length / 1e6:g} s, the nodes {nodes} "
            f"{framework} framework metrics."
        )
