"""TrialIndex: all that is known of one trial's files, shared by every rule that looks at it."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from numpy.typing import NDArray

from smdebug.core.ahead_reader import AheadReader
from smdebug.core.event_reader import EventReader
from smdebug.core.index import Span
from smdebug.core.measures import Measure, measure
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import Reduction, compute
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.storage.protocol import (
    ByteRange,
    FileStore,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from smdebug.trials.foresight import Foresight
from smdebug.trials.read_plan import WALL_TIME, ReadPlan, beginning
from smdebug.trials.trial_files import TrialFiles

KEPT_MEASURED: Final = 1 << 16
_NOTHING: Final = ByteRange(0, 0)

Array = NDArray[Any]


class TrialIndex(TrialFiles):
    """What is known of one trial, and its tensors' bytes; see `TrialFiles`."""

    def __init__(
        self,
        store: TrialStore,
        range_steps: tuple[int | None, int | None] | None = None,
        window: int = 1000,
    ) -> None:
        super().__init__(store, range_steps, window)
        self._told: OrderedDict[tuple[str, int, str, Measure, int | None], Any] = OrderedDict()
        self._reader = EventReader(store)
        self._plan: ReadPlan | None = None
        if self._pool is not None:
            self._reader = ahead = AheadReader(store, self._pool)
            self._plan = ReadPlan(ahead, store.costs.gap, self.files, self.steps)
        self.foresight: Foresight | None = None
        if self._pool is None and isinstance(store, FileStore):
            self.foresight = Foresight(store, self.files, self.steps, self._reader.layouts)

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        """Return mode and mode step of a global step; of workers that disagree the first's."""
        workers = self.files.get(step)
        if not workers:
            return None
        found = workers[min(workers)]
        return found.mode, found.mode_step

    def mode_step_at(self, step: int, mode: ModeKeys) -> int:
        """Return the step within `mode` that a global step is."""
        if mode is ModeKeys.GLOBAL:
            return step
        return min(one.mode_step for one in self.files[step].values() if one.mode is mode)

    def places(self, name: str, mode: ModeKeys) -> list[int]:
        """Return the global steps at which a tensor was saved in a mode; nobody changes them."""
        of_mode = self.names if mode is ModeKeys.GLOBAL else self.names_by_mode.get(mode, {})
        return of_mode.get(name, [])

    def missing_workers(self, step: int) -> list[str]:
        """Return the workers known by name that have not written a step, sorted."""
        return sorted(set(self.workers) - set(self.files.get(step, ())))

    def workers_with(self, name: str, step: int, mode: ModeKeys) -> list[str]:
        """Return the workers that saved anything of a tensor at a global step, sorted."""
        return sorted(
            [
                worker
                for worker, found in self.files.get(step, {}).items()
                if name in found.entries and (mode is ModeKeys.GLOBAL or found.mode is mode)
            ]
        )

    def original_name(self, name: str, steps: Iterable[int]) -> str | None:
        """Return the framework's own name of a tensor, from the first shape saved at `steps`."""
        for step in steps:
            for worker in self.workers_with(name, step, ModeKeys.GLOBAL):
                found = self.files[step][worker].entries[name].original_name
                if found:
                    return found
        return None

    def is_settled(self, step: int) -> bool:
        """Say whether nothing more is expected of a known global step."""
        return (
            self.loaded_all_steps
            or step <= self.last_complete_step
            or len(self.files.get(step, ())) >= self.num_workers > 0
        )

    def event_file_is_there(self, step: int, worker: str) -> bool:
        """Say whether the event file that an index file names is there.

        One that is there and cannot be read is: who reads it learns why.
        """
        key = self.files[step][worker].event_key
        try:
            if key is not None and not (self._plan and self._plan.is_there(step, worker)):
                self.store.read(key, _NOTHING)
        except ObjectNotFoundError:
            return False
        except StorageUnavailableError:
            return True
        return True

    def tensor(
        self, name: str, step: int, worker: str, reduction: tuple[str, bool] | None = None
    ) -> Array:
        """Return a saved value or reduction, read-only, in place; see `EventReader.tensor`."""
        file = self.files[step][worker]
        entry = file.entries[name]
        span = (entry.raw if reduction is None else entry.reductions[reduction]) or Span(0, 0)
        if file.event_key is None:  # the index reader refuses records without an event file
            raise ObjectNotFoundError(file.key)
        if self._plan is not None:
            self._plan.before(step, worker, (name, reduction), span)
        return self._reader.tensor(file.event_key, span, (name, reduction))

    def wall_time(self, step: int, worker: str, span: Span) -> float:
        """Return when a record was made, in seconds since the epoch; NaN if it does not tell."""
        file = self.files[step][worker]
        if file.event_key is None:
            raise ObjectNotFoundError(file.key)
        if self._plan is not None:
            self._plan.before(step, worker, WALL_TIME, beginning(span))
        return self._reader.wall_time(file.event_key, span)

    def measure(
        self, name: str, step: int, worker: str, one: Measure, before: int | None = None
    ) -> Any:
        """Return what a measure tells of a saved value, and keep it for the other rules.

        Parameters
        ----------
        before
            The global step of the value that it is compared with.

        Raises
        ------
        SMDebugTypeError, SMDebugValueError
            If the value holds no real numbers, or is unlike the one that it is compared with; for
            a reduction see `compute_all`.
        """
        place = (name, step, worker, one, before)
        known = self._told.get(place)
        if known is None:
            known = self._measured(name, step, worker, one, before)
            if len(self._told) >= KEPT_MEASURED:
                self._told.popitem(last=False)
            self._told[place] = known
        if self.foresight is not None:
            self.foresight.missed(step, worker, name, (one, before))
        return known

    def _measured(self, name: str, step: int, worker: str, one: Measure, before: int | None) -> Any:
        array = self.tensor(name, step, worker)
        if isinstance(one, Reduction):
            return compute(array, *one)
        earlier = None if before is None else self.tensor(name, before, worker)
        if array.dtype.kind not in "biufV" or not array.size:
            msg = f"Tensor {name!r} holds no real numbers at step {step}."
            raise SMDebugTypeError(msg)
        if earlier is not None and (earlier.shape, earlier.dtype) != (array.shape, array.dtype):
            msg = f"Tensor {name!r} is of another shape or type at step {before}."
            raise SMDebugValueError(msg)
        return measure(array, [one], earlier)[one]
