"""StepWalk: which steps of a trial are ready to be judged, live or afterwards; and what is awaited.

Whatever the order in which files arrive, the steps and what they show are those of the finished
trial: a step is ready once nothing more of it, or of an earlier one, can come.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from smdebug.core.clock import Clock
from smdebug.storage import ObjectNotFoundError, StorageUnavailableError
from smdebug.trials.trial_index import TrialIndex

FIRST_PAUSE_S: Final = 1.0  # between looks at a remote trial
_NAMES_SHOWN: Final = 10


@dataclass(slots=True)
class _Followed:
    """One trial, and how it is looked at.

    Attributes
    ----------
    ended_since
        When its files last brought something new after its end mark.
    seen
        Whether the store has ever answered.
    pause, due
        Of a remote trial: how long the next pause is, and when it is over.
    trouble
        Why the store does not answer at present.
    """

    index: TrialIndex
    ended_since: float | None = None
    seen: bool = False
    pause: float = FIRST_PAUSE_S
    due: float = float("-inf")
    trouble: str = ""


class StepWalk:
    """The steps of a base trial, as they become ready, together with other trials.

    Parameters
    ----------
    base, others
        The trials.
    clock
        Tells the time for the waits.
    end_grace
        Seconds without a new file after the end mark that end a trial of several workers, or a
        remote one.
    event_file_wait
        Seconds for which the event file of an index file that is there is waited for, and an
        index file that is listed and cannot be read.
    poll_max
        Longest pause in seconds between two looks at a remote trial that brings nothing new.
    once
        Whether nobody will look again: what one look at a remote trial finds is settled at once.
    """

    def __init__(
        self,
        base: TrialIndex,
        others: Sequence[TrialIndex],
        clock: Clock,
        end_grace: float,
        event_file_wait: float,
        poll_max: float = 10.0,
        *,
        once: bool = False,
    ) -> None:
        self.base = base
        self._followed = [_Followed(index) for index in (base, *others)]
        self._clock = clock
        self._end_grace = end_grace
        self._event_file_wait = event_file_wait
        self._poll_max = poll_max
        self._once = once
        self._missed: dict[int, float] = {}
        self._visited: set[int] = set()

    @property
    def begun(self) -> bool:
        """Whether rules can be made: always, for they ask the trial when they judge."""
        return True

    @property
    def steps(self) -> Sequence[int]:
        """The steps that are known and can be read, ascending; see `Walk`."""
        return self.base.steps

    @property
    def all_steps(self) -> Sequence[int]:
        """The steps that are known, ascending; see `Walk`."""
        return self.base.all_steps

    @property
    def ended(self) -> bool:
        """Whether the base trial has ended and all its files were looked for."""
        return self.base.loaded_all_steps

    @property
    def ending(self) -> bool:
        """Whether the base trial has its end mark, and files of slow workers are looked for."""
        return not self.ended and self._followed[0].ended_since is not None

    def look(self) -> bool:
        """Look once at all trials, at remote ones if their pause is over; say if anything is new.

        Raises
        ------
        StorageUnavailableError
            If a store cannot be asked, unless it has answered before and may do so again.
        """
        news = [self._look_if_due(followed) for followed in self._followed]
        return any(news)

    def _look_if_due(self, followed: _Followed) -> bool:
        if followed.index.loaded_all_steps or self._clock.monotonic() < followed.due:
            return False
        changed = False
        try:
            changed = self._look_at(followed)
            followed.seen, followed.trouble = True, ""
        except ObjectNotFoundError:  # the root is not there, or no more
            pass
        except StorageUnavailableError as err:
            if not (err.transient and followed.seen):
                raise
            followed.trouble = str(err)
        if followed.index.is_remote:
            self._pause(followed, changed)
        return changed

    def _pause(self, followed: _Followed, changed: bool) -> None:
        """Set when a remote trial is looked at again."""
        if changed:
            followed.pause = FIRST_PAUSE_S
        pause = self._end_grace if followed.ended_since is not None else followed.pause
        followed.due = self._clock.monotonic() + min(pause, self._poll_max)
        followed.pause = min(2 * followed.pause, self._poll_max)

    def _look_at(self, followed: _Followed) -> bool:
        index = followed.index
        # The end mark is looked for first: all that its writer wrote is there by then.
        ended = index.has_ended()
        changed = index.refresh(whole=ended)
        if changed and (self._once or not index.is_remote):  # else the next look will do
            index.refresh(whole=ended)
        if not ended:
            return changed
        now = self._clock.monotonic()
        if changed or followed.ended_since is None:
            followed.ended_since = now
        # A listing of a remote store may lag behind what was just written.
        alone = index.num_workers == 1 and not index.lacks_collections() and not index.is_remote
        if alone or now - followed.ended_since >= self._end_grace:
            index.finish()
            return True
        return changed

    def ready(self, after: int) -> Iterator[int]:
        """Yield the steps after `after` that can be judged now, ascending.

        Those of which no index file can be read, and no more waiting helps, are among them; they
        are not among the files of `base`.
        """
        base = self.base
        if base.lacks_collections() and not base.loaded_all_steps:
            return
        steps = base.all_steps
        for step in steps[bisect_right(steps, after) :]:
            if self._why_not(step):
                return
            self._visited.add(step)
            yield step

    def readable(self, step: int) -> bool:
        """Say whether a file of a step can be read; see `Walk`."""
        return step in self.base.files

    def missing_workers(self, step: int) -> list[str]:
        """Return the workers that a step that can be judged lacks; see `Walk`."""
        return self.base.missing_workers(step)

    def lost_files(self) -> int:
        """Return how many files came after the trial was taken for ended; see `Walk`."""
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return self.base.lost_files()
        return 0

    def names(self) -> Sequence[str]:
        """Return the names of the tensors."""
        return list(self.base.names)

    def holds(self) -> str:
        """Say what the base trial holds; see `Walk`."""
        base = self.base
        if not base.steps:
            return f"holds no {'readable steps' if base.all_steps else 'steps'}."
        names = ", ".join(map(repr, sorted(base.collections)[:_NAMES_SHOWN])) or "none"
        return (
            f"holds {len(base.steps)} steps ({base.steps[0]} to {base.steps[-1]}), "
            f"{len(base.names)} tensors and the collections {names}."
        )

    def late(self) -> list[int]:
        """Return the steps that came when a later one was ready already, ascending."""
        last = max(self._visited, default=-1)
        return [one for one in self.base.all_steps if one < last and one not in self._visited]

    def _why_not(self, step: int) -> str:
        """Return what a step still waits for, or an empty string if it is ready."""
        base = self.base
        unread = self._unread(step)
        if unread:
            return unread
        if not base.loaded_all_steps and step > base.settled_step:
            workers = ", ".join(map(repr, base.missing_workers(step)))
            return f"step {step} of workers {workers}" if workers else f"step {step}"
        for followed in self._followed[1:]:
            index = followed.index
            if not index.loaded_all_steps and index.settled_step < step:
                return f"step {step} of the other trial {index.store.uri!r}"
        return self._missing_event_file(step)

    def _unread(self, step: int) -> str:
        """Return the index file that is tried again and again at a step, or an empty string."""
        base = self.base
        if step not in base.troubles.unread:
            return ""
        if base.read_again(step) and not base.loaded_all_steps and self._waits(step):
            for unread in base.troubles.unread[step].values():
                return f"the index file {unread.key!r} ({base.problems.get(unread.key)})"
        return ""

    def _waits(self, step: int) -> bool:
        """Say whether there is time left to wait for the files of a step."""
        now = self._clock.monotonic()
        return now - self._missed.setdefault(step, now) < self._event_file_wait

    def _missing_event_file(self, step: int) -> str:
        """Return the event file that is waited for at a step, or an empty string."""
        if self.base.loaded_all_steps:
            return ""
        for worker, file in self.base.files.get(step, {}).items():
            if not self.base.event_file_is_there(step, worker) and self._waits(step):
                return f"the event file {file.event_key!r}"
        self._missed.pop(step, None)
        return ""

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each thing that is wrong with the trials, for the results."""
        for followed in self._followed:
            index = followed.index
            whose = "" if index is self.base else f"Trial {index.store.uri!r}: "
            troubles = [followed.trouble] if followed.trouble else []
            for note in (*index.troubles.notes(), *troubles):
                yield f"{whose}{note}"

    def awaited(self, after: int) -> str:
        """Say what is waited for, for people."""
        base = self.base
        for followed in self._followed:
            if followed.trouble:
                return f"the storage of trial {followed.index.store.uri!r}: {followed.trouble}"
        if base.lacks_collections():
            there = f"{len(base.workers)} of {max(base.num_workers, 1)}"
            return f"the collections files of trial {base.store.uri!r} ({there} are there)"
        steps = base.all_steps
        at = bisect_right(steps, after)
        if at < len(steps):
            return self._why_not(steps[at]) or f"step {steps[at]}"
        last = f"step {steps[-1]}" if steps else "its start"
        return f"a step after {last}, or the end, of trial {base.store.uri!r}"
