"""TensorSteps: the steps of a tensor trial that are ready to be judged, live or afterwards.

The steps and their contents do not depend on the order in which files arrive: a step is ready once
no more files of it, or of an earlier step, can arrive.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rule_core.clock import Clock, pause_after
from rule_core.format.paths import END_OF_JOB
from rule_core.model.segments import step_in_segment, step_text, steps_text
from rule_core.modes import ModeKeys
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.source_record import position_in
from rule_core.reading.trial_index import TrialIndex, all_steps, missing_workers
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.wait_budget import WaitEndedError
from rule_runner.steps.protocol import StepSource

FIRST_PAUSE_S: Final = 1.0  # between looks at a remote trial
LONG_AGO_S: Final = 60.0  # more than clocks of machines with a common file system differ
_NAMES_SHOWN: Final = 10
_PHASES: Final = {
    ModeKeys.TRAIN: "training",
    ModeKeys.EVAL: "evaluation",
    ModeKeys.PREDICT: "prediction",
}


@dataclass(slots=True)
class _Followed:
    """One trial, and the state of polling it.

    Attributes
    ----------
    ended_since
        When its files last changed after its end mark appeared.
    may_grow
        Whether it is judged as it is, although it may not have ended.
    answered
        Whether the store has ever answered.
    pause, due
        For a remote trial: the length of the next pause, and when it is over.
    problem
        Why the store does not answer at present; "" if it does.
    """

    index: TrialIndex
    ended_since: float | None = None
    may_grow: bool = False
    answered: bool = False
    quiet_looks: int = 0
    due: float = float("-inf")
    problem: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether the trial has ended and its last files have been listed."""
        return self.index.loaded_all_steps and not self.may_grow


class TensorSteps(StepSource):
    """The steps of a base trial as they become ready, together with those of other trials.

    Parameters
    ----------
    base, others
        The trials.
    end_grace
        Seconds without a new file after the end mark that end a trial of several workers, or a
        remote one.
    event_file_wait
        Seconds to wait for the event file of an index file, and for an index file that is listed
        but cannot be read.
    poll_max
        Longest pause in seconds between two looks at a remote trial that does not change.
    once
        Whether this is the only look: the files that it finds in a remote trial are settled at
        once.
    as_it_is
        Whether the last step of a run in another format is ready too, unless its files say that the
        run goes on; see `settle`.

    Attributes
    ----------
    begun
        Whether rules can be constructed: once the formats of the trials are known, and which of
        them have ended, since that decides how much rules see of them.
    """

    begun = False

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
        as_it_is: bool = False,
    ) -> None:
        self.base = base
        self._followed = [_Followed(index) for index in (base, *others)]
        self._clock = clock
        self._end_grace = end_grace
        self._event_file_wait = event_file_wait
        self._poll_max = poll_max
        self._once = once
        self._as_it_is = as_it_is
        self._missed: dict[int, float] = {}
        self._visited = array("q")  # ascending

    @property
    def steps(self) -> Sequence[int]:
        """The known steps that can be read, ascending."""
        return self.base.steps

    def replace(self, indexes: Sequence[TrialIndex]) -> None:
        """Follow these indexes, of which some have turned out to be in other formats."""
        self.base = indexes[0]
        self._followed = [
            followed if followed.index is index else _Followed(index)
            for followed, index in zip(self._followed, indexes, strict=True)
        ]

    @property
    def all_steps(self) -> Sequence[int]:
        """All known steps, ascending; see `StepSource`."""
        return all_steps(self.base)

    @property
    def may_resume(self) -> bool:
        """Whether steps of the base trial may be repeated; see `StepSource`."""
        return self.base.may_resume

    def segments(self) -> Sequence[int]:
        """Return the first global step of each segment; see `StepSource`."""
        return self.base.segments

    @property
    def ended(self) -> bool:
        """Whether the base trial has ended and its last files have been listed."""
        return self._followed[0].has_ended

    @property
    def is_loaded(self) -> bool:
        """Whether no further steps of the base trial are expected; see `StepSource`."""
        return self.base.loaded_all_steps

    @property
    def ending(self) -> bool:
        """Whether a trial has its end mark and files of slow workers may still arrive."""
        return any(
            followed.ended_since is not None and not followed.index.loaded_all_steps
            for followed in self._followed
        )

    def others_ended(self) -> list[bool]:
        """Return for each other trial whether it has ended; nothing while that is not known yet."""
        return [] if self.ending else [followed.has_ended for followed in self._followed[1:]]

    def look(self, *, at_once: bool = False, last: bool = False) -> bool:
        """Look once at all trials, at remote ones if their pause is over; see `StepSource`.

        Raises
        ------
        StorageUnavailableError
            If a store does not answer, unless it has answered before and the error is transient.
        """
        if at_once or last:
            for followed in self._followed:
                followed.due = float("-inf")
        changes = [self._look_if_due(followed, last=last) for followed in self._followed]
        return any(changes)

    def settle(self) -> bool:
        """Let the last steps of quiet logs be judged as they are; see `StepSource`."""
        self._as_it_is = True
        return self.look(at_once=True)

    def _look_if_due(self, followed: _Followed, *, last: bool) -> bool:
        if followed.index.loaded_all_steps or self._clock.monotonic() < followed.due:
            return False
        changed = False
        try:
            changed = self._look_at(followed, last=last)
            followed.answered, followed.problem = True, ""
        except ObjectNotFoundError:  # the root does not exist
            pass
        except StorageUnavailableError as err:
            if not (err.transient and followed.answered):
                raise
            followed.problem = str(err)
        if followed.index.is_remote:
            self._pause(followed, changed)
        return changed

    def _pause(self, followed: _Followed, changed: bool) -> None:
        """Set when to look at a remote trial again."""
        followed.quiet_looks = 1 if changed else followed.quiet_looks + 1
        pause = self._end_grace
        if followed.ended_since is None:
            pause = pause_after(followed.quiet_looks, FIRST_PAUSE_S)
        followed.due = self._clock.monotonic() + min(pause, self._poll_max)

    def _look_at(self, followed: _Followed, *, last: bool) -> bool:
        index = followed.index
        # Look for the end mark first: by then all files of its writer exist.
        ended = index.has_ended()
        changed = index.refresh(whole=ended, ended=ended)
        if changed and (self._once or not index.is_remote):  # otherwise the next look does it
            index.refresh(whole=ended, ended=ended)
        if self._once and not ended:  # when a source was last written is known once it is read
            ended = index.has_ended()
        if not ended:
            if self._as_it_is and isinstance(index, SourceIndex) and not index.is_running():
                index.settle_all()
                followed.may_grow = True
                return True
            return changed
        now = self._clock.monotonic()
        if changed or followed.ended_since is None:
            followed.ended_since = now
        is_over = last or now - followed.ended_since >= self._end_grace
        # A listing of a remote store may lag behind recent writes.
        if is_over or (not index.is_remote and (_is_alone(index) or self._ended_long_ago(index))):
            index.finish()
            return True
        return changed

    def _ended_long_ago(self, index: TrialIndex) -> bool:
        """Return whether slow workers have had their time since the end mark was written.

        An end mark without steps may belong to files that are not recognized yet.
        """
        if not all_steps(index):
            return False
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            ended = index.store.status(END_OF_JOB).modified
            return self._clock.time() - ended >= self._end_grace + LONG_AGO_S
        return False

    def ready(self, after: int) -> Iterator[int]:
        """Yield the steps after `after` that are ready to be judged, ascending.

        They include steps whose index files cannot be read even after a wait; such steps are not
        in the files of `base`.
        """
        base = self.base
        if base.lacks_collections() and not base.loaded_all_steps:
            return
        steps = all_steps(base)
        for step in steps[bisect_right(steps, after) :]:
            if self._why_not(step):
                return
            if not self._visited or step > self._visited[-1]:
                self._visited.append(step)
            elif position_in(self._visited, step) < 0:
                insort(self._visited, step)
            yield step

    def kind(self, step: int, tensor: str | None = None) -> str:
        """Return the modes of a step, such as ``EVAL+TRAIN``, or of a tensor; see `StepSource`."""
        files = self.base.files.get(step, {})
        if len(files) == 1:
            (file,) = files.values()
            return file.mode.name
        modes = {
            file.mode.name for file in files.values() if tensor is None or tensor in file.entries
        }
        return "+".join(sorted(modes))

    def kinds(self, steps: NDArray[np.int64]) -> Mapping[str, int]:
        """Return how many of ascending steps are of each kind; see `StepSource`."""
        base = self.base
        return base.kinds(steps) if isinstance(base, SourceIndex) else super().kinds(steps)

    def step_name(self, step: int) -> str:
        """Return a step for people; see `StepSource`."""
        name, own = super().step_name(step), step_in_segment(step)
        counts = [
            f"{_PHASES[mode]} step {mode_step}"
            for mode, mode_step in self.base.tensors.modes_at(step).items()
            if mode in _PHASES and mode_step != own
        ]
        return f"{name} ({', '.join(counts)})" if counts else name

    @property
    def workers(self) -> Collection[str]:
        """The workers of the trial."""
        return self.base.workers

    def missing_workers(self, step: int) -> list[str] | None:
        """Return the workers whose data of a ready step is missing; see `StepSource`."""
        files = self.base.files.get(step)
        if files is None:
            return None
        return [] if files.keys() >= set(self.base.workers) else missing_workers(self.base, step)

    def lost_files(self) -> int:
        """Return how many files arrived after the trial was considered ended."""
        with suppress(ObjectNotFoundError, StorageUnavailableError, WaitEndedError):
            return self.base.lost_files()
        return 0

    def names(self) -> Sequence[str]:
        """Return the names of the tensors."""
        return list(self.base.names)

    def describe_contents(self) -> str:
        """Return the contents of the base trial; see `StepSource`."""
        base = self.base
        if not base.steps:
            return f"holds no {'readable steps' if all_steps(base) else 'steps'}."
        names = ", ".join(map(repr, sorted(base.collections)[:_NAMES_SHOWN])) or "none"
        return (
            f"holds {len(base.steps)} steps ({steps_text(base.steps)}), "
            f"{len(base.names)} tensors and the collections {names}."
        )

    def late_steps(self) -> list[int]:
        """Return the steps that arrived after a later one was ready, ascending."""
        visited, steps = self._visited, self.all_steps
        before = steps[: bisect_left(steps, visited[-1])] if visited else ()
        return [] if len(before) == len(visited) - 1 else sorted({*before}.difference(visited))

    def _why_not(self, step: int) -> str:
        """Return what a step is still waiting for; "" if it is ready."""
        base = self.base
        unread = self._unread(step) if step in base.file_problems.unread else ""
        if unread:
            return unread
        if not base.loaded_all_steps and step > base.settled_step:
            workers = ", ".join(map(repr, missing_workers(base, step)))
            return f"step {step_text(step)}{f' of workers {workers}' if workers else ''}"
        for followed in self._followed[1:]:
            index = followed.index
            if not index.loaded_all_steps and index.settled_step < step:
                return f"step {step_text(step)} of the other trial {index.store.uri!r}"
        return "" if base.loaded_all_steps else self._missing_event_file(step)

    def _unread(self, step: int) -> str:
        """Return the unreadable index file that a step still waits for, or ""."""
        base = self.base
        if base.read_again(step) and not base.loaded_all_steps and self._waits(step):
            for unread in base.file_problems.unread[step].values():
                return (
                    f"the index file {unread.key!r} ({base.file_problems.problems.get(unread.key)})"
                )
        return ""

    def _waits(self, step: int) -> bool:
        """Return whether there is time left to wait for the files of a step."""
        now = self._clock.monotonic()
        return now - self._missed.setdefault(step, now) < self._event_file_wait

    def _missing_event_file(self, step: int) -> str:
        """Return the event file that a step is waiting for, or ""."""
        for worker, file in self.base.files.get(step, {}).items():
            if self.base.tensors.lacks_event_file(step, worker) and self._waits(step):
                return f"the event file {file.event_key!r}"
        self._missed.pop(step, None)
        return ""

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each problem of the trials, for the results."""
        for followed in self._followed:
            index = followed.index
            whose = "" if index is self.base else f"Trial {index.store.uri!r}: "
            problems = [followed.problem] if followed.problem else []
            caveats = index.caveats() if isinstance(index, SourceIndex) else ()
            for note in (*index.file_problems.notes(), *problems, *caveats):
                yield f"{whose}{note}"
        late_parts = sorted(
            step for step in self.base.late_parts if position_in(self._visited, step) >= 0
        )
        if late_parts:
            others = f", and of {len(late_parts) - 1} later ones" if len(late_parts) > 1 else ""
            yield (
                f"A further mode of step {late_parts[0]}{others} was written after it was judged. "
                "Rules did not see it."
            )
        if self._once and isinstance(self.base, SourceIndex) and not self.ended:
            steps = self.base.steps
            if unjudged := steps[bisect_right(steps, self.base.settled_step) :]:
                yield (
                    f"The run has not ended, so that {_named(unjudged)} not judged: values may "
                    "follow."
                )

    def describe_wait(self, after: int) -> str:
        """Return what the step after `after` is waiting for, for messages."""
        base = self.base
        for followed in self._followed:
            if followed.problem:
                return f"the storage of trial {followed.index.store.uri!r}: {followed.problem}"
        if base.unrecognized:
            return f"the first file of trial {base.store.uri!r}: saved tensors, or a log"
        if base.lacks_collections():
            progress = f"found {len(base.workers)} of {max(base.num_workers, 1)}"
            missing = "".join(f"; {text}" for text in base.missing_collections()[:_NAMES_SHOWN])
            return f"the collections files of trial {base.store.uri!r} ({progress}{missing})"
        steps = all_steps(base)
        position = bisect_right(steps, after)
        last = f"step {step_text(steps[-1])}" if steps else "its start"
        if isinstance(base, SourceIndex) and position >= bisect_right(steps, base.settled_step):
            files = ", ".join(base.source_files[:_NAMES_SHOWN]) or repr(base.store.uri)
            return f"a row after {last}, or the end, in {files}"
        if position < len(steps):
            return self._why_not(steps[position]) or f"step {step_text(steps[position])}"
        return f"a step after {last}, or the end, of trial {base.store.uri!r}"


def _is_alone(index: TrialIndex) -> bool:
    """Return whether the worker that wrote the end mark is the only one."""
    return index.num_workers == 1 and not index.lacks_collections()


def _named(steps: Sequence[int]) -> str:
    """Return steps with their verb, such as ``step 3 is``."""
    if len(steps) == 1:
        return f"step {step_text(steps[0])} is"
    return f"steps {steps_text(steps)} are"
