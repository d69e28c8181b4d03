"""StepSaver: takes what a hook saves of a step, and has it written behind the training's back."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from smdebug.core.collection import Collection
from smdebug.core.locations import reduction_record_name
from smdebug.core.modes import ModeKeys
from smdebug.core.step_draft import StepDraft
from smdebug.core.tensor_access import Array, TensorAccess, Wanted
from smdebug.core.write_queue import WriteQueue
from smdebug.core.writer import TrialWriter

BATCH: Final = 1 << 22  # bytes of a step that are put into the queue together


class StepSaver:
    """Saves steps one after the other: `begin`, any number of `add...`, `end`.

    Parameters
    ----------
    writer
        Of this worker's trial; used on the queue's thread only, once steps are saved.
    queue
        Where the writing is done.
    access
        Of the framework whose tensors are added.
    drop
        Whether a step for which the queue has no room is left out whole, instead of waited for.
    """

    def __init__(
        self, writer: TrialWriter, queue: WriteQueue, access: TensorAccess, *, drop: bool
    ) -> None:
        self.saved = 0
        self.dropped = 0
        self._writer = writer
        self._queue = queue
        self._access = access
        self._drop = drop
        self._draft: StepDraft | None = None
        self._begun = self._full = False
        self._wall_time = 0.0
        self._collections: list[Collection] = []
        self._members: dict[str, set[str]] = {}
        self._clear()

    def _clear(self) -> None:
        self._arrays: list[tuple[str, Array, float]] = []
        self._scalars: list[tuple[str, Any]] = []
        self._shapes: list[tuple[str, tuple[int, ...]]] = []
        self._nbytes = 0

    def begin(self, step: int, mode: ModeKeys, mode_step: int, wall_time: float) -> None:
        """Begin a step at a wall time in seconds since the epoch."""
        self._begun = self._full = False
        self._wall_time = wall_time
        self._draft = self._writer.begin(step, mode=mode, mode_step=mode_step)

    def add_reductions(self, name: str, tensor: Any, wanted: tuple[Wanted, ...]) -> None:
        """Save reductions of a tensor."""
        for (operation, absolute), scalar in self._access.reduce(tensor, wanted):
            self._scalars.append((reduction_record_name(name, operation, absolute), scalar))

    def add_value(self, name: str, tensor: Any) -> None:
        """Save a tensor's elements as they are now; waits for the queue if that has no room."""
        nbytes = self._access.nbytes(tensor)
        if not nbytes or self._full:
            return
        if self._draft is not None and self._nbytes and self._nbytes + nbytes > BATCH:
            self._put(self._draft)
        self.add_array(name, self._access.copy(tensor))

    def add_array(self, name: str, array: Array, wall_time: float | None = None) -> None:
        """Save an array that nobody else writes to."""
        self._arrays.append((name, array, wall_time or self._wall_time))
        self._nbytes += array.nbytes

    def add_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Save a shape."""
        self._shapes.append((name, shape))

    def add_collection(self, collection: Collection) -> None:
        """Make a collection known, with the next step that becomes visible."""
        self._collections.append(collection.copy())

    def add_member(self, collection: str, name: str) -> None:
        """Make a tensor a member of a collection, with the next step that becomes visible."""
        self._members.setdefault(collection, set()).add(name)

    def end(self) -> None:
        """Have the step made visible."""
        if self._draft is None:
            return
        self._put(self._draft, last=True)
        self.dropped += self._full
        self._draft = None

    def abandon(self) -> None:
        """Forget the step in hand, if there is one."""
        if self._draft is not None:
            self._queue.put(self._draft.discard, 0)
            self._draft = None
            self._clear()

    def _put(self, draft: StepDraft, *, last: bool = False) -> None:
        """Put what was added into the queue, or forget it if the step is to be dropped."""
        names = [name for name, _ in self._scalars]
        found = self._access.collect([scalar for _, scalar in self._scalars])
        nbytes = self._nbytes + sum(array.nbytes for array in found)
        self._full = self._full or (self._drop and not self._queue.has_room(nbytes))
        if not self._full:
            scalars = (names, found, self._wall_time)
            write = partial(self._write, draft, scalars, self._arrays, self._shapes)
            self._queue.put(write, nbytes)
            self._begun = True
            if last:
                news = (self._collections, self._members)
                self._queue.put(partial(self._commit, draft, *news), 0)
                self._collections, self._members = [], {}
        elif last and self._begun:
            self._queue.put(draft.discard, 0)
        self._clear()

    def _write(
        self,
        draft: StepDraft,
        scalars: tuple[Sequence[str], Sequence[Array], float],
        arrays: Iterable[tuple[str, Array, float]],
        shapes: Iterable[tuple[str, tuple[int, ...]]],
    ) -> None:
        """Write a part of a step; on the queue's thread."""
        try:
            draft.add_many(*scalars)
            for name, array, wall_time in arrays:
                draft.add(name, array, wall_time)
            for name, shape in shapes:
                draft.add_shape(name, shape)
        except BaseException:
            draft.discard()
            raise

    def _commit(
        self, draft: StepDraft, collections: Iterable[Collection], members: dict[str, set[str]]
    ) -> None:
        """Make a step visible, after what it makes known; on the queue's thread."""
        try:
            self._writer.add_members(members, collections)
            self.saved += draft.commit()
        except BaseException:
            draft.discard()
            raise
