"""ChunkedReadPlan: reads and measures the large tensors of a step piece by piece.

Steps whose records have the same offsets are read by the same calls into the same memory. The plan
is prepared once, so that little Python code runs for each piece.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rule_core.format.record_layout import ORDER, RecordLayout
from rule_core.kernels.cores import measuring_threads
from rule_core.kernels.operations import KernelOperation
from rule_core.kernels.sweep import (
    MAX_BACKS,
    Read,
    Sweep,
    SweepCall,
    SweepReadError,
    SweepResults,
    SweepRun,
    SweptPiece,
    is_supported,
)
from rule_core.model.reductions import Reduction
from rule_core.model.streaming_statistics import (
    PIECE_BYTES,
    Piece,
    StreamingStatistic,
    Want,
    kernel_operation,
    parts_of,
    to_computable,
)
from rule_core.model.swept_tensors import Results, SweptTensor, SweptTensors
from rule_core.storage.base import DescriptorFile, OpenFile, StorageUnavailableError, has_descriptor

MIN_THREADED_BYTES: Final = 1 << 20  # for less, starting threads exceeds the gain

_ALIGNED: Final = 64

Bytes = NDArray[np.uint8]
# A read call: steps back, file offset, buffers, and their total number of bytes.
_Read = tuple[int, int, list[memoryview], int]
# A value read: steps back, elements, and memory for their magnitudes (None if the elements must be
# converted first).
_Value = tuple[int, Any, Any]


class RecordPart(NamedTuple):
    """A contiguous range of elements of a record, with the adjacent frame bytes.

    Attributes
    ----------
    opened
        The event file.
    start
        The offset of the part in the file, including the `head` bytes.
    head, size, tail
        The numbers of bytes before the elements, of the elements, and after them up to the end of
        the record. Only the first part has a head and only the last one a tail.
    layout
        The layout of the record.
    """

    opened: OpenFile
    start: int
    head: int
    size: int
    tail: int
    layout: RecordLayout


# Parts that are measured together: of a value and of the earlier values it is compared with.
Unit = tuple[RecordPart, ...]


class Reading(NamedTuple):
    """How to read a tensor: part by part, each with the parts of earlier values.

    Attributes
    ----------
    name, wants, layout
        The tensor, the statistics to compute, and the layout of its record.
    backs
        For each part of a unit, how many steps back its value is.
    """

    name: str
    wants: Sequence[Want]
    layout: RecordLayout
    backs: list[int]
    units: list[Unit]


class _Tensor(NamedTuple):
    """The prepared reads of the pieces of a tensor, and the slice of their frame bytes."""

    reading: Reading
    size: int
    pieces: list[tuple[list[_Read], list[_Value]]]
    frames: slice


class ChunkedReadPlan:
    """Reads and measures tensors in its own memory; not thread-safe.

    The kernel reads and measures those that it can, on several cores.

    Parameters
    ----------
    readings
        How to read them at one of the steps; each unit is a piece.
    """

    def __init__(self, readings: Sequence[Reading]) -> None:
        units = [unit for reading in readings for unit in reading.units]
        framed = [_frame(part) for unit in units for part in unit]
        self._mask, self._head = (
            np.frombuffer(b"".join(frame[side] for frame in framed), np.uint8) for side in (0, 1)
        )
        self._frames = bytearray(len(self._head))
        programs = [(reading, _operations(reading)) for reading in readings]
        by_kernel = (reading.backs for reading, operations in programs if operations)
        self._backs = sorted(set[int]().union(*by_kernel))
        swept: list[SweptPiece] = []
        tensors: list[SweptTensor] = []
        self._swept_frames: dict[str, slice] = {}  # by tensor
        here = (
            sum(map(_room, unit))
            for reading, operations in programs
            if not operations
            for unit in reading.units
        )
        self._memory = np.empty(max(here, default=0), np.uint8)
        self._spares: dict[int, Bytes] = {}
        self._slots: dict[Any, tuple[memoryview, Any]] = {}
        self._tensors: list[_Tensor] = []
        offset = 0
        for reading, operations in programs:
            start, first, pieces = offset, len(swept), []
            for unit in reading.units:
                if operations:
                    reads = self._reads(reading, unit, offset)
                    swept.append(SweptPiece(reading.layout.dtype, reads, operations))
                else:
                    pieces.append(self._piece(reading, unit, offset))
                offset += sum(part.head + part.tail for part in unit)
            frames = slice(start, offset)
            name, wants, layout = reading[:3]
            if operations:
                own = range(first, len(swept))
                tensors.append(SweptTensor(name, layout.size, layout.dtype, wants, own))
                self._swept_frames[name] = frames
            else:
                # Without its units, which reference the files of the step.
                bare = reading._replace(units=[])
                self._tensors.append(_Tensor(bare, layout.size, pieces, frames))
        nbytes = sum(read.size for piece in swept for read in piece.reads)
        threads = measuring_threads() if nbytes >= MIN_THREADED_BYTES else 1
        self._sweep = Sweep(swept, threads) if swept else None
        self._swept = None if self._sweep is None else SweptTensors(tensors, self._sweep)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the kernel needs at a step, for its results too."""
        return 0 if self._sweep is None else self._sweep.nbytes

    def prepare(self, opened: Mapping[int, OpenFile]) -> SweepCall | None:
        """Return the call by which the kernel reads and measures; None if it has nothing to do.

        Parameters
        ----------
        opened
            The event files, by steps back.
        """
        if self._sweep is None:
            return None
        descriptors = [file.fileno() for file in self._read_by_kernel(opened)]
        return self._sweep.prepare(descriptors, frames=self._frames)

    def carry_out(
        self, opened: Mapping[int, OpenFile], results: Results, made: SweepCall | None = None
    ) -> None:
        """Read and measure all tensors with the expected layout; call with numpy warnings off.

        Parameters
        ----------
        opened
            The event files, by steps back.
        results
            Receives the results.
        made
            The call, if it was made already.

        Raises
        ------
        StorageUnavailableError
            If a file cannot be read.
        """
        # Read everything first, so that the interpreter's working set stays in the CPU cache.
        measured = [
            (tensor, parts) for tensor in self._tensors if (parts := _parts(tensor, opened))
        ]
        call = made or self.prepare(opened)
        if call is not None and made is None:
            SweepRun([call]).finish()
        swept = None if call is None else self._swept_results(call, opened)
        fits = (np.frombuffer(self._frames, np.uint8) & self._mask) == self._head
        all_fit = fits.all()
        if self._swept is not None and swept is not None:
            without = self._swept.truncated(swept)
            if not all_fit:
                by_name = self._swept_frames.items()
                without.update(name for name, frames in by_name if not fits[frames].all())
            self._swept.add_to(results, swept, without)
        for (reading, size, _, frames), parts_by_want in measured:
            if all_fit or fits[frames].all():
                for want, parts in zip(reading.wants, parts_by_want, strict=True):
                    results[want][reading.name] = want[0].join(parts, size, reading.layout.dtype)

    def _read_by_kernel(self, opened: Mapping[int, OpenFile]) -> list[DescriptorFile]:
        return [cast("DescriptorFile", opened[back]) for back in self._backs]

    def _swept_results(self, call: SweepCall, opened: Mapping[int, OpenFile]) -> SweepResults:
        """Return what the kernel has measured."""
        try:
            return call.results()
        except SweepReadError as err:
            key = self._read_by_kernel(opened)[err.source].key
            raise StorageUnavailableError(key, err.reason) from err

    def _reads(self, reading: Reading, unit: Unit, frame: int) -> list[Read]:
        """Return the reads of a piece and of the pieces it is compared with."""
        reads = []
        for back, part in zip(reading.backs, unit, strict=True):
            source = self._backs.index(back)
            reads.append(Read(source, part.start, part.head, part.size, part.tail, frame))
            frame += part.head + part.tail
        return reads

    def _piece(self, reading: Reading, unit: Unit, frame: int) -> tuple[list[_Read], list[_Value]]:
        """Prepare the reads of a piece and of the pieces it is compared with."""
        reads: list[_Read] = []
        values: list[_Value] = []
        frames = memoryview(self._frames)
        offset = 0
        in_place = all(_uses_only_magnitudes(statistic) for statistic, _ in reading.wants)
        for back, part in zip(reading.backs, unit, strict=True):
            content, elements = self._slot(offset, part.size, reading.layout.dtype)
            end = frame + part.head + part.tail
            around = frames[frame : frame + part.head], content, frames[frame + part.head : end]
            buffers = [buffer for buffer in around if len(buffer)]
            reads.append((back, part.start, buffers, sum(map(len, buffers))))
            values.append((back, elements, self._spare(back, content, elements, in_place)))
            offset, frame = offset + _room(part), end
        return reads, values

    def _spare(self, back: int, content: memoryview, elements: Any, in_place: bool) -> Any:
        """Return memory for the magnitudes of elements, or None if they must be converted first."""
        if to_computable(elements) is not elements:
            return None
        if in_place:
            return np.frombuffer(content, elements.dtype)
        if back not in self._spares:
            self._spares[back] = np.empty(PIECE_BYTES, np.uint8)
        return self._spares[back][: elements.nbytes].view(elements.dtype)

    def _slot(self, offset: int, size: int, dtype: "np.dtype[Any]") -> tuple[memoryview, Any]:
        """Return a buffer to read into, and a read-only view of its elements."""
        key = offset, size, dtype
        if key not in self._slots:
            content = self._memory[offset : offset + size]
            elements = content.view(dtype)
            elements.flags.writeable = False
            self._slots[key] = content.data, elements
        return self._slots[key]


def _room(part: RecordPart) -> int:
    """Return the bytes of memory that the elements of one part need."""
    return -(-part.size // _ALIGNED) * _ALIGNED


def _parts(tensor: _Tensor, opened: Mapping[int, OpenFile]) -> list[list[Any]] | None:
    """Return the partial results of the pieces for each want, or None if a file is truncated."""
    partials: dict[Want, list[Any]] = {want: [] for want in tensor.reading.wants}
    together = {}
    for reads, values in tensor.pieces:
        for back, start, buffers, nbytes in reads:
            if opened[back].read_into(start, buffers) != nbytes:
                return None
        for back, elements, spare in values:
            ready = to_computable(elements) if spare is None else elements
            together[back] = Piece(ready, spare)
        for want, part in parts_of(together, tensor.reading.wants).items():
            partials[want].append(part)
    return [*partials.values()]


def _operations(reading: Reading) -> tuple[tuple[KernelOperation, int], ...]:
    """Return the operations by which the kernel measures a tensor; nothing if it cannot."""
    files = {id(part.opened): part.opened for unit in reading.units for part in unit}
    if (
        not is_supported(reading.layout.dtype)
        or len(reading.backs) > MAX_BACKS
        or not all(has_descriptor(file) for file in files.values())
    ):
        return ()
    operations = []
    for want in reading.wants:
        operation = kernel_operation(*want)
        if operation is None:
            return ()
        operations.append((operation, reading.backs.index(want[1])))
    return tuple(operations)


def _uses_only_magnitudes(statistic: StreamingStatistic) -> bool:
    """Return whether a statistic uses only magnitudes, which may then overwrite the elements."""
    return isinstance(statistic, Reduction) and (
        bool(statistic.absolute) or statistic.operation == "l1"
    )


def _frame(part: RecordPart) -> tuple[bytes, bytes]:
    """Return a mask of the known bits of a part's head and tail, and these bits."""
    mask = part.layout.mask.to_bytes(part.head, ORDER) if part.head else b""
    head = part.layout.head.to_bytes(part.head, ORDER) if part.head else b""
    if part.tail:
        footer = part.layout.footer
        mask += bytes([0xFF] * len(footer)).rjust(part.tail, b"\0")
        head += footer.rjust(part.tail, b"\0")
    return mask, head
