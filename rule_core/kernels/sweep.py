"""Sweep: pieces of tensors that the compiled kernel reads and measures in one call."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.kernels.operations import COMPARING, WHOLE, KernelCode, KernelOperation, KernelResult

KERNEL: Final = "RULE_RUNNER_KERNEL"  # "off" computes everything with numpy
MAX_BACKS: Final = 15  # earlier values that a piece is compared with

_TRUNCATED: Final = -1  # as in _sweep.c
_SOURCE_STEP: Final = 65536

_ALIGNED: Final = 64
# As in _sweep.c; bfloat16 has no type of numpy's own.
_TYPES: Final = {
    name: number
    for number, name in enumerate(
        (
            *("float16", "bfloat16", "float32", "float64"),
            *("int8", "int16", "int32", "int64"),
            *("uint8", "uint16", "uint32", "uint64"),
        )
    )
}
# Bytes of what elements are converted to.
_WIDE: Final = {"float16": 4, "bfloat16": 4} | dict.fromkeys(
    ("int8", "int16", "int32", "uint8", "uint16", "uint32"), 8
)
_INTEGERS: Final = {"i": "i8", "u": "u8"}
_NO_BYTES: Final = np.empty(0, np.uint8)
_JOB: Final = attrgetter("job")
_NO_FILES: Final = np.empty(0, np.int32)

Bytes = NDArray[np.uint8]


def _load() -> Any:
    """Return the extension, or None where it is not built or switched off."""
    if os.environ.get(KERNEL, "").strip().lower() == "off" or sys.byteorder != "little":
        return None
    try:
        import rule_core.kernels._sweep as kernel  # type: ignore[import-not-found] # compiled
    except ImportError:
        return None
    return kernel


class _Loaded:
    """The extension, or None."""

    kernel: Any = _load()


def has_kernel() -> bool:
    """Return whether the compiled kernel is used."""
    return _Loaded.kernel is not None


def processors() -> Sequence[str]:
    """Return the kinds of processors that the kernel can use here, the best last."""
    return () if _Loaded.kernel is None else tuple(_Loaded.kernel.processors())


def is_supported(dtype: "np.dtype[Any]") -> bool:
    """Return whether the kernel is there and measures elements of a type."""
    return has_kernel() and _has_loop(dtype)


@cache
def _has_loop(dtype: "np.dtype[Any]") -> bool:
    return dtype.name in _TYPES and dtype.isnative


class SweepReadError(Exception):
    """A file cannot be read.

    Attributes
    ----------
    source
        The index of the file.
    reason
        What the operating system says.
    """

    def __init__(self, source: int, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason


class Read(NamedTuple):
    """Where the elements of a value are, and the frame bytes around them.

    Attributes
    ----------
    source
        The index of a file, or -1 - the index of a buffer in memory.
    start
        The offset of the head in it, in bytes.
    head, size, tail
        The numbers of bytes before the elements, of the elements, and after them.
    frame
        The offset among the frames to which head and tail are copied.
    """

    source: int
    start: int
    head: int
    size: int
    tail: int
    frame: int


class SweptPiece(NamedTuple):
    """A piece to measure.

    Attributes
    ----------
    dtype
        The type of the elements; see `is_supported`.
    reads
        The value, and the earlier values that it is compared with; all of one size.
    operations
        Operations, each with the index of the read that it compares with; 0 means none.
    """

    dtype: "np.dtype[Any]"
    reads: Sequence[Read]
    operations: tuple[tuple[KernelOperation, int], ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.reads[0].size // self.dtype.itemsize


class Sweep:
    """Pieces that are read and measured in one call, prepared once; thread-safe.

    Parameters
    ----------
    pieces
        The pieces, in the order of the results.
    threads
        The most threads that read and measure.

    Attributes
    ----------
    threads
        The same; at most one for each piece.
    """

    def __init__(self, pieces: Sequence[SweptPiece], threads: int = 1) -> None:
        self.pieces = pieces
        self.threads = max(1, min(threads, len(pieces)))
        programs: dict[tuple[tuple[KernelOperation, int], ...], int] = {}
        operations: list[tuple[float, ...]] = []
        rows: list[tuple[int, ...]] = []
        reads: list[Read] = []
        self._places: list[list[_ResultPlace]] = []
        self._operations = self._flags = 0
        for piece in pieces:
            if piece.operations not in programs:
                programs[piece.operations] = len(operations)
                operations += [_row(*item) for item in piece.operations]
            rows.append(
                (
                    *(_TYPES[piece.dtype.name], piece.size, len(reads), len(piece.reads)),
                    *(programs[piece.operations], len(piece.operations)),
                    *(2 * self._operations, self._flags, 0),
                )
            )
            reads += piece.reads
            self._places.append([self._place(piece, each) for each, _ in piece.operations])
        self._rows = np.array(rows, np.int64).reshape(-1, 9)
        self._reads = np.array(reads, np.int64).reshape(-1, 6)
        self._program = np.array(operations, np.float64).reshape(-1, 6)
        self._room = max(map(_room, pieces), default=0)
        self._memories: list[Bytes] = []

    def _place(self, piece: SweptPiece, operation: KernelOperation) -> "_ResultPlace":
        """Make room for a result, and return where it is."""
        integer, flag_bytes = "", 0
        if operation.code is KernelCode.ACTIVITY:
            flag_bytes = 2 * -(-piece.size // 8)
        elif operation.code in WHOLE:
            integer = _INTEGERS.get(piece.dtype.kind, "")
        place = _ResultPlace(self._operations, piece.size, self._flags, flag_bytes, integer)
        self._operations += 1
        self._flags += flag_bytes
        return place

    def row(self, piece: int, operation: int) -> int:
        """Return the row of `SweepResults.numbers` with the result of an operation."""
        return self._places[piece][operation].row

    @property
    def nbytes(self) -> int:
        """The number of bytes that a call needs, its results included."""
        memory = self.threads * self._room + _ALIGNED
        return memory + self._rows.nbytes + 16 * self._operations + self._flags

    def run(
        self,
        files: Sequence[int] = (),
        sources: Sequence[Any] = (),
        frames: Any = _NO_BYTES,
    ) -> "SweepResults":
        """Read and measure all pieces; see `prepare`.

        Raises
        ------
        SweepReadError
            If a file cannot be read.
        """
        call = self.prepare(files, sources, frames)
        SweepRun([call]).finish()
        return call.results()

    def prepare(
        self,
        files: Sequence[int] = (),
        sources: Sequence[Any] = (),
        frames: Any = _NO_BYTES,
    ) -> "SweepCall":
        """Return a call that reads and measures all pieces, for a `SweepRun`.

        Parameters
        ----------
        files
            The descriptors of the files, which are open until the run is finished or released.
        sources
            Buffers in memory.
        frames
            Receives the frame bytes.
        """
        numbers, flags = np.zeros((self._operations, 2)), np.zeros(self._flags, np.uint8)
        rows = self._rows.copy()
        descriptors = np.array(files, np.int32) if files else _NO_FILES
        try:
            memory = self._memories.pop()
        except IndexError:  # at first, or while another call uses it
            memory = _aligned(self.threads * self._room)
        job = (
            *(rows, self._reads, self._program, descriptors, tuple(sources)),
            *(memory, frames, numbers, flags, self.threads),
        )

        def results() -> SweepResults:
            self._memories.append(memory)
            status = rows[:, -1]
            truncated: frozenset[int] = frozenset()
            if status.any():
                error = int(status.max())
                if error > 0:
                    source, error = divmod(error, _SOURCE_STEP)
                    raise SweepReadError(source, os.strerror(error))
                truncated = frozenset(np.flatnonzero(status == _TRUNCATED).tolist())
            return SweepResults(numbers, flags, truncated, self._places)

        return SweepCall(job, results)


class SweepCall(NamedTuple):
    """A call that a `SweepRun` makes.

    Attributes
    ----------
    job
        The arguments for the kernel.
    results
        Returns the results once, after the run is finished. Raises `SweepReadError` if a file
        cannot be read.
    """

    job: tuple[Any, ...]
    results: Callable[[], "SweepResults"]


class SweepRun:
    """Calls that begin at once, in other threads than this one; releasing it ends them.

    The other threads are one less than the calls may use, so that none begins with one thread.
    """

    def __init__(self, calls: Sequence[SweepCall]) -> None:
        self._run = _Loaded.kernel.start(tuple(map(_JOB, calls)))

    def finish(self) -> None:
        """Do what is left in this thread too, and wait for the others; only once."""
        _Loaded.kernel.finish(self._run)

    def release(self) -> None:
        """End the other threads as soon as each has measured its piece, and wait for them."""
        self._run = None


class _ResultPlace(NamedTuple):
    """Where the result of an operation is, and what it is.

    Attributes
    ----------
    row
        Its row among the numbers.
    size
        The number of elements of the piece.
    flag, flag_bytes
        The offset of its flags, and their bytes.
    integer
        The type of a result that is an integer, or "".
    """

    row: int
    size: int
    flag: int
    flag_bytes: int
    integer: str


class SweepResults:
    """The results of pieces.

    Attributes
    ----------
    numbers
        Two for each operation of each piece, shape ``(operations, 2)``; integers as their bits.
    truncated
        The indices of the pieces that were not read because their file ended.
    """

    __slots__ = ("_cells", "_flags", "_places", "numbers", "truncated")

    def __init__(
        self,
        numbers: NDArray[np.float64],
        flags: Bytes,
        truncated: frozenset[int],
        places: Sequence[Sequence[_ResultPlace]],
    ) -> None:
        self.numbers = numbers
        self.truncated = truncated
        self._flags = flags
        self._places = places
        self._cells: list[list[float]] = []  # the numbers, once they are asked for one by one

    def result(self, piece: int, operation: int) -> KernelResult:
        """Return the result of an operation of a piece."""
        row, size, flag, flag_bytes, integer = self._places[piece][operation]
        if not self._cells:
            self._cells = self.numbers.tolist()
        first, second = self._cells[row]
        if integer:
            return KernelResult(self.numbers.view(integer)[row, 0], second, size)
        if flag_bytes:
            packed = self._flags[flag : flag + flag_bytes].reshape(2, -1)
            return KernelResult(first, second, size, packed)
        return KernelResult(first, second, size)

    def __iter__(self) -> Iterator[list[KernelResult]]:
        """Yield the results of each operation of each piece."""
        for piece, places in enumerate(self._places):
            yield [self.result(piece, operation) for operation in range(len(places))]


def _row(operation: KernelOperation, back: int) -> tuple[float, ...]:
    code, first, second, flag, quick = operation
    return float(code), float(back), float(flag), float(quick), first, second


def _room(piece: SweptPiece) -> int:
    """Return the bytes of memory that the values of a piece need, converted ones included."""
    wide = piece.size * _WIDE.get(piece.dtype.name, 0)
    return sum(_round(read.size) + _round(wide) for read in piece.reads)


def _round(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def _aligned(size: int) -> Bytes:
    """Return aligned memory."""
    memory = np.empty(size + _ALIGNED, np.uint8)
    start = -memory.ctypes.data % _ALIGNED
    return memory[start : start + size]


def sweep_arrays(
    arrays: Sequence[NDArray[Any]], operations: tuple[tuple[KernelOperation, int], ...]
) -> list[KernelResult]:
    """Return the results of operations over arrays in memory.

    Parameters
    ----------
    arrays
        Contiguous arrays of one shape ``(n,)`` and one type: the value, and earlier ones.
    operations
        Operations, each with the index of the array that it compares with; 0 means none.
    """
    first = arrays[0]
    sweep = _sweep_in_memory(first.dtype, first.nbytes, len(arrays), operations)
    return next(iter(sweep.run(sources=[array.view(np.uint8) for array in arrays])))


@lru_cache(maxsize=32)  # each keeps memory for a piece
def _sweep_in_memory(
    dtype: "np.dtype[Any]",
    nbytes: int,
    count: int,
    operations: tuple[tuple[KernelOperation, int], ...],
) -> Sweep:
    reads = [Read(-1 - index, 0, 0, nbytes, 0, 0) for index in range(count)]
    return Sweep([SweptPiece(dtype, reads, operations)])


def can_compute(operation: KernelOperation | None, back: int) -> bool:
    """Return whether the kernel can compute an operation; back 0 means without an earlier value."""
    return operation is not None and (back > 0 or operation.code not in COMPARING)
