"""TrialRecorder: queues what a hook saves, to be written in the background."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from rule_core.failures import OnError
from rule_core.format.paths import reduction_record_name
from rule_core.model.collection import Collection
from rule_core.modes import ModeKeys
from rule_core.saving.save_policy import Plan
from rule_core.saving.step_writer import StepWriter
from rule_core.saving.tensor_adapter import Array, NumpyAccess, ReductionKey
from rule_core.saving.tensorboard_writer import TensorBoardWriter
from rule_core.saving.trial_writer import TrialWriter
from rule_core.saving.write_queue import WriteQueue

BATCH: Final = 1 << 22  # bytes of a step that are put into the queue together


class TrialRecorder:
    """Saves steps one after the other: `begin`, any number of `save` and `add...`, `end`.

    Parameters
    ----------
    writer
        Writer of the trial; used only on the queue's thread once steps are saved.
    queue
        Queue that runs the writes.
    access
        Access to the tensors of the framework.
    drop
        Whether to drop a whole step when the queue is full, instead of waiting.
    tensorboard
        Writer of files for TensorBoard, if any.

    Attributes
    ----------
    resumed_step
        The last step of a resumed trial, or -1.
    saved, dropped
        Number of written and of dropped steps.
    """

    def __init__(
        self,
        writer: TrialWriter,
        queue: WriteQueue,
        access: NumpyAccess,
        *,
        drop: bool,
        tensorboard: TensorBoardWriter | None = None,
    ) -> None:
        self.resumed_step = writer.last_step
        self.saved = 0
        self.dropped = 0
        self._writer = writer
        self._queue = queue
        self._access = access
        self._drop = drop
        self._tensorboard = tensorboard
        self._mode = ModeKeys.GLOBAL
        self._step: StepWriter | None = None
        self._is_queued = self._is_dropped = False
        self._wall_time = 0.0
        self._collections: list[Collection] = []
        self._members: dict[str, set[str]] = {}
        self._clear()

    def _clear(self) -> None:
        self._arrays: list[tuple[str, Array, float]] = []
        self._scalars: list[tuple[str, Any]] = []
        self._shapes: list[tuple[str, tuple[int, ...]]] = []
        self._histograms: dict[str, Array] = {}
        self._nbytes = 0

    def begin(self, step: int, mode: ModeKeys, mode_step: int, wall_time: float) -> None:
        """Begin a step at a wall time in seconds since the epoch."""
        self._is_queued = self._is_dropped = False
        self._wall_time = wall_time
        self._mode = mode
        self._step = self._writer.begin(step, mode=mode, mode_step=mode_step)

    @property
    def blocked_s(self) -> float:
        """Seconds that the training has waited for the disk."""
        return self._queue.blocked_s

    def save(self, name: str, tensor: Any, plan: Plan) -> None:
        """Save a tensor at the current step, as planned.

        Raises
        ------
        SMDebugTypeError
            If the format does not support the tensor.
        """
        if plan.shape and not plan.raw:
            self.add_shape(name, self._access.shape(tensor))
        if plan.reductions:
            self.add_reductions(name, tensor, plan.reductions)
        has_histogram = plan.histogram and self._tensorboard is not None
        if plan.raw or has_histogram:
            self.add_value(name, tensor, is_saved=plan.raw, has_histogram=has_histogram)

    def add_reductions(self, name: str, tensor: Any, keys: tuple[ReductionKey, ...]) -> None:
        """Save reductions of a tensor."""
        for (operation, absolute), scalar in self._access.reduce(tensor, keys):
            self._scalars.append((reduction_record_name(name, operation, absolute), scalar))

    def add_value(
        self, name: str, tensor: Any, *, is_saved: bool = True, has_histogram: bool = False
    ) -> None:
        """Save a copy of a tensor's elements, or its histogram, waiting if the queue is full."""
        nbytes = self._access.nbytes(tensor)
        if not nbytes or self._is_dropped:
            return
        if self._step is not None and self._nbytes and self._nbytes + nbytes > BATCH:
            self._put(self._step)
        array = self._access.copy(tensor)
        if has_histogram:
            self._histograms[name] = array
        if is_saved:
            self.add_array(name, array)
        else:
            self._nbytes += array.nbytes

    def add_array(self, name: str, array: Array, wall_time: float | None = None) -> None:
        """Save an array that is not changed later."""
        self._arrays.append((name, array, wall_time or self._wall_time))
        self._nbytes += array.nbytes

    def add_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Save a shape."""
        self._shapes.append((name, shape))

    def add_collection(self, collection: Collection) -> None:
        """Record a collection together with the next visible step."""
        self._collections.append(collection.copy())

    def add_member(self, collection: str, name: str) -> None:
        """Record a tensor as a member of a collection, together with the next visible step."""
        self._members.setdefault(collection, set()).add(name)

    def end(self) -> None:
        """Queue the rest of the step and its publication."""
        if self._step is None:
            return
        self._put(self._step, last=True)
        self.dropped += self._is_dropped
        self._step = None

    def flush(self) -> None:
        """Wait until all ended steps are written."""
        self._queue.flush()

    def close(self, *, end_job: bool, timeout: float) -> bool:
        """Write the queued steps and discard an open one; return whether all were written in time.

        Parameters
        ----------
        end_job
            Whether to mark the training job as ended once the last worker has closed.
        timeout
            Seconds to wait for the writing thread.
        """
        if self._step is not None:
            self._queue.put(self._step.discard, 0)
        is_complete = self._queue.close(timeout)
        if is_complete and self._tensorboard is not None:
            self._tensorboard.close()
        if is_complete and end_job:
            if self._writer.num_workers > 1:
                self._writer.close_worker()
            else:
                self._writer.close()
        return is_complete

    def _put(self, step: StepWriter, *, last: bool = False) -> None:
        """Queue what was added, or discard it if the step is dropped."""
        names = [name for name, _ in self._scalars]
        values = self._access.collect([scalar for _, scalar in self._scalars])
        nbytes = self._nbytes + sum(array.nbytes for array in values)
        self._is_dropped = self._is_dropped or (self._drop and not self._queue.has_room(nbytes))
        if not self._is_dropped:
            scalars = (names, values, self._wall_time)
            if self._tensorboard is not None:
                write_summary = partial(
                    self._tensorboard.add,
                    *(step.number, self._mode, self._wall_time),
                    [(name, array) for name, array, _ in self._arrays],
                    self._histograms,
                )
                self._queue.put(write_summary, 0)
            write = partial(self._write, step, scalars, self._arrays, self._shapes)
            self._queue.put(write, nbytes)
            self._is_queued = True
            if last:
                commit = partial(self._commit, step, self._collections, self._members)
                self._queue.put(commit, 0)
                self._collections, self._members = [], {}
        elif last and self._is_queued:
            self._queue.put(step.discard, 0)
        self._clear()

    def _write(
        self,
        step: StepWriter,
        scalars: tuple[Sequence[str], Sequence[Array], float],
        arrays: Iterable[tuple[str, Array, float]],
        shapes: Iterable[tuple[str, tuple[int, ...]]],
    ) -> None:
        """Write a part of a step, on the queue's thread."""
        with OnError(step.discard):
            step.add_many(*scalars)
            for name, array, wall_time in arrays:
                step.add(name, array, wall_time)
            for name, shape in shapes:
                step.add_shape(name, shape)

    def _commit(
        self, step: StepWriter, collections: Iterable[Collection], members: dict[str, set[str]]
    ) -> None:
        """Publish the new collections and members, then the step, on the queue's thread."""
        with OnError(step.discard):
            self._writer.add_members(members, collections)
            self.saved += step.commit()
