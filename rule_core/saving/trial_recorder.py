"""TrialRecorder: writes a hook's trial, from its first step to the end of the training job."""

from collections.abc import Callable, Iterable
from typing import Any

from rule_core.model.collection import Collection
from rule_core.saving.async_step_writer import AsyncStepWriter
from rule_core.saving.save_policy import Plan
from rule_core.saving.tensor_adapter import TensorAccess
from rule_core.saving.trial_writer import TrialWriter
from rule_core.saving.write_queue import WriteQueue
from rule_core.storage import TrialOutput


class TrialRecorder:
    """Writes one worker's part of a trial on a separate thread.

    Parameters
    ----------
    output
        Destination of the trial.
    collections
        Collections that exist before the first step.
    worker, num_workers, resume
        See `TrialWriter`.
    access
        Access to the tensors of the framework.
    max_queue_bytes, drop
        Memory limit of the queue, and whether to drop steps when it is full.
    on_error
        Called on the writing thread with the error that stopped it.

    Raises
    ------
    SMDebugRuntimeError, SMDebugValueError, OSError
        If the trial cannot be created.
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
            collections=[collection.copy() for collection in collections],
            worker=worker,
            num_workers=num_workers,
            resume=resume,
        )
        self.resumed_step = self.writer.last_step
        self.resumed_mode_steps = self.writer.last_mode_steps
        self._queue = WriteQueue(max_queue_bytes, on_error)
        self.steps = AsyncStepWriter(self.writer, self._queue, access, drop=drop)
        self._access = access

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
            self.steps.add_shape(name, self._access.shape(tensor))
        if plan.reductions:
            self.steps.add_reductions(name, tensor, plan.reductions)
        if plan.raw:
            self.steps.add_value(name, tensor)

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
        self.steps.abandon()
        is_complete = self._queue.close(timeout)
        if is_complete and end_job:
            if self.writer.num_workers > 1:
                self.writer.close_worker()
            else:
                self.writer.close()
        return is_complete
