"""Trial: the documented questions about what a training job saved.

Several trials may look at one `TrialIndex`: each rule has one of its own, with its own
collections and its own horizon, over the same bytes.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from smdebug.core import patterns
from smdebug.core.clock import Clock, SystemClock
from smdebug.core.collection import Collection
from smdebug.core.index import Span
from smdebug.core.modes import ModeKeys
from smdebug.core.tensor import Place, StepState, Tensor
from smdebug.exceptions import (
    InvalidWorker,
    NoMoreData,
    StepNotYetAvailable,
    StepUnavailable,
    TensorDamaged,
    TensorUnavailable,
    TensorUnavailableForStep,
    TrialFileError,
)
from smdebug.storage.protocol import ObjectNotFoundError, StorageUnavailableError
from smdebug.trials.trial_index import TrialIndex

Array = NDArray[Any]
T = TypeVar("T")
POLL_S: Final = 0.25
EVENT_FILE_WAIT_S: Final = 10.0
MISSED_KEPT: Final = 20


class Trial:
    """What one training job saved under one root; `create_trial` makes it.

    Queries look for new files first, unless `smdebug.analysis.utils.no_refresh` holds or the
    training job has ended and all was seen. ``mode`` is GLOBAL by default: steps are global steps
    then, and steps within the mode otherwise.

    Attributes
    ----------
    name, path
        Name and root, as given.
    dynamic_refresh
        Whether queries look for new files.
    horizon
        While a rule judges a global step, that step: nothing later is shown. Otherwise None.
    reads
        How many values and reductions were read so far.
    missed
        What was asked for and is not there, in words; at most `MISSED_KEPT`.
    """

    def __init__(self, name: str, path: str, index: TrialIndex, clock: Clock | None = None) -> None:
        self.name = name
        self.path = path
        self.index = index
        self.clock = clock or SystemClock()
        self.dynamic_refresh = True
        self.horizon: int | None = None
        self.reads = 0
        self.missed: dict[str, None] = {}
        self._tensors: dict[str, Tensor] = {}
        self._collections: dict[str, Collection] = {}
        self._collections_version = -1

    def share(self) -> Self:
        """Return another view of the same trial: same bytes, own collections and horizon."""
        return type(self)(self.name, self.path, self.index, self.clock)

    def __repr__(self) -> str:
        return f"Trial(name={self.name!r}, path={self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    # -- refreshing --------------------------------------------------------------------------

    @property
    def range_steps(self) -> tuple[int | None, int | None] | None:
        """The steps that are loaded, as given to `create_trial`."""
        return self.index.range_steps

    @property
    def num_workers(self) -> int:
        """The number of processes that write the trial, by their own account."""
        return self.index.num_workers

    @property
    def worker_set(self) -> set[str]:
        """The workers whose collections files are there."""
        return set(self.index.workers)

    @property
    def last_complete_step(self) -> int:
        """The last global step that all workers wrote; -1 if there is none."""
        return self.index.last_complete_step if self.horizon is None else self.horizon

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the training job has ended and all its files were looked for."""
        return self.index.loaded_all_steps and self.horizon is None

    def maybe_refresh(self, name: str | None = None) -> None:
        """Look for new files, unless that is held back; `name` has no effect."""
        del name
        if self.dynamic_refresh and not self.index.loaded_all_steps:
            self.refresh_data()

    def refresh_data(self) -> None:
        """Look for new files; of an ended training job once more after a pause, for late ones.

        While a rule judges a step nothing new is to be seen, and nothing is looked for.
        """
        if self.horizon is not None:
            return
        if self.index.has_ended():
            self.index.refresh(whole=True)
            self.clock.sleep(float(os.environ.get("SMDEBUG_TRAINING_END_DELAY_REFRESH", "1")))
            self.index.refresh(whole=True)
            self.index.finish()
        else:
            self.index.refresh()

    def refresh_tensor(self, name: str) -> None:
        """Look for new files; `name` has no effect."""
        self.maybe_refresh(name)

    # -- tensors -----------------------------------------------------------------------------

    def tensor_names(
        self,
        first: int | None = None,
        /,
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        regex: Any = None,
        collection: str | Collection | None = None,
        *,
        step: int | None = None,
        show_prefixed_tensors: bool = False,
    ) -> list[str]:
        """Return the names of saved tensors, sorted.

        Parameters
        ----------
        step
            Only those saved at this step; the first positional argument. (A boolean there is what
            older versions took, and has no effect; nor has `show_prefixed_tensors`.)
        mode
            Only those saved in this mode.
        regex
            Only those in which this pattern, or one of these patterns, is found.
        collection
            Only members of this collection; its name may be given.

        Raises
        ------
        ValueError
            If both `regex` and `collection` are given.
        TypeError
            If one of them is of another type.
        re.error, SMDebugValueError
            If a pattern cannot be used.
        """
        del show_prefixed_tensors
        if step is None and not isinstance(first, bool):
            step = first
        if regex is not None and collection is not None:
            msg = "Tensor names are asked for by regex or by collection, got both."
            raise ValueError(msg)
        self.maybe_refresh()
        names = self._names(step, mode or ModeKeys.GLOBAL)
        if regex is not None:
            names = patterns.matching(names, patterns.flatten(regex))
            self._note_missed(names, "pattern", regex)
        elif collection is not None:
            wanted = self._resolve(collection)
            names = wanted.members(names)
            self._note_missed(names, "collection", wanted.name)
        return names

    def _note_missed(self, found: object, kind: str, what: object) -> None:
        """Remember what was asked for and is not there, and forget it once it is."""
        text = f"{kind} {what!r}"
        if found:
            self.missed.pop(text, None)
        elif len(self.missed) < MISSED_KEPT:
            self.missed[text] = None

    tensors = tensor_names

    def tensors_in_collection(self, coll_name: str | Collection) -> list[str]:
        """Return the names of a collection's tensors, sorted: the name older versions had."""
        return self.tensor_names(collection=coll_name)

    def tensors_matching_regex(self, regex_list: Any) -> list[str]:
        """Return the names in which a pattern is found, sorted: the name older versions had."""
        return self.tensor_names(regex=regex_list)

    def _names(self, step: int | None, mode: ModeKeys) -> list[str]:
        """Return the names saved at a step of a mode, or at any."""
        index = self.index
        if step is not None:
            place = self._global(step, mode)
            files = index.files.get(-1 if place is None else place, {}).values()
            return sorted(
                {
                    name
                    for one in files
                    if mode in {ModeKeys.GLOBAL, one.mode}
                    for name in one.entries
                }
            )
        known = index.names if mode is ModeKeys.GLOBAL else index.names_by_mode.get(mode, {})
        if self.horizon is None:
            return sorted(known)
        return sorted(name for name, steps in known.items() if steps[0] <= self.horizon)

    def _resolve(self, collection: object) -> Collection:
        if isinstance(collection, str):
            return self.collection(collection)
        if isinstance(collection, Collection):
            return collection
        msg = f"A collection is given as its name or as a Collection, got {collection!r}."
        raise TypeError(msg)

    def has_tensor(self, tname: str) -> bool:
        """Say whether any step seen so far has the tensor."""
        if not self._knows(tname):
            self.maybe_refresh()
        return self._knows(tname)

    def _knows(self, tname: str) -> bool:
        steps = self.index.names.get(tname)
        return steps is not None and (self.horizon is None or steps[0] <= self.horizon)

    def tensor(self, tname: str) -> Tensor:
        """Return the tensor of this name.

        Raises
        ------
        TensorUnavailable
            If no step seen so far has it.
        """
        if not self.has_tensor(tname):
            self._note_missed(None, "tensor", tname)
            raise TensorUnavailable(tname)
        if tname not in self._tensors:
            self._tensors[tname] = Tensor(tname, self)
        return self._tensors[tname]

    # -- steps, modes, workers ---------------------------------------------------------------

    def steps(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """Return the steps of a mode, ascending; None is GLOBAL.

        Parameters
        ----------
        show_incomplete_steps
            Also those that some worker has not written yet.
        """
        self.maybe_refresh()
        known = self._known_steps(mode or ModeKeys.GLOBAL)
        if show_incomplete_steps or self.horizon is not None or self.index.loaded_all_steps:
            return [step for step, _ in known]
        return [step for step, place in known if self.index.is_settled(place)]

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

    def modes(self) -> list[ModeKeys]:
        """Return the modes seen, in the order of their first steps; GLOBAL is none."""
        firsts = {mode: min(numbers.values()) for mode, numbers in self.index.mode_steps.items()}
        shown = [one for one, at in firsts.items() if self.horizon is None or at <= self.horizon]
        return sorted(shown, key=firsts.__getitem__)

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a global step, or None if the step is not known."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Return the step within its mode of a global step, or None if it is not known."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys | None, int | None]:
        """Return `mode` and `mode_step` together."""
        if global_step not in self.index.files:
            self.maybe_refresh()
        shown = self.horizon is None or global_step <= self.horizon
        return (self.index.mode_of(global_step) if shown else None) or (None, None)

    def global_step(self, mode: ModeKeys | None, mode_step: int) -> int | None:
        """Return the global step of a step within a mode, or None; a GLOBAL step is itself."""
        place = self._global(mode_step, mode or ModeKeys.GLOBAL)
        if place is None:
            self.maybe_refresh()
            place = self._global(mode_step, mode or ModeKeys.GLOBAL)
        return place

    def _global(self, step: int, mode: ModeKeys) -> int | None:
        """Return the global step of a step shown, without looking for new files."""
        place = step if mode is ModeKeys.GLOBAL else self.index.mode_steps.get(mode, {}).get(step)
        hidden = place is not None and self.horizon is not None and place > self.horizon
        return None if hidden else place

    def workers(self) -> list[str]:
        """Return the workers whose collections files are there, sorted."""
        self.maybe_refresh()
        return list(self.index.workers)

    # -- collections -------------------------------------------------------------------------

    def collections(self) -> dict[str, Collection]:
        """Return the collections by name; changes to them are this trial object's own."""
        if self._collections_version != self.index.collections_version:
            self._collections_version = self.index.collections_version
            for name, collection in self.index.collections.items():
                if name in self._collections:
                    self._collections[name].absorb(collection)
                else:
                    self._collections[name] = collection.copy()
        return self._collections

    def collection(self, coll_name: str) -> Collection:
        """Return a collection; an unknown one is empty, and kept for the caller to fill."""
        return self.collections().setdefault(coll_name, Collection(coll_name))

    def inputs(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[Array]:
        """Return the values at a step of the tensors of collection ``inputs``."""
        return self._values_of(self.tensor_names(collection="inputs"), step, mode)

    def labels(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[Array]:
        """Return the values at a step of the tensors with ``label`` in their names."""
        return self._values_of(self.tensor_names(regex="labels*"), step, mode)

    def predictions(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[Array]:
        """Return the values at a step of the tensors with ``prediction`` in their names."""
        return self._values_of(self.tensor_names(regex="predictions*"), step, mode)

    def _values_of(self, names: list[str], step: int, mode: ModeKeys | None) -> list[Array]:
        """Return values in the order of the number behind the last ``_`` of the names."""
        saved = set(self.tensor_names(step=step, mode=mode))

        def number(name: str) -> int:
            tail = name.rpartition("_")[2]
            return int(tail) if tail.isdecimal() else 0

        there = [name for name in names if name in saved]
        return [self.tensor(name).value(step, mode) for name in sorted(there, key=number)]

    # -- waiting -----------------------------------------------------------------------------

    def has_passed_step(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> StepState:
        """Say whether a step is there, was never saved, or may still come."""
        self.maybe_refresh()
        return self._state(step, mode or ModeKeys.GLOBAL)

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

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys | None = ModeKeys.GLOBAL
    ) -> None:
        """Return when all the steps are there.

        Raises
        ------
        StepUnavailable
            If one of them was not saved, or lies behind the step that is being judged.
        NoMoreData
            If the training job has ended before one of them.
        """
        mode = mode or ModeKeys.GLOBAL
        for step in required_steps:
            refreshing, self.dynamic_refresh = self.dynamic_refresh, self.horizon is None
            try:
                self._wait_for(step, mode)
            finally:
                self.dynamic_refresh = refreshing

    def _wait_for(self, step: int, mode: ModeKeys) -> None:
        while (state := self.has_passed_step(step, mode)) is not StepState.AVAILABLE:
            if state is StepState.UNAVAILABLE or self.horizon is not None:
                known = self._known_steps(mode)
                last = known[-1][0] if known else -1
                if self.loaded_all_steps and step > last:
                    raise NoMoreData(step, mode, last)
                raise StepUnavailable(step, mode)
            self.clock.sleep(POLL_S)

    # -- what tensors ask --------------------------------------------------------------------

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
        of_mode = index.names if mode is ModeKeys.GLOBAL else index.names_by_mode.get(mode, {})
        places = of_mode.get(name, [])
        if self.horizon is not None:
            places = places[: bisect_right(places, self.horizon)]
        if not (show_incomplete_steps or self.horizon is not None or index.loaded_all_steps):
            places = [place for place in places if index.is_settled(place)]
        if mode is ModeKeys.GLOBAL:
            return list(places)
        return sorted({index.mode_step_at(place, mode) for place in places})

    def tensor_workers(self, name: str, step: int, mode: ModeKeys | None) -> list[str]:
        """Return the workers of a tensor at a step; see `TensorSource`."""
        mode = mode or ModeKeys.GLOBAL
        workers = self._workers(name, step, mode)
        if not workers:
            self.maybe_refresh()
            workers = self._workers(name, step, mode)
        if not workers:
            raise TensorUnavailableForStep(name, step, mode)
        return workers

    def _workers(self, name: str, step: int, mode: ModeKeys) -> list[str]:
        place = self._global(step, mode)
        return [] if place is None else self.index.workers_with(name, place, mode)

    def find(self, name: str, step: int, mode: ModeKeys | None, worker: str | None) -> Place:
        """Return where a tensor is; see `TensorSource`."""
        mode = mode or ModeKeys.GLOBAL
        workers = self._workers(name, step, mode)
        if not workers:
            self.maybe_refresh()
            workers = self._workers(name, step, mode)
        if not workers:
            self._raise_not_found(name, step, mode)
        if worker is None:
            worker = workers[0]
        elif worker not in workers:
            raise InvalidWorker(worker)
        place = self._global(step, mode)
        if place is None:
            raise StepUnavailable(step, mode)
        return Place(place, worker, self.index.files[place][worker].entries[name])

    def _raise_not_found(self, name: str, step: int, mode: ModeKeys) -> None:
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
        span = place.entry.raw if reduction is None else place.entry.reductions[reduction]
        file = self.index.files[place.step][place.worker]
        return self._patiently(name, place, lambda: self.index.tensor(file, span or Span(0, 0)))

    def reduce(self, name: str, place: Place, operation: str, absolute: bool) -> np.generic:
        """Return a computed reduction; see `TensorSource`."""
        step, worker = place.step, place.worker
        return self._patiently(
            name, place, lambda: self.index.reduction(name, step, worker, operation, absolute)
        )

    def _patiently(self, name: str, place: Place, read: Callable[[], T]) -> T:
        """Return what `read` does; wait for an event file that is late."""
        file = self.index.files[place.step][place.worker]
        deadline: float | None = None
        while True:
            try:
                found = read()
            except ObjectNotFoundError as err:
                now = self.clock.monotonic()
                deadline = now + self._event_file_wait(place) if deadline is None else deadline
                if now >= deadline:
                    self.index.report(file.event_key or file.key, err)
                    raise self._damaged(name, place, err) from err
                self.clock.sleep(POLL_S)
            except (TrialFileError, StorageUnavailableError) as err:
                self.index.report(file.event_key or file.key, err)
                raise self._damaged(name, place, err) from err
            else:
                self.reads += 1
                return found

    def _damaged(self, name: str, place: Place, err: Exception) -> TensorDamaged:
        found = self.index.files[place.step][place.worker]
        return TensorDamaged(name, found.mode_step, found.mode, str(err))

    def _event_file_wait(self, place: Place) -> float:
        """Return for how many seconds an event file that is not there may still come."""
        later = any(
            place.worker in self.index.files[step]
            for step in self.index.steps[bisect_right(self.index.steps, place.step) :]
        )
        if self.horizon is not None or self.index.loaded_all_steps or later:
            return 0.0
        tries = os.environ.get("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT")
        return EVENT_FILE_WAIT_S if tries is None else 2.0 * float(tries)
