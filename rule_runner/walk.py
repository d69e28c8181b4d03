"""StepWalk: which steps of a trial are ready to be judged, live or afterwards; and what is awaited.

Whatever the order in which files arrive, the steps and what they show are those of the finished
trial: a step is ready once nothing more of it, or of an earlier one, can come.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from smdebug.core.clock import Clock
from smdebug.storage import ByteRange, ObjectNotFoundError, StorageUnavailableError
from smdebug.trials.trial_index import TrialIndex

_NOTHING: Final = ByteRange(0, 0)


@dataclass(slots=True)
class _Followed:
    """One trial, and when its files last brought something new after its end mark."""

    index: TrialIndex
    ended_since: float | None = None


class StepWalk:
    """The steps of a base trial, as they become ready, together with other trials.

    Parameters
    ----------
    base, others
        The trials.
    clock
        Tells the time for the waits.
    end_grace
        Seconds without a new file after the end mark that end a trial of several workers.
    event_file_wait
        Seconds for which the event file of an index file that is there is waited for.
    """

    def __init__(
        self,
        base: TrialIndex,
        others: Sequence[TrialIndex],
        clock: Clock,
        end_grace: float,
        event_file_wait: float,
    ) -> None:
        self.base = base
        self._followed = [_Followed(index) for index in (base, *others)]
        self._clock = clock
        self._end_grace = end_grace
        self._event_file_wait = event_file_wait
        self._missed: dict[int, float] = {}

    @property
    def ended(self) -> bool:
        """Whether the base trial has ended and all its files were looked for."""
        return self.base.loaded_all_steps

    @property
    def ending(self) -> bool:
        """Whether the base trial has its end mark, and files of slow workers are looked for."""
        return not self.ended and self._followed[0].ended_since is not None

    def look(self) -> bool:
        """Look once at all trials; say whether anything is new."""
        news = []
        for followed in self._followed:
            try:
                news.append(self._look_at(followed))
            except ObjectNotFoundError:  # the root is not there, or no more
                continue
        return any(news)

    def _look_at(self, followed: _Followed) -> bool:
        index = followed.index
        if index.loaded_all_steps:
            return False
        # The end mark is looked for first: all that its writer wrote is there by then.
        ended = index.has_ended()
        changed = index.refresh(whole=ended)
        if changed:
            index.refresh(whole=ended)
        if not ended:
            return changed
        now = self._clock.monotonic()
        if changed or followed.ended_since is None:
            followed.ended_since = now
        alone = index.num_workers == 1 and not index.lacks_collections()
        if alone or now - followed.ended_since >= self._end_grace:
            index.finish()
            return True
        return changed

    def ready(self, after: int) -> Iterator[int]:
        """Yield the steps after `after` that can be judged now, ascending."""
        base = self.base
        if base.lacks_collections() and not base.loaded_all_steps:
            return
        for step in base.steps[bisect_right(base.steps, after) :]:
            if self._why_not(step):
                return
            yield step

    def _why_not(self, step: int) -> str:
        """Return what a step still waits for, or an empty string if it is ready."""
        base = self.base
        if not base.loaded_all_steps and step > base.settled_step:
            workers = ", ".join(map(repr, base.missing_workers(step)))
            return f"step {step} of workers {workers}" if workers else f"step {step}"
        for followed in self._followed[1:]:
            index = followed.index
            if not index.loaded_all_steps and index.settled_step < step:
                return f"step {step} of the other trial {index.store.uri!r}"
        return self._missing_event_file(step)

    def _missing_event_file(self, step: int) -> str:
        """Return the event file that is waited for at a step, or an empty string."""
        if self.base.loaded_all_steps:
            return ""
        for file in self.base.files[step].values():
            if file.event_key is None or self._is_there(file.event_key):
                continue
            now = self._clock.monotonic()
            since = self._missed.setdefault(step, now)
            if now - since < self._event_file_wait:
                return f"the event file {file.event_key!r}"
        self._missed.pop(step, None)
        return ""

    def _is_there(self, key: str) -> bool:
        try:
            self.base.store.read(key, _NOTHING)
        except ObjectNotFoundError:
            return False
        except StorageUnavailableError:  # there, and no good: reading it says so
            return True
        return True

    def awaited(self, after: int) -> str:
        """Say what is waited for, for people."""
        base = self.base
        if base.lacks_collections():
            there = f"{len(base.workers)} of {max(base.num_workers, 1)}"
            return f"the collections files of trial {base.store.uri!r} ({there} are there)"
        at = bisect_right(base.steps, after)
        if at < len(base.steps):
            return self._why_not(base.steps[at]) or f"step {base.steps[at]}"
        last = f"step {base.steps[-1]}" if base.steps else "its start"
        return f"a step after {last}, or the end, of trial {base.store.uri!r}"
