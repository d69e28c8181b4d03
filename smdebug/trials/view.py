"""TrialView: one look at a trial: how far it reaches, what it knows of a step, what it reads."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NoReturn, TypeVar

from numpy.typing import NDArray

from smdebug.core.clock import Clock, SystemClock
from smdebug.core.index import Entry
from smdebug.core.locations import StepFile
from smdebug.core.measures import Measure
from smdebug.core.modes import ModeKeys
from smdebug.core.tensor import Place, StepState
from smdebug.environment import number
from smdebug.exceptions import (
    InvalidWorker,
    StepNotYetAvailable,
    StepUnavailable,
    TensorDamaged,
    TensorUnavailableForStep,
    TrialFileError,
)
from smdebug.storage.protocol import ObjectNotFoundError, StorageUnavailableError
from smdebug.trials.trial_index import TrialIndex

Array = NDArray[Any]
T = TypeVar("T")
POLL_S: Final = 0.25
LOOK_EVERY_S: Final = 1.0  # at remote trials, however many questions are asked meanwhile
EVENT_FILE_TRIES: Final = 5
EVENT_FILE_TRY_S: Final = 2.0


class TrialView:
    """A view of a `TrialIndex`: it may stop at a step, and may look for new files or not.

    It answers what tensors ask of their trial (`smdebug.core.tensor.TensorSource`).

    Attributes
    ----------
    dynamic_refresh
        Whether queries look for new files.
    horizon
        While a rule judges a global step, that step: nothing later is shown. Otherwise None.
    reads
        How many values and reductions were read so far.
    damaged
        How many could not be read.
    """

    def __init__(self, index: TrialIndex, clock: Clock | None = None) -> None:
        self.index = index
        self.clock = clock or SystemClock()
        self.dynamic_refresh = True
        self.horizon: int | None = None
        self.reads = 0
        self.damaged = 0
        self._ascents: dict[tuple[str, ModeKeys], tuple[int, int, int, bool]] = {}

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the training job has ended and all its files were looked for."""
        return self.index.loaded_all_steps and self.horizon is None

    def maybe_refresh(self, name: str | None = None) -> None:
        """Look for new files, unless that is held back; `name` has no effect."""
        del name
        if self.dynamic_refresh and not self.index.loaded_all_steps and self._is_due():
            self.refresh_data()

    def _is_due(self) -> bool:
        """Say whether it is time to look at a remote trial again; at a local one it always is."""
        if not self.index.is_remote:
            return True
        now = self.clock.monotonic()
        if now - self.index.looked_at < LOOK_EVERY_S:
            return False
        self.index.looked_at = now
        return True

    def refresh_data(self) -> None:
        """Look for new files; of an ended training job once more after a pause, for late ones.

        While a rule judges a step nothing new is to be seen, and nothing is looked for.
        """
        if self.horizon is not None:
            return
        if self.index.has_ended():
            self.index.refresh(whole=True)
            self.clock.sleep(number("SMDEBUG_TRAINING_END_DELAY_REFRESH", 1, "seconds"))
            self.index.refresh(whole=True)
            self.index.finish()
        else:
            self.index.refresh()

    def refresh_tensor(self, name: str) -> None:
        """Look for new files; `name` has no effect."""
        self.maybe_refresh(name)

    def _known_steps(self, mode: ModeKeys) -> list[tuple[int, int]]:
        """Return (step of the mode, global step) of all steps shown, ascending."""
        if mode is ModeKeys.GLOBAL:
            steps = self.index.steps
            if self.horizon is not None:
                steps = steps[: bisect_right(steps, self.horizon)]
            return [(step, step) for step in steps]
        found = self.index.mode_steps.get(mode, {}).items()
        return sorted(one for one in found if self.horizon is None or one[1] <= self.horizon)

    def _is_settled(self, place: int) -> bool:
        return self.horizon is not None or self.index.is_settled(place)

    def _global(self, step: int, mode: ModeKeys) -> int | None:
        """Return the global step of a step shown, without looking for new files."""
        place = step if mode is ModeKeys.GLOBAL else self.index.mode_steps.get(mode, {}).get(step)
        hidden = place is not None and self.horizon is not None and place > self.horizon
        return None if hidden else place

    def _state(self, step: int, mode: ModeKeys) -> StepState:
        place = self._global(step, mode)
        if place is not None and place in self.index.files:
            settled = self._is_settled(place)
            return StepState.AVAILABLE if settled else StepState.NOT_YET_AVAILABLE
        if self.index.loaded_all_steps and self.horizon is None:
            return StepState.UNAVAILABLE
        # A later step that is settled says that this one was passed over.
        known = self._known_steps(mode)
        at = bisect_right(known, step, key=lambda one: one[0])
        later = known[at][1] if at < len(known) else None
        if later is None:
            passed = mode is ModeKeys.GLOBAL and self.horizon is not None and step <= self.horizon
        else:
            passed = self.horizon is not None or self.index.last_complete_step >= later
        return StepState.UNAVAILABLE if passed else StepState.NOT_YET_AVAILABLE

    def wall_time(self, step: int, worker: str | None = None) -> float | None:
        """Return when a global step was saved, by the clock of the training job.

        Parameters
        ----------
        worker
            When this worker saved it; by default when the last of the workers did.

        Returns
        -------
        float or None
            Seconds since the epoch, of the first record of the step's event file. None if the step
            or what the worker saved of it is not there, holds shapes only, or is damaged.
        """
        times = self.wall_times(step)
        return max(times.values(), default=None) if worker is None else times.get(worker)

    def wall_times(self, step: int) -> dict[str, float]:
        """Return when each worker saved a global step; of whom `wall_time` is None is left out."""
        if step not in self.index.files:
            self.maybe_refresh()
        shown = self.horizon is None or step <= self.horizon
        workers = sorted(self.index.files.get(step, ())) if shown else []
        found = {worker: self._wall_time(step, worker) for worker in workers}
        return {worker: time for worker, time in found.items() if time > 0}

    def _wall_time(self, step: int, worker: str) -> float:
        """Return when a worker saved a step, or NaN."""
        file = self.index.files[step][worker]
        span = file.first_record
        if span is None or file.event_key is None:
            return math.nan
        place = Place(step, worker, Entry(raw=span))
        try:
            seconds = self._patiently("", place, lambda: self.index.wall_time(step, worker, span))
        except TensorDamaged:  # which is reported
            return math.nan
        return seconds if math.isfinite(seconds) else math.nan

    def original_name(self, name: str) -> str | None:
        """Return the framework's own name of a tensor; see `TensorSource`."""
        steps = self.index.names.get(name, [])
        shown = len(steps) if self.horizon is None else bisect_right(steps, self.horizon)
        return self.index.original_name(name, steps[:shown])

    def tensor_steps(
        self, name: str, mode: ModeKeys | None, show_incomplete_steps: bool
    ) -> list[int]:
        """Return the steps of a tensor; see `TensorSource`."""
        self.maybe_refresh()
        mode = mode or ModeKeys.GLOBAL
        index = self.index
        places = index.places(name, mode)
        if self.horizon is not None:
            places = places[: bisect_right(places, self.horizon)]
        if not (show_incomplete_steps or self.horizon is not None or index.loaded_all_steps):
            places = index.settled(places)
        if mode is ModeKeys.GLOBAL:
            return list(places)
        return sorted({index.mode_step_at(place, mode) for place in places})

    def steps_back(self, name: str, step: int, mode: ModeKeys | None) -> Iterator[int]:
        """Yield the steps of a tensor up to a step, the latest first; see `TensorSource`."""
        self.maybe_refresh()
        mode = mode or ModeKeys.GLOBAL
        index = self.index
        places = index.places(name, mode)
        everything = self.horizon is not None or index.loaded_all_steps
        if not (everything and (mode is ModeKeys.GLOBAL or self._ascend(name, mode, places))):
            steps = self.tensor_steps(name, mode, show_incomplete_steps=False)
            yield from reversed(steps[: bisect_right(steps, step)])
            return

        def number(place: int) -> int:
            return index.mode_step_at(place, mode)

        at = bisect_right(places, step, key=number)
        if self.horizon is not None:
            at = min(at, bisect_right(places, self.horizon))
        while at > 0:
            at -= 1
            yield number(places[at])

    def first_step(self, name: str) -> int:
        """Return the first global step of a known tensor; see `TensorSource`."""
        return self.index.names[name][0]

    def _ascend(self, name: str, mode: ModeKeys, places: Sequence[int]) -> bool:
        """Say whether the steps of a mode ascend with the global steps of a tensor."""
        known, last, number, ascend = self._ascents.get((name, mode), (0, -1, -1, True))
        if known and places[known - 1] != last:  # an older step has come
            known, number, ascend = 0, -1, True
        for place in islice(places, known, None):
            before, number = number, self.index.mode_step_at(place, mode)
            ascend = ascend and before < number
        self._ascents[name, mode] = len(places), places[-1] if places else -1, number, ascend
        return ascend

    def tensor_workers(self, name: str, step: int, mode: ModeKeys | None) -> list[str]:
        """Return the workers of a tensor at a step; see `TensorSource`."""
        mode = mode or ModeKeys.GLOBAL
        _, workers = self._look_up(name, step, mode)
        if not workers:
            raise TensorUnavailableForStep(name, step, mode)
        return workers

    def saved_by(self, step: int, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return each of `names` with each worker that saved it at a global step shown."""
        shown = self.horizon is None or step <= self.horizon
        files = sorted(self.index.files.get(step, {}).items()) if shown else []
        saved = [(worker, file.entries) for worker, file in files]
        return [(name, worker) for name in names for worker, entries in saved if name in entries]

    def _look_up(self, name: str, step: int, mode: ModeKeys) -> tuple[int, list[str]]:
        """Return the global step, and the workers of a tensor there; look for files if need be."""
        found = self._workers(name, step, mode)
        if not found[1]:
            self.maybe_refresh()
            found = self._workers(name, step, mode)
        return found

    def _workers(self, name: str, step: int, mode: ModeKeys) -> tuple[int, list[str]]:
        place = self._global(step, mode)
        return (-1, []) if place is None else (place, self.index.workers_with(name, place, mode))

    def find(self, name: str, step: int, mode: ModeKeys | None, worker: str | None) -> Place:
        """Return where a tensor is; see `TensorSource`."""
        mode = mode or ModeKeys.GLOBAL
        place, workers = self._look_up(name, step, mode)
        if not workers:
            self._raise_not_found(name, step, mode)
        if worker is None:
            worker = workers[0]
        elif worker not in workers:
            raise InvalidWorker(worker)
        return Place(place, worker, self.index.files[place][worker].entries[name])

    def _raise_not_found(self, name: str, step: int, mode: ModeKeys) -> NoReturn:
        state = self._state(step, mode)
        if state is StepState.AVAILABLE or (
            state is StepState.NOT_YET_AVAILABLE and self.horizon is not None
        ):
            raise TensorUnavailableForStep(name, step, mode)
        if state is StepState.UNAVAILABLE:
            raise StepUnavailable(step, mode)
        raise StepNotYetAvailable(step, mode)

    def read(self, name: str, place: Place, reduction: tuple[str, bool] | None = None) -> Array:
        """Return a saved value or reduction; see `TensorSource`."""
        step, worker = place.step, place.worker
        return self._patiently(
            name, place, lambda: self.index.tensor(name, step, worker, reduction)
        )

    def shape(self, name: str, place: Place) -> tuple[int, ...]:
        """Return the shape of a saved value; see `TensorSource`."""
        foresight = self.index.foresight
        found = None
        if foresight is not None and place.step == self.horizon:
            found = foresight.shape(place.step, place.worker, name)
        if found is None:
            return self.read(name, place).shape
        self.reads += 1
        return found

    def foreseen(
        self, name: str, step: int, worker: str | None, one: Measure, before: int | None = None
    ) -> Any:
        """Return what was measured ahead of the question; see `TensorSource`."""
        foresight = self.index.foresight
        if foresight is None or step != self.horizon:
            return None
        found = foresight.get(step, worker, name, (one, before))
        if found is not None:
            self.reads += 1
        return found

    def foreseen_all(
        self, step: int, worker: str, names: Iterable[str], one: Measure
    ) -> Mapping[str, Any]:
        """Return what was measured ahead of the question; tensors not foreseen are left out."""
        foresight = self.index.foresight
        if foresight is None or step != self.horizon:
            return {}
        found = foresight.get_all(step, worker, names, (one, None))
        self.reads += len(found)
        return found

    def measure(self, name: str, place: Place, one: Measure, before: int | None = None) -> Any:
        """Return what a measure tells of a saved value; see `TensorSource`."""
        step, worker = place.step, place.worker
        return self._patiently(
            name, place, lambda: self.index.measure(name, step, worker, one, before)
        )

    def _patiently(self, name: str, place: Place, read: Callable[[], T]) -> T:
        """Return what `read` does; wait for an event file that is late."""
        deadline: float | None = None
        while True:
            try:
                found = read()
            except ObjectNotFoundError as err:
                now = self.clock.monotonic()
                deadline = now + self._event_file_wait(place) if deadline is None else deadline
                if now >= deadline:
                    raise self._damaged(name, place, err) from err
                self.clock.sleep(POLL_S)
            except (TrialFileError, StorageUnavailableError) as err:
                raise self._damaged(name, place, err) from err
            else:
                self.reads += 1
                return found

    def _damaged(self, name: str, place: Place, err: Exception) -> TensorDamaged:
        found = self.index.files[place.step][place.worker]
        at = StepFile(place.step, place.worker)
        self.index.report(found.event_key or found.key, err, at)
        self.damaged += 1
        return TensorDamaged(name, found.mode_step, found.mode, str(err))

    def _event_file_wait(self, place: Place) -> float:
        """Return for how many seconds an event file that is not there may still come."""
        later = any(
            place.worker in self.index.files[step]
            for step in self.index.steps[bisect_right(self.index.steps, place.step) :]
        )
        if self.horizon is not None or self.index.loaded_all_steps or later:
            return 0.0
        tries = number("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", EVENT_FILE_TRIES, "tries")
        return EVENT_FILE_TRY_S * tries
