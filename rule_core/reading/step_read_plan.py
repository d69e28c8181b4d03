"""StepPlan: reads and measures the tensors that one worker saved at a step.

Small tensors are read and measured together. The others are measured piece by piece, so that their
elements are never in memory all at once.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, Final, NamedTuple

import numpy as np

from rule_core.format.index_file import Entry, Span
from rule_core.format.record_layout import ORDER, RecordLayout, RecordLocation, store_layout
from rule_core.kernels.sweep import Read, Sweep, SweepCall, SweptPiece, is_supported
from rule_core.model.reductions import Reduction, is_in_pieces
from rule_core.model.streaming_statistics import PIECE_BYTES, Want
from rule_core.model.swept_tensors import Results, SweptTensor, SweptTensors, of_rows
from rule_core.reading.chunked_reads import ChunkedReadPlan, Reading, RecordPart
from rule_core.storage.base import ByteRange, OpenFile

SMALL: Final = 1 << 14  # bytes of elements up to which tensors are measured together
NEAR: Final = 1 << 14  # gaps up to this many bytes are read instead of skipped
KEPT_BYTES: Final = 1 << 17  # memory up to this size is used again at the next step

Names = frozenset[str]
Layouts = MutableMapping[Any, RecordLayout]
# Returns the layout of a record with an unknown layout, or None.
Learn = Callable[[str, Span], RecordLayout | None]
# Event files and the entries of their index files, by steps back.
Opened = Mapping[int, tuple[OpenFile, Mapping[str, Entry]]]


class StepPlan:
    """The reads of an event file, for all steps whose records have the same offsets.

    Parameters
    ----------
    entries
        The entries of the index file.
    wants
        The statistics to compute, and their tensors. Statistics of whole values are skipped.
    layouts
        The known layouts.
    learn
        Returns the layout of other records; a tensor without a layout is skipped.

    Attributes
    ----------
    wants
        As passed.
    nbytes
        The number of bytes read at a step, without earlier values.
    shapes
        The shape of each measured tensor.
    backs
        How many steps back the values to read are.
    extent
        The range of the event file that contains all reads.
    """

    def __init__(
        self,
        entries: Mapping[str, Entry],
        wants: Mapping[Want, Names],
        layouts: Layouts,
        learn: Learn,
    ) -> None:
        self._entries = entries
        self.wants = wants
        self._layouts = layouts
        self._locations: dict[str, RecordLocation] = {}
        self._unlocated: set[str] = set()
        self._prepared: list[PreparedReads] = []  # not in use
        wants_by_name: dict[str, list[Want]] = {}
        for want, names in wants.items():
            for name in names:
                location = self._locations.get(name) or self._locate(name, entries, learn)
                if location is None:
                    self._unlocated.add(name)
                elif _can_measure(want, entries[name], location.layout):
                    self._locations[name] = location
                    wants_by_name.setdefault(name, []).append(want)
        small = {
            name: its_wants
            for name, its_wants in wants_by_name.items()
            if self._is_small(name, its_wants)
        }
        self._small = SmallTensorBatch(self._locations, small) if small else None
        self._large = {
            name: its_wants for name, its_wants in wants_by_name.items() if name not in small
        }
        self.backs = {0, *(back for _, back in wants)}
        self.shapes = {name: location.layout.shape for name, location in self._locations.items()}
        spans = [location.span for location in self._locations.values()]
        self.nbytes = sum(span.length for span in spans)
        self.extent = ByteRange(
            min((span.start for span in spans), default=0),
            max((span.start + span.length for span in spans), default=0),
        )

    def serves(self, entries: Mapping[str, Entry], wants: Mapping[Want, Names]) -> bool:
        """Return whether the plan fits another step and its wants."""
        if wants is not self.wants:
            return False
        if self._unlocated and any(self._locate(name, entries) for name in self._unlocated):
            return False
        if entries is self._entries:
            return True
        same_entries = map(entries.get, self._locations)
        same = all(
            entry is not None
            and entry.raw == location.span
            and not entry.reductions
            and (entry.layout is None or entry.layout == location.layout)
            for entry, location in zip(same_entries, self._locations.values(), strict=True)
        )
        if same:
            self._entries = entries
        return same

    def carry_out(self, opened: Opened, prepared: "PreparedReads | None" = None) -> Results:
        """Read and measure; tensors that do not match their layout are skipped.

        Parameters
        ----------
        opened
            The event file of the step, 0 steps back, and the existing earlier ones of `backs`.
        prepared
            What `prepare` returned for the same content of these files, if its call was made.
        """
        results: Results = {want: {} for want in self.wants}
        if self._small is not None:
            self._small.carry_out(opened[0][0], results)
        if self._large:
            prepared = prepared or self.prepare(opened)
            files = {back: file for back, (file, _) in opened.items()}
            with np.errstate(all="ignore"):
                prepared.reads.carry_out(files, results, prepared.call)
            self.keep(prepared)
        return results

    def prepare(self, opened: Opened) -> "PreparedReads":
        """Return how to read the large tensors; see `carry_out`."""
        key = _Key(len(self._layouts), {back: entries for back, (_, entries) in opened.items()})
        prepared = None
        with suppress(IndexError):  # empty at first, or in use
            prepared = self._prepared.pop()
        if prepared is None or not prepared.key.is_like(key):
            readings = (self._reading(*item, opened) for item in self._large.items())
            reads = ChunkedReadPlan([reading for reading in readings if reading is not None])
            prepared = PreparedReads(key, reads)
        return prepared

    def keep(self, prepared: "PreparedReads") -> None:
        """Keep reads for another step."""
        self._prepared.append(prepared._replace(call=None))

    def _locate(
        self, name: str, entries: Mapping[str, Entry], learn: Learn | None = None
    ) -> RecordLocation | None:
        """Return the location of a tensor's value, if its layout is known or can be learned."""
        entry = entries.get(name)
        if entry is None or entry.raw is None:
            return None
        key = (name, None), entry.raw.length
        layout = entry.layout or self._layouts.get(key)
        if layout is None and learn is not None:
            layout = learn(name, entry.raw)
            if layout is not None:
                store_layout(self._layouts, key, layout)
        return None if layout is None else RecordLocation(entry.raw, layout)

    def _is_small(self, name: str, wants: Sequence[Want]) -> bool:
        layout = self._locations[name].layout
        alone = all(isinstance(statistic, Reduction) and not back for statistic, back in wants)
        return alone and layout.stop - layout.start <= SMALL

    def _reading(self, name: str, wants: Sequence[Want], opened: Opened) -> Reading | None:
        """Return how to read a tensor and the earlier values that it is compared with."""
        backs = [0, *sorted({back for _, back in wants if back})]
        locations: list[tuple[OpenFile, RecordLocation]] = []
        for back in backs:
            file, entries = opened.get(back, (None, {}))
            location = None if file is None else self._locate(name, entries)
            if file is None or location is None:
                return None
            locations.append((file, location))
        layout = locations[0][1].layout
        # `shape` returns the shape of the first location, which all must share.
        alike = (self._locations[name], *(location for _, location in locations))
        if len({(location.layout.dtype, location.layout.shape) for location in alike}) > 1:
            return None
        end = layout.stop - layout.start
        units = [
            tuple(
                _part(file, location, start, min(start + PIECE_BYTES, end))
                for file, location in locations
            )
            for start in range(0, end, PIECE_BYTES)
        ]
        return Reading(name, wants, layout, backs, units)


class SmallTensorBatch:
    """Reads, checks and measures the small tensors of one event file together.

    Parameters
    ----------
    locations
        Their locations.
    wants
        The reductions to compute for each.
    """

    def __init__(
        self, locations: Mapping[str, RecordLocation], wants: Mapping[str, Sequence[Want]]
    ) -> None:
        names = sorted(wants, key=lambda name: locations[name].span.start)
        self._ranges: list[tuple[int, int, int]] = []  # start, stop and offset in the buffer
        self._frames: list[slice] = []
        self._groups: dict[Any, _Group] = {}
        self._memories: list[_Memory] = []  # not in use
        masks, heads = [], []
        for name in names:
            span, layout = locations[name]
            offset = self._read(span)
            self._frame(offset, offset + layout.start)
            self._frame(offset + layout.length - len(layout.footer), offset + layout.length)
            masks += [layout.mask.to_bytes(layout.start, ORDER), b"\xff" * len(layout.footer)]
            heads += [layout.head.to_bytes(layout.start, ORDER), layout.footer]
            reductions = tuple(stat for stat, _ in wants[name] if isinstance(stat, Reduction))
            key = layout.dtype, layout.size, reductions
            group = self._groups.setdefault(key, _Group([], [], *key))
            group.names.append(name)
            group.slices.append(slice(offset + layout.start, offset + layout.stop))
        self._mask = np.frombuffer(b"".join(masks), np.uint8)
        self._head = b"".join(heads)
        pieces = [group.pieces() for group in self._groups.values()]
        self._sweep = Sweep([*chain(*pieces)]) if all(pieces) else None
        self._swept = None if self._sweep is None else SweptTensors(self._tensors(), self._sweep)

    def _tensors(self) -> list[SweptTensor]:
        """Return the tensors, in the order of their pieces."""
        number = count()
        return [
            SweptTensor(name, size, dtype, [(each, 0) for each in reductions], range(at, at + 1))
            for names, _, dtype, size, reductions in self._groups.values()
            for name, at in zip(names, number, strict=False)
        ]

    def _read(self, span: Span) -> int:
        """Add a record to the ranges to read; return its offset in the buffer."""
        stop = span.start + span.length
        start, end, offset = self._ranges[-1] if self._ranges else (0, -1, 0)
        if end >= 0 and 0 <= span.start - end <= NEAR:
            self._ranges[-1] = (start, stop, offset)
            return offset + span.start - start
        offset += max(end - start, 0)
        self._ranges.append((span.start, stop, offset))
        return offset

    def _frame(self, start: int, stop: int) -> None:
        """Add bytes to compare with the expected frame."""
        if self._frames and self._frames[-1].stop == start:
            start = self._frames.pop().start
        self._frames.append(slice(start, stop))

    def carry_out(self, opened: OpenFile, results: Results) -> None:
        """Read and measure all tensors, unless a record does not match its layout."""
        memory = self._memories.pop() if self._memories else self._allocate()
        self._carry_out(opened, memory, results)
        if len(memory.view) <= KEPT_BYTES:
            self._memories.append(memory)

    def _allocate(self) -> "_Memory":
        start, stop, offset = self._ranges[-1]
        view = memoryview(bytearray(offset + stop - start))
        reads = [
            (start, [view[offset : offset + stop - start]], stop - start)
            for start, stop, offset in self._ranges
        ]
        return _Memory(view, reads, [view[frame] for frame in self._frames])

    def _carry_out(self, opened: OpenFile, memory: "_Memory", results: Results) -> None:
        view = memory.view
        for start, buffers, nbytes in memory.reads:
            if opened.read_into(start, buffers) != nbytes:
                return
        frames = np.frombuffer(b"".join(memory.frames), np.uint8)
        if (frames & self._mask).tobytes() != self._head:
            return
        if self._sweep is not None and self._swept is not None:
            self._swept.add_to(results, self._sweep.run(sources=[view]))
            return
        for group in self._groups.values():
            content = b"".join([view[part] for part in group.slices])
            rows = np.frombuffer(content, group.dtype).reshape(-1, group.size)
            for reduction, values in of_rows(rows, group.reductions).items():
                results[reduction, 0].update(zip(group.names, values, strict=True))


class _Memory(NamedTuple):
    """Memory that records are read into.

    Attributes
    ----------
    reads
        The calls that read them: file offset, buffers, and their number of bytes.
    frames
        The bytes around the elements.
    """

    view: memoryview
    reads: list[tuple[int, list[memoryview], int]]
    frames: list[memoryview]


class _Group(NamedTuple):
    """Tensors of one type and size with the same reductions."""

    names: list[str]
    slices: list[slice]
    dtype: "np.dtype[Any]"
    size: int
    reductions: tuple[Reduction, ...]

    def pieces(self) -> list[SweptPiece]:
        """Return the tensors as pieces in the buffer; nothing if the kernel cannot measure all."""
        operations = [reduction.kernel_operation for reduction in self.reductions]
        program = tuple((operation, 0) for operation in operations if operation is not None)
        is_float = self.dtype.kind in "fV"
        if not is_float or not is_supported(self.dtype) or len(program) < len(operations):
            return []
        reads = (Read(-1, part.start, 0, part.stop - part.start, 0, 0) for part in self.slices)
        return [SweptPiece(self.dtype, [read], program) for read in reads]


def _can_measure(want: Want, entry: Entry, layout: RecordLayout) -> bool:
    """Return whether a statistic can be computed piece by piece and was not saved."""
    statistic, _ = want
    if layout.dtype.kind not in "biufV" or not layout.size:
        return False
    if not isinstance(statistic, Reduction):
        return True
    return statistic not in entry.reductions and is_in_pieces(statistic, layout.dtype, layout.size)


class _Key(NamedTuple):
    """What a prepared read depends on: the number of known layouts, and the record locations."""

    layouts: int
    entries: Mapping[int, Mapping[str, Entry]]

    def is_like(self, other: "_Key") -> bool:
        """Return whether reads are the same; steps with the same record offsets share entries."""
        return (
            self.layouts == other.layouts
            and self.entries.keys() == other.entries.keys()
            and all(self.entries[back] is entries for back, entries in other.entries.items())
        )


class PreparedReads(NamedTuple):
    """How to read the large tensors of a step.

    Attributes
    ----------
    key
        The steps for which it can be used.
    reads
        The reads.
    call
        The call of the kernel, if it is made before the plan is carried out.
    """

    key: _Key
    reads: ChunkedReadPlan
    call: SweepCall | None = None


def _part(opened: OpenFile, location: RecordLocation, start: int, stop: int) -> RecordPart:
    """Return the part of a record with the elements from byte `at` to `stop`."""
    span, layout = location
    head = layout.start if start == 0 else 0
    tail = layout.length - layout.stop if stop == layout.stop - layout.start else 0
    return RecordPart(
        opened, span.start + layout.start + start - head, head, stop - start, tail, layout
    )
