"""TrialView: a view of a trial up to a step, the reads of its tensors, and `snapshot`."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeVar

from rule_core.clock import Clock, SystemClock
from rule_core.environment import number
from rule_core.exceptions import (
    InvalidWorker,
    StepNotYetAvailable,
    StepUnavailable,
    TensorDamaged,
    TensorUnavailableForStep,
)
from rule_core.format.index_file import Entry
from rule_core.format.paths import StepFile, worker_of
from rule_core.model.segments import SEGMENT_STEPS, first_of_segment
from rule_core.model.streaming_statistics import StreamingStatistic
from rule_core.modes import ModeKeys
from rule_core.reading.file_problems import UNREADABLE
from rule_core.reading.trial_index import TrialIndex
from rule_core.storage.base import ObjectNotFoundError
from rule_core.trials.tensor import Array, StepState, TensorLocation

T = TypeVar("T")
POLL_S: Final = 0.25
LOOK_EVERY_S: Final = 1.0  # in remote trials, regardless of the number of queries
WARN_AFTER_S: Final = 10.0
EVENT_FILE_TRIES: Final = 5
EVENT_FILE_TRY_S: Final = 2.0
_SHOWN: Final = attrgetter("horizon", "judged", "dynamic_refresh")


class Refreshing:
    """What context managers and rules set of a trial, and what it counts.

    Attributes
    ----------
    dynamic_refresh
        Whether queries look for new files.
    horizon
        The global step that a rule is evaluating; later steps, and those of other segments, are
        hidden. Otherwise, and in a trial that `is_whole`, None.
    judged
        The global step that a rule is evaluating, or None.
    is_whole
        Whether rules see the whole trial at each step: they compare another trial with it.
    reads
        The number of values and reductions read so far; in a profiler trial, of queries with data.
    """

    dynamic_refresh: bool = True
    horizon: int | None = None
    judged: int | None = None
    is_whole: bool = False
    reads: int = 0

    def expire(self) -> None:
        """Make the next query look for new files, even shortly after the last look."""
        raise NotImplementedError


Trials = Refreshing | Iterable[Refreshing]


@contextmanager
def snapshot(trials: Trials, step: int) -> Iterator[None]:
    """Show only global steps up to `step`, and no new files, inside the block.

    All steps of a trial that `is_whole` stay visible.
    """
    several = [*trials] if isinstance(trials, Iterable) else [trials]
    previous = [*map(_SHOWN, several)]
    for trial in several:
        trial.horizon, trial.judged = None if trial.is_whole else step, step
        trial.dynamic_refresh = False
    try:
        yield
    finally:
        for trial, state in zip(several, previous, strict=True):
            trial.horizon, trial.judged, trial.dynamic_refresh = state


class TrialView(Refreshing):
    """A view of a `TrialIndex`, optionally limited to a step or to the files already loaded.

    Attributes
    ----------
    damaged
        The number that could not be read.
    """

    def __init__(self, index: TrialIndex, clock: Clock | None = None) -> None:
        self.index = index
        self.clock = clock or SystemClock()
        self.damaged = 0
        self._ascents: dict[tuple[str, ModeKeys], tuple[int, int, int, bool]] = {}

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the training job has ended and all its files have been loaded."""
        return self.index.loaded_all_steps and self.horizon is None

    def maybe_refresh(self, name: str | None = None) -> None:
        """Look for new files unless disabled; `name` is ignored."""
        del name
        if self.dynamic_refresh and not self.index.loaded_all_steps:
            self.index.looked_at = self.clock.monotonic()
            self.refresh_data()

    @property
    def pause_s(self) -> float:
        """The seconds to wait before the next look for new files."""
        return LOOK_EVERY_S if self.index.is_remote else POLL_S

    def expire(self) -> None:
        """Make the next query look for new files, even if the last one just did."""
        self.index.looked_at = -math.inf

    def _look(self) -> None:
        """Call `maybe_refresh`, in a remote trial at most every `LOOK_EVERY_S`."""
        if not self.dynamic_refresh:
            return
        ago = self.clock.monotonic() - self.index.looked_at
        if not self.index.is_remote or ago >= LOOK_EVERY_S:
            self.maybe_refresh()

    def refresh_data(self) -> None:
        """Look for new files; once the training job has ended, again after a pause for late files.

        Does nothing while a rule is evaluating a step.
        """
        if self.horizon is not None:
            return
        if self.index.has_ended():
            self.index.refresh(whole=True, ended=True)
            self.clock.sleep(number("SMDEBUG_TRAINING_END_DELAY_REFRESH", 1, "seconds"))
            self.index.refresh(whole=True, ended=True)
            self.index.finish()
        else:
            self.index.refresh()

    def refresh_tensor(self, name: str) -> None:
        """Look for new files; `name` is ignored."""
        self.maybe_refresh(name)

    def _known_steps(self, mode: ModeKeys) -> list[tuple[int, int]]:
        """Return (mode step, global step) of all visible steps, ascending."""
        if mode is ModeKeys.GLOBAL:
            return [(step, step) for step in self._visible(self.index.steps)]
        return sorted(self.index.mode_step_pairs(mode, self.horizon))

    def _visible(self, steps: Sequence[int]) -> Sequence[int]:
        """Return the visible ones of ascending global steps."""
        if self.horizon is None:
            return steps
        first, end = self._visible_range(steps, self.horizon)
        return steps[first:end]

    def _visible_range(self, steps: Sequence[int], horizon: int) -> tuple[int, int]:
        """Return where the steps of a horizon's segment up to it begin and end."""
        end = bisect_right(steps, horizon)
        if horizon < SEGMENT_STEPS:
            return 0, end
        return bisect_left(steps, first_of_segment(horizon), 0, end), end

    def _is_visible(self, step: int) -> bool:
        """Return whether a global step is visible."""
        horizon = self.horizon
        return horizon is None or horizon - horizon % SEGMENT_STEPS <= step <= horizon

    def _shows_any(self, steps: Sequence[int]) -> bool:
        """Return whether any of ascending global steps, at least one, is visible."""
        horizon = self.horizon
        if horizon is None or horizon < SEGMENT_STEPS:
            return horizon is None or steps[0] <= horizon
        first, end = self._visible_range(steps, horizon)
        return first < end

    def _global(self, step: int, mode: ModeKeys) -> int | None:
        """Return the global step of a visible step, without looking for new files."""
        if mode is ModeKeys.GLOBAL:
            global_step: int | None = step
        else:
            global_step = self.index.global_step_of(mode, step, self.horizon)
        horizon = self.horizon
        if global_step is None or horizon is None:
            return global_step
        is_visible = horizon - horizon % SEGMENT_STEPS <= global_step <= horizon
        return global_step if is_visible else None

    def _state(self, step: int, mode: ModeKeys) -> StepState:
        global_step = self._global(step, mode)
        if global_step is not None and global_step in self.index.files:
            settled = self.horizon is not None or bool(self.index.settled([global_step]))
            return StepState.AVAILABLE if settled else StepState.NOT_YET_AVAILABLE
        if self.index.loaded_all_steps and self.horizon is None:
            return StepState.UNAVAILABLE
        # A later settled step means that this one was skipped.
        known_steps = self._known_steps(mode)
        position = bisect_right(known_steps, step, key=lambda pair: pair[0])
        later = known_steps[position][1] if position < len(known_steps) else None
        if later is None:
            passed = mode is ModeKeys.GLOBAL and self.horizon is not None and step <= self.horizon
        else:
            passed = self.horizon is not None or self.index.last_complete_step >= later
        return StepState.UNAVAILABLE if passed else StepState.NOT_YET_AVAILABLE

    def wall_time(self, step: int, worker: str | None = None) -> float | None:
        """Return the time at which a global step was saved, by the clock of the training job.

        Parameters
        ----------
        worker
            The worker; by default the one that saved last.

        Returns
        -------
        float or None
            Seconds since the epoch, from the first record of the step's event file. None if the
            file does not exist, holds only shapes, or is damaged.
        """
        times = self.wall_times(step)
        return max(times.values(), default=None) if worker is None else times.get(worker)

    def wall_times(self, step: int) -> dict[str, float]:
        """Return worker -> `wall_time` of a global step, without workers whose time is None."""
        if step not in self.index.files:
            self._look()
        parts = sorted(self.index.files.get(step, ())) if self._is_visible(step) else []
        times: dict[str, float] = {}
        for part in parts:
            time, worker = self._wall_time(step, part), worker_of(part)
            if time > times.get(worker, 0):
                times[worker] = time
        return times

    def _wall_time(self, step: int, part: str) -> float:
        """Return the time at which a part of a step was saved, or NaN."""
        tensors, span = self.index.tensors, self.index.files[step][part].first_record
        if span is None:
            seconds = tensors.wall_time(step, part, None)
            self.reads += not math.isnan(seconds)
            return seconds
        location = TensorLocation(step, part, Entry(raw=span))
        try:
            seconds = self._read_when_written(
                "", location, lambda: tensors.wall_time(step, part, span)
            )
        except TensorDamaged:  # already reported
            return math.nan
        return seconds if math.isfinite(seconds) else math.nan

    def original_name(self, name: str) -> str | None:
        """Return the framework's own name of a tensor, if shapes were saved."""
        index = self.index
        return index.tensors.original_name(name, self._visible(index.names.get(name, [])))

    def tensor_steps(
        self, name: str, mode: ModeKeys | None, show_incomplete_steps: bool
    ) -> list[int]:
        """Return the steps of `mode` at which anything of a tensor was saved, ascending."""
        self._look()
        mode = mode or ModeKeys.GLOBAL
        index = self.index
        global_steps = self._visible(self._steps_by_name(mode).get(name, []))
        if not (show_incomplete_steps or self.horizon is not None or index.loaded_all_steps):
            global_steps = index.settled(global_steps)
        if mode is ModeKeys.GLOBAL:
            return list(global_steps)
        return sorted({index.mode_step_at(step, mode) for step in global_steps})

    def steps_back(self, name: str, step: int, mode: ModeKeys | None) -> Iterator[int]:
        """Yield the steps of `mode` up to `step` at which a tensor was saved, the latest first."""
        self._look()
        mode = mode or ModeKeys.GLOBAL
        index = self.index
        global_steps = self._steps_by_name(mode).get(name, [])
        everything = self.horizon is not None or index.loaded_all_steps
        if not (everything and (mode is ModeKeys.GLOBAL or self._ascend(name, mode, global_steps))):
            steps = self.tensor_steps(name, mode, show_incomplete_steps=False)
            yield from reversed(steps[: bisect_right(steps, step)])
            return

        def number(global_step: int) -> int:
            return index.mode_step_at(global_step, mode)

        first, end = 0, len(global_steps)
        if self.horizon is not None:
            first, end = self._visible_range(global_steps, self.horizon)
        position = bisect_right(global_steps, step, first, end, key=number)
        while position > first:
            position -= 1
            yield number(global_steps[position])

    def any_steps_back(self, step: int) -> Iterator[int]:
        """Yield the visible global steps up to a step, the latest first."""
        self._look()
        steps, first, end = self.index.steps, 0, None
        if self.horizon is None:
            steps = self.index.settled(steps)
        else:
            first, end = self._visible_range(steps, self.horizon)
        end = bisect_right(steps, step, first, end)
        yield from map(steps.__getitem__, range(end - 1, first - 1, -1))

    def _steps_by_name(self, mode: ModeKeys) -> Mapping[str, Sequence[int]]:
        """Return the global steps at which each tensor was saved in a mode."""
        index = self.index
        return index.names if mode is ModeKeys.GLOBAL else index.names_by_mode.get(mode, {})

    def first_step(self, name: str) -> int:
        """Return the first visible global step at which anything of a known tensor was saved."""
        steps, horizon = self.index.names[name], self.horizon
        if horizon is None or horizon < SEGMENT_STEPS:
            return steps[0]
        return steps[self._visible_range(steps, horizon)[0]]

    def _ascend(self, name: str, mode: ModeKeys, global_steps: Sequence[int]) -> bool:
        """Return whether the visible mode steps of a tensor ascend with its global steps."""
        if self.horizon is None and global_steps and global_steps[-1] >= SEGMENT_STEPS:
            return False
        checked, last, position, ascend = self._ascents.get((name, mode), (0, -1, -1, True))
        if checked and global_steps[checked - 1] != last:  # an older step was added
            checked, position, ascend = 0, -1, True
        for step in islice(global_steps, checked, None):
            first = step - step % SEGMENT_STEPS
            previous, position = position, first + self.index.mode_step_at(step, mode)
            ascend = ascend and previous < position
        self._ascents[name, mode] = (
            len(global_steps),
            global_steps[-1] if global_steps else -1,
            position,
            ascend,
        )
        return ascend

    def tensor_workers(self, name: str, step: int, mode: ModeKeys | None) -> list[str]:
        """Return the workers that saved a tensor at a step of `mode`."""
        mode = mode or ModeKeys.GLOBAL
        _, parts = self._find_parts(name, step, mode)
        if not parts:
            raise TensorUnavailableForStep(name, step, mode)
        return [*dict.fromkeys(map(worker_of, parts))]

    def saved_by(self, step: int, names: Iterable[str]) -> dict[tuple[str, str], Entry]:
        """Return (name, worker) -> index entry of each of `names` that a worker saved at a step.

        If a worker saved a tensor in several modes, each but the first has the form
        ``<worker>@<mode>``, which the methods of a tensor accept as a worker too.
        """
        horizon = self.horizon
        is_visible = horizon is None or horizon - horizon % SEGMENT_STEPS <= step <= horizon
        files = self.index.files.get(step, {}) if is_visible else {}
        if len(files) == 1:
            ((part, file),) = files.items()
            worker, entries = worker_of(part), file.entries
            return {(name, worker): entries[name] for name in names if name in entries}
        ordered = sorted((worker_of(part), files[part].mode.value, part) for part in files)
        saved: dict[tuple[str, str], Entry] = {}
        for name in names:
            for worker, _, part in ordered:
                if name in files[part].entries:
                    key = name, part if (name, worker) in saved else worker
                    saved[key] = files[part].entries[name]
        return saved

    def _find_parts(self, name: str, step: int, mode: ModeKeys) -> tuple[int, list[str]]:
        """Return the global step and the parts of a tensor; look for new files if necessary."""
        location = self._parts(name, step, mode)
        if not location[1]:
            self._look()
            location = self._parts(name, step, mode)
        return location

    def _parts(self, name: str, step: int, mode: ModeKeys) -> tuple[int, list[str]]:
        global_step = self._global(step, mode)
        if global_step is None:
            return -1, []
        return global_step, self.index.tensors.parts_with(name, global_step, mode)

    def find(
        self, name: str, step: int, mode: ModeKeys | None, worker: str | None
    ) -> TensorLocation:
        """Return the location of a tensor, or raise as `Tensor.value` documents."""
        mode = mode or ModeKeys.GLOBAL
        global_step, parts = self._find_parts(name, step, mode)
        if not parts:
            self._raise_not_found(name, step, mode)
        part = parts[0]
        if worker is not None and parts != [worker]:
            part = _part_of(worker, parts)
        return TensorLocation(global_step, part, self.index.files[global_step][part].entries[name])

    def _raise_not_found(self, name: str, step: int, mode: ModeKeys) -> NoReturn:
        state = self._state(step, mode)
        if state is StepState.AVAILABLE or (
            state is StepState.NOT_YET_AVAILABLE and self.horizon is not None
        ):
            raise TensorUnavailableForStep(name, step, mode)
        if state is StepState.UNAVAILABLE:
            raise StepUnavailable(step, mode)
        raise StepNotYetAvailable(step, mode)

    def scalar(
        self, name: str, step: int, mode: ModeKeys, worker: str | None = None
    ) -> float | None:
        """Return a number in a row of a source at a step of `mode`; None for other tensors.

        It is None too if no `worker` is given and the tensor was saved more than once.
        """
        global_step = self._global(step, mode)
        if global_step is None:
            return None
        scalar = self.index.tensors.scalar(name, global_step, mode, worker)
        self.reads += scalar is not None
        return scalar

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return what `scalar` returns for each tensor at a global step, without None."""
        scalars = self.index.tensors.scalars(step) if self._is_visible(step) else {}
        self.reads += len(scalars)
        return scalars

    def read(
        self, name: str, location: TensorLocation, reduction: tuple[str, bool] | None = None
    ) -> Array:
        """Return the saved value, or one saved reduction, read-only."""
        step, worker = location.step, location.worker
        return self._read_when_written(
            name, location, lambda: self.index.tensors.value(name, step, worker, reduction)
        )

    def shape(self, name: str, location: TensorLocation) -> tuple[int, ...]:
        """Return the shape of the saved value."""
        prefetch = self.index.tensors.local_prefetch
        shape = None
        if prefetch is not None and location.step == self.judged:
            shape = prefetch.shape(location.step, location.worker, name)
        if shape is None:
            return self.read(name, location).shape
        self.reads += 1
        return shape

    def prefetched(
        self,
        name: str,
        step: int,
        worker: str | None,
        statistic: StreamingStatistic,
        before: int | None = None,
    ) -> Any:
        """Return the prefetched result of a statistic at a global step, or None."""
        prefetch = self.index.tensors.local_prefetch
        if prefetch is None or step != self.judged:
            return None
        result = prefetch.get(step, worker, name, (statistic, before))
        if result is not None:
            self.reads += 1
        return result

    def prefetched_all(
        self,
        step: int,
        worker: str,
        names: Iterable[str],
        statistic: StreamingStatistic,
        before: int | None = None,
    ) -> Mapping[str, Any]:
        """Return name -> prefetched result of a statistic, for the tensors that have one."""
        prefetch = self.index.tensors.local_prefetch
        if prefetch is None or step != self.judged:
            return {}
        results = prefetch.get_all(step, worker, names, (statistic, before))
        self.reads += len(results)
        return results

    def prefetched_shapes(
        self, step: int, worker: str, names: Iterable[str]
    ) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of the prefetched values, for the tensors that have one."""
        prefetch = self.index.tensors.local_prefetch
        if prefetch is None or step != self.judged:
            return {}
        shapes = {
            name: shape
            for name in names
            if (shape := prefetch.shape(step, worker, name)) is not None
        }
        self.reads += len(shapes)
        return shapes

    def measure(
        self,
        name: str,
        location: TensorLocation,
        statistic: StreamingStatistic,
        before: int | None = None,
    ) -> Any:
        """Return a statistic of the saved value, compared with its value at step `before`."""
        step, worker = location.step, location.worker
        tensors = self.index.tensors
        return self._read_when_written(
            name, location, lambda: tensors.measure(name, step, worker, statistic, before)
        )

    def _read_when_written(self, name: str, location: TensorLocation, read: Callable[[], T]) -> T:
        """Call `read`, and wait for an event file that is late."""
        self.index.tensors.failures.turn_to(self.horizon)
        deadline: float | None = None
        while True:
            try:
                result = read()
            except ObjectNotFoundError as err:
                now = self.clock.monotonic()
                deadline = now + self._event_file_wait(location) if deadline is None else deadline
                if now >= deadline:
                    raise self._damaged(name, location, err) from err
                self.clock.sleep(POLL_S)
            except UNREADABLE as err:
                raise self._damaged(name, location, err) from err
            else:
                self.reads += 1
                return result

    def _damaged(self, name: str, location: TensorLocation, err: Exception) -> TensorDamaged:
        file = self.index.files[location.step][location.worker]
        step_file = StepFile(location.step, location.worker)
        self.index.file_problems.cannot_read_tensor(file.event_key or file.key, step_file, err)
        self.damaged += 1
        return TensorDamaged(name, file.mode_step, file.mode, str(err))

    def _event_file_wait(self, location: TensorLocation) -> float:
        """Return for how many seconds to wait for a missing event file."""
        later = any(
            location.worker in self.index.files[step]
            for step in self.index.steps[bisect_right(self.index.steps, location.step) :]
        )
        if self.horizon is not None or self.index.loaded_all_steps or later:
            return 0.0
        tries = number("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", EVENT_FILE_TRIES, "tries")
        return EVENT_FILE_TRY_S * tries


def _part_of(worker: str, parts: Sequence[str]) -> str:
    """Return the first of a worker's parts; a part is returned if it is one of them.

    Raises
    ------
    InvalidWorker
        If the worker has none.
    """
    name = worker_of(worker)
    if worker in parts and (name != worker or len(set(map(worker_of, parts))) == len(parts)):
        return worker
    for part in parts:
        if worker_of(part) == name:
            return part
    raise InvalidWorker(worker)
