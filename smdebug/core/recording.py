"""Recording: the trial that a hook writes, from its first step to the end of the training job."""

from collections.abc import Callable, Iterable
from typing import Any

from smdebug.core.collection import Collection
from smdebug.core.decisions import Plan
from smdebug.core.step_saver import StepSaver
from smdebug.core.tensor_access import TensorAccess
from smdebug.core.write_queue import WriteQueue
from smdebug.core.writer import TrialWriter
from smdebug.storage import TrialOutput


class Recording:
    """One worker's part of a trial, written by a thread of its own.

    Parameters
    ----------
    output
        Where to.
    collections
        Those that are known before the first step.
    worker, num_workers, resume
        See `TrialWriter`.
    access
        Of the framework whose tensors are saved.
    max_queue_bytes, drop
        Memory for what waits to be written; whether to drop steps when it is full.
    on_error
        Called on the writing thread with what went wrong there.

    Raises
    ------
    SMDebugRuntimeError, SMDebugValueError, OSError
        If the trial cannot be begun.
    """

    def __init__(
        self,
        output: TrialOutput,
        collections: Iterable[Collection],
        *,
        worker: str,
        num_workers: int,
        resume: bool,
        access: TensorAccess,
        max_queue_bytes: int,
        drop: bool,
        on_error: Callable[[Exception], None],
    ) -> None:
        self.writer = TrialWriter(
            output,
            collections=[one.copy() for one in collections],
            worker=worker,
            num_workers=num_workers,
            resume=resume,
        )
        self.resumed_step = self.writer.last_step
        self.resumed_mode_steps = self.writer.last_mode_steps
        self._queue = WriteQueue(max_queue_bytes, on_error)
        self.steps = StepSaver(self.writer, self._queue, access, drop=drop)
        self._access = access

    @property
    def blocked_s(self) -> float:
        """Seconds that the training has waited for the disk."""
        return self._queue.blocked_s

    def save(self, name: str, tensor: Any, plan: Plan) -> None:
        """Save of a tensor what a plan asks for, at the step in hand.

        Raises
        ------
        SMDebugTypeError
            If the format cannot hold the tensor.
        """
        if plan.shape and not plan.raw:
            self.steps.add_shape(name, self._access.shape(tensor))
        if plan.wanted:
            self.steps.add_reductions(name, tensor, plan.wanted)
        if plan.raw:
            self.steps.add_value(name, tensor)

    def flush(self) -> None:
        """Return when the steps that were ended are written."""
        self._queue.flush()

    def close(self, *, end_job: bool, timeout: float) -> bool:
        """Write what waits, without a step that was not ended; say whether all of it was in time.

        Parameters
        ----------
        end_job
            Whether to mark the training job as ended, once the last worker has closed.
        timeout
            Seconds that the writing may take.
        """
        self.steps.abandon()
        done = self._queue.close(timeout)
        if done and end_job:
            if self.writer.num_workers > 1:
                self.writer.leave()
            else:
                self.writer.close()
        return done
