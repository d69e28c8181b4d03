"""StepWriter: writes one step of a trial, tensor by tensor."""

import operator
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rule_core.exceptions import SMDebugTypeError
from rule_core.format import paths
from rule_core.format.event_encoder import RecordEncoder
from rule_core.modes import ModeKeys
from rule_core.storage.base import PendingFile, TrialOutput
from rule_core.storage.publish import publish

# Values are encoded together if there are enough of them and each is small.
SMALLEST_BATCH: Final = 8
LARGEST_BATCH: Final = 20_000
SMALL_VALUE: Final = 16  # bytes


class StepWriter:
    """Writes one step of a trial; created by `TrialWriter.begin`.

    Parameters
    ----------
    output, worker
        Destination of the trial, and name of the worker.
    step, mode, mode_step
        Global step, mode and mode step.
    on_commit
        Called with the step once it is visible.
    """

    def __init__(
        self,
        output: TrialOutput,
        worker: str,
        step: int,
        mode: ModeKeys,
        mode_step: int,
        on_commit: Callable[[int], None],
    ) -> None:
        self.number = step
        self._output = output
        self._worker = worker
        self._on_commit = on_commit
        self._mode = mode
        self._mode_step = mode_step
        self._encoder = RecordEncoder(step, mode, mode_step)
        self._entries: dict[str, dict[str, Any]] = {}
        self._shapes: dict[str, dict[str, Any]] = {}
        self._length = 0
        self._file: PendingFile | None = None

    def add(self, name: str, value: ArrayLike, wall_time: float | None = None) -> None:
        """Write one value; if a name is written twice, the last value counts.

        Parameters
        ----------
        name
            A tensor name, or a record name from `paths.reduction_record_name`.
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
        self._add_entry(name, length)

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
            self._add_entry(name, length)

    def _open(self) -> PendingFile:
        if self._file is None:
            self._file = self._output.open(paths.event_key(self.number, self._worker))
        return self._file

    def _add_entry(self, name: str, length: int) -> None:
        self._entries[name] = {"tensorname": name, "start_idx": self._length, "length": length}
        self._length += length

    def add_shape(self, name: str, shape: Iterable[int]) -> None:
        """Write the shape of a tensor; ignored if the step also has its value."""
        sizes = [operator.index(size) for size in shape]
        self._shapes[name] = {"tensorname": name, "originalname": name, "shape": sizes}

    def commit(self) -> bool:
        """Publish the event file, then the index file; return False if the step is empty."""
        # smdebug 1.0.x drops the value of a tensor whose shape is also saved.
        shapes = [shape for name, shape in self._shapes.items() if name not in self._entries]
        if not self._entries and not shapes:
            return False
        meta: dict[str, Any] = {"mode": self._mode.name, "mode_step": self._mode_step}
        if self._file is not None:
            meta["event_file_name"] = paths.event_key(self.number, self._worker)
            self._file.publish()
        entries = list(self._entries.values())
        document = {"meta": meta, "tensor_payload": entries, "shape_payload": shapes}
        publish(
            self._output,
            paths.index_key(self.number, self._worker),
            msgspec.json.encode(document),
        )
        self._on_commit(self.number)
        return True

    def discard(self) -> None:
        """Discard the step."""
        if self._file is not None:
            self._file.discard()


def _are_alike(arrays: Sequence[NDArray[np.generic]]) -> bool:
    """Return whether arrays can be encoded together, and are enough to make it worthwhile."""
    kinds = {(array.dtype, array.shape) for array in arrays}
    if len(kinds) != 1 or not SMALLEST_BATCH <= len(arrays) <= LARGEST_BATCH:
        return False
    first = arrays[0]
    is_number = first.dtype.kind in "biufc" and first.dtype.isnative
    return is_number and 0 < first.nbytes <= SMALL_VALUE


def to_array(value: ArrayLike) -> NDArray[np.generic]:
    """Convert a value to an array; numbers and strings get shape ``(1,)``.

    Raises
    ------
    SMDebugTypeError
        If numpy cannot convert the value.
    """
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.atleast_1d(np.asarray(value))
    except Exception as err:  # `__array__` of foreign types may raise anything
        reason = str(err).rstrip(".")
        raise SMDebugTypeError(
            f"A value of type {type(value).__name__} cannot be converted to an array: {reason}."
        ) from err
