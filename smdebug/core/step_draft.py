"""StepDraft: one step of a trial while it is written, tensor by tensor."""

import operator
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from smdebug.core import locations
from smdebug.core.event_encoder import RecordEncoder
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugTypeError
from smdebug.storage import Draft, TrialOutput
from smdebug.storage.publishing import publish

# Values that are written together: so many of them, each of so many bytes.
SOME: Final = 8
MANY: Final = 20_000
FEW_BYTES: Final = 16


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
        self._open().write(*parts)
        self._enter(name, length)

    def add_many(
        self, names: Sequence[str], arrays: Sequence[NDArray[np.generic]], wall_time: float
    ) -> None:
        """Write many small values, such as reductions; see `add`."""
        if not _are_alike(arrays):
            for name, array in zip(names, arrays, strict=True):
                self.add(name, array, wall_time)
            return
        blob, lengths = self._encoder.encode_alike(tuple(names), arrays, wall_time)
        self._open().write(blob)
        for name, length in zip(names, lengths, strict=True):
            self._enter(name, length)

    def _open(self) -> Draft:
        if self._draft is None:
            self._draft = self._output.open(locations.event_key(self.number, self._worker))
        return self._draft

    def _enter(self, name: str, length: int) -> None:
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


def _are_alike(arrays: Sequence[NDArray[np.generic]]) -> bool:
    """Say whether arrays can be encoded together, and are enough for it to be worth it."""
    kinds = {(array.dtype, array.shape) for array in arrays}
    if len(kinds) != 1 or not SOME <= len(arrays) <= MANY:
        return False
    first = arrays[0]
    is_number = first.dtype.kind in "biufc" and first.dtype.isnative
    return is_number and 0 < first.nbytes <= FEW_BYTES


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
