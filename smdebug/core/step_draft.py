"""StepDraft: one step of a trial while it is written, tensor by tensor."""

import operator
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from smdebug.core import locations
from smdebug.core.event_encoder import RecordEncoder
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugTypeError
from smdebug.storage import Draft, TrialOutput


class StepDraft:
    """One step on its way into the trial; made by `TrialWriter.begin`.

    Parameters
    ----------
    output, worker
        Where to, and whose.
    step, mode, mode_step
        Global step, mode and mode step.
    committed
        Called with the step once it is visible.
    """

    def __init__(
        self,
        output: TrialOutput,
        worker: str,
        step: int,
        mode: ModeKeys,
        mode_step: int,
        committed: Callable[[int], None],
    ) -> None:
        self.number = step
        self._output = output
        self._worker = worker
        self._committed = committed
        self._mode = mode
        self._mode_step = mode_step
        self._encoder = RecordEncoder(step, mode, mode_step)
        self._entries: dict[str, dict[str, Any]] = {}
        self._shapes: dict[str, dict[str, Any]] = {}
        self._length = 0
        self._draft: Draft | None = None

    def add(self, name: str, value: ArrayLike, wall_time: float | None = None) -> None:
        """Write one value under a record's name; the last one of a name counts.

        Parameters
        ----------
        name
            Tensor name, or that of a reduction's record (`locations.reduction_record_name`).
        value
            Any shape; numbers and strings become shape ``(1,)``.
        wall_time
            Seconds since the epoch; now by default.

        Raises
        ------
        SMDebugTypeError
            If the format has no data type for the value.
        """
        wall_time = time.time() if wall_time is None else wall_time
        parts, length = self._encoder.encode(name, to_array(value), wall_time)
        if self._draft is None:
            key = locations.event_key(self.number, self._worker)
            self._draft = self._output.open(key)
        self._draft.write(*parts)
        self._entries[name] = {"tensorname": name, "start_idx": self._length, "length": length}
        self._length += length

    def add_shape(self, name: str, shape: Iterable[int]) -> None:
        """Write the shape of a tensor; it is left out where the value stands beside it."""
        sizes = [operator.index(size) for size in shape]
        self._shapes[name] = {"tensorname": name, "originalname": name, "shape": sizes}

    def commit(self) -> bool:
        """Make the step visible, its event file, then its index file; or say that it is empty."""
        # smdebug 1.0.x loses the value of a tensor whose shape stands beside it.
        shapes = [one for name, one in self._shapes.items() if name not in self._entries]
        if not self._entries and not shapes:
            return False
        meta: dict[str, Any] = {"mode": self._mode.name, "mode_step": self._mode_step}
        if self._draft is not None:
            meta["event_file_name"] = locations.event_key(self.number, self._worker)
            self._draft.publish()
        entries = list(self._entries.values())
        document = {"meta": meta, "tensor_payload": entries, "shape_payload": shapes}
        publish(
            self._output,
            locations.index_key(self.number, self._worker),
            msgspec.json.encode(document),
        )
        self._committed(self.number)
        return True

    def discard(self) -> None:
        """Forget the step."""
        if self._draft is not None:
            self._draft.discard()


def publish(output: TrialOutput, key: str, *parts: bytes) -> None:
    """Write a file of a trial, whole."""
    draft = output.open(key)
    try:
        draft.write(*parts)
        draft.publish()
    except BaseException:
        draft.discard()
        raise


def to_array(value: ArrayLike) -> NDArray[np.generic]:
    """Return what is saved of a value: an array as it is, a number or string as shape ``(1,)``.

    Raises
    ------
    SMDebugTypeError
        If numpy makes no array of it.
    """
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.atleast_1d(np.asarray(value))
    except Exception as err:
        reason = str(err).rstrip(".")
        msg = f"Numpy makes no array of a value of type {type(value).__name__}: {reason}."
        raise SMDebugTypeError(msg) from err
