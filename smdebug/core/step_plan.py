"""StepPlan: reads what is wanted of the tensors that one worker saved at a step, and measures it.

Small tensors are read and measured together; the others are measured piece by piece as they are
read, so that their elements are never all in memory.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.core.index import Entry, Span
from smdebug.core.measures import (
    PIECE_BYTES,
    Piece,
    Want,
    comfortable,
    measure_pieces,
    piece_length,
)
from smdebug.core.record_layout import FOOTER, ORDER, RecordLayout
from smdebug.core.reductions import Reduction, is_in_pieces, of_rows
from smdebug.storage.protocol import OpenFile

SMALL: Final = 1 << 14  # bytes of elements: such tensors are measured together
NEAR: Final = 1 << 14  # bytes between them that are read rather than left out

Array = NDArray[Any]
Names = frozenset[str]
Told = dict[Want, dict[str, Any]]
Layouts = MutableMapping[Any, RecordLayout]
# Returns the layout of a record at which nobody has looked so far, or None.
Learn = Callable[[str, Span], RecordLayout | None]


class Place(NamedTuple):
    """Where a record lies, and its elements in it."""

    span: Span
    layout: RecordLayout


# Event files, and what their index files say, by how many steps back they are.
Opened = Mapping[int, tuple[OpenFile, Mapping[str, Entry]]]


class StepPlan:
    """What is to be read of an event file, for the steps at which it lies in the same places.

    Parameters
    ----------
    entries
        What the index file says.
    wants
        What is wanted of which tensors. What cannot be told piece by piece is left to others.
    layouts
        Where the elements lie in records.
    learn
        Is asked where they lie in others; a tensor of which it cannot tell is left to others.

    Attributes
    ----------
    nbytes
        What is read at a step, without the earlier values.
    backs
        How many steps back the values are that are read.
    """

    def __init__(
        self,
        entries: Mapping[str, Entry],
        wants: Mapping[Want, Names],
        layouts: Layouts,
        learn: Learn,
    ) -> None:
        self._entries = entries
        self._wants = wants
        self._layouts = layouts
        self._places: dict[str, Place] = {}
        self._unplaced: set[str] = set()
        self._rooms: list[dict[int, _Room]] = []
        of_name: dict[str, list[Want]] = {}
        for want, names in wants.items():
            for name in names:
                place = self._places.get(name) or self._place(name, entries, learn)
                if place is None:
                    self._unplaced.add(name)
                elif _is_told(want, entries[name], place.layout):
                    self._places[name] = place
                    of_name.setdefault(name, []).append(want)
        small = {name: told for name, told in of_name.items() if self._is_small(name, told)}
        self._small = _Gathered(self._places, small) if small else None
        self._large = {name: told for name, told in of_name.items() if name not in small}
        self.backs = {0, *(back for _, back in wants)}
        self.nbytes = sum(place.span.length for place in self._places.values())

    def serves(self, entries: Mapping[str, Entry], wants: Mapping[Want, Names]) -> bool:
        """Say whether this is the plan for another step, or for other wants."""
        if wants is not self._wants or any(self._place(one, entries) for one in self._unplaced):
            return False
        if entries is self._entries:
            return True
        found = map(entries.get, self._places)
        spans = (place.span for place in self._places.values())
        same = all(
            entry is not None and entry.raw == span and not entry.reductions
            for entry, span in zip(found, spans, strict=True)
        )
        if same:
            self._entries = entries
        return same

    def carry_out(self, opened: Opened) -> Told:
        """Read and measure; what does not lie where it should is left out.

        Parameters
        ----------
        opened
            The event file of the step, 0 steps back, and those earlier ones of `backs` that there
            are.
        """
        told: Told = {want: {} for want in self._wants}
        if self._small is not None:
            self._small.carry_out(opened[0][0], told)
        room = self._take_room()
        for name, wants in self._large.items():
            sources = self._sources(name, wants, opened, room)
            if sources is None:
                continue
            layout = sources[0].place.layout
            try:
                found = measure_pieces(_pieces(sources), wants, layout.size, layout.dtype)
            except _UnlikeError:
                continue
            for want, value in found.items():
                told[want][name] = value
        self._rooms.append(room)
        return told

    def _take_room(self) -> "dict[int, _Room]":
        """Return memory that nobody is using."""
        try:
            return self._rooms.pop()
        except IndexError:  # several threads may be at it
            return {}

    def _place(
        self, name: str, entries: Mapping[str, Entry], learn: Learn | None = None
    ) -> Place | None:
        """Return where the value of a tensor lies, if it is known or can be learnt."""
        entry = entries.get(name)
        if entry is None or entry.raw is None:
            return None
        key = (name, None), entry.raw.length
        layout = self._layouts.get(key)
        if layout is None and learn is not None:
            layout = learn(name, entry.raw)
            if layout is not None:
                self._layouts[key] = layout
        return None if layout is None else Place(entry.raw, layout)

    def _is_small(self, name: str, wants: Sequence[Want]) -> bool:
        layout = self._places[name].layout
        alone = all(isinstance(one, Reduction) and not back for one, back in wants)
        return alone and layout.stop - layout.start <= SMALL

    def _sources(
        self,
        name: str,
        wants: Sequence[Want],
        opened: Opened,
        room: "dict[int, _Room]",
    ) -> "dict[int, _Source] | None":
        """Return where a value and the earlier ones that it is compared with come from."""
        sources: dict[int, _Source] = {}
        for back in {0, *(back for _, back in wants)}:
            if back not in opened:
                return None
            file, entries = opened[back]
            place = self._place(name, entries)
            if place is None:
                return None
            sources[back] = _Source(file, place, _room(room, back))
        return sources


def _is_told(want: Want, entry: Entry, layout: RecordLayout) -> bool:
    """Say whether a measure is told piece by piece, and was not saved."""
    one, _ = want
    if layout.dtype.kind not in "biufV":
        return False
    if not isinstance(one, Reduction):
        return True
    return one not in entry.reductions and is_in_pieces(one, layout.dtype, layout.size)


class _UnlikeError(Exception):
    """A record is not like those before it, or cut off."""


class _Room:
    """Memory for one piece and for what is computed from it; taking it anew would cost time."""

    def __init__(self) -> None:
        self.buffer = np.empty(PIECE_BYTES, np.uint8)
        self.shown = self.buffer.view()  # to measures: what one writes the others would see
        self.shown.flags.writeable = False
        self.spare = np.empty(PIECE_BYTES, np.uint8)


def _room(rooms: dict[int, _Room], back: int) -> _Room:
    """Return the memory for the value of so many steps back."""
    found = rooms.get(back)
    if found is None:
        found = rooms[back] = _Room()
    return found


class _Source:
    """Reads one tensor piece by piece."""

    def __init__(self, opened: OpenFile, place: Place, room: _Room) -> None:
        self.place = place
        self._opened = opened
        self._room = room

    def read(self, at: int, stop: int) -> Piece:
        """Return the elements from byte `at` to `stop`; the piece before is no more then.

        Raises
        ------
        _UnlikeError
            If what stands before or behind the elements is not what it was.
        """
        span, layout = self.place
        size = stop - at
        buffers, begin = [self._room.buffer[:size].data], span.start + layout.start + at
        head = tail = None
        if at == 0:
            head, begin = bytearray(layout.start), span.start
            buffers.insert(0, memoryview(head))
        if stop == layout.stop - layout.start:
            tail = bytearray(layout.length - layout.stop)
            buffers.append(memoryview(tail))
        if self._opened.read_into(begin, buffers) != sum(map(len, buffers)):
            raise _UnlikeError
        if head is not None and not layout.begins(head):
            raise _UnlikeError
        if tail is not None and not tail.endswith(FOOTER):
            raise _UnlikeError
        elements = self._room.shown[:size].view(layout.dtype)
        return Piece(comfortable(elements), self._room.spare)


def _pieces(sources: Mapping[int, _Source]) -> Iterator[Mapping[int, Piece]]:
    """Yield the pieces of several values of a tensor that belong together."""
    layout = sources[0].place.layout
    for one in sources.values():
        other = one.place.layout
        if (other.dtype, other.shape) != (layout.dtype, layout.shape):
            raise _UnlikeError
    end = layout.stop - layout.start
    length = piece_length(layout.dtype) * layout.dtype.itemsize
    for at in range(0, end, length):
        stop = min(at + length, end)
        yield {back: one.read(at, stop) for back, one in sources.items()}


class _Gathered:
    """Small tensors of one event file: read in a few ranges, put side by side, and checked.

    Parameters
    ----------
    places
        Where they lie.
    wants
        What is wanted of each.
    """

    def __init__(self, places: Mapping[str, Place], wants: Mapping[str, Sequence[Want]]) -> None:
        names = sorted(wants, key=lambda name: places[name].span.start)
        self._ranges: list[tuple[int, int, int]] = []  # start, stop, and where they go
        self._frames: list[slice] = []
        self._groups: dict[Any, _Group] = {}
        masks, heads = [], []
        for name in names:
            span, layout = places[name]
            at = self._read(span)
            self._frame(at, at + layout.start)
            self._frame(at + layout.length - len(FOOTER), at + layout.length)
            masks += [layout.mask.to_bytes(layout.start, ORDER), b"\xff" * len(FOOTER)]
            heads += [layout.head.to_bytes(layout.start, ORDER), FOOTER]
            key = layout.dtype, layout.size, tuple(wants[name])
            group = self._groups.setdefault(key, _Group([], [], *key))
            group.names.append(name)
            group.slices.append(slice(at + layout.start, at + layout.stop))
        self._mask = np.frombuffer(b"".join(masks), np.uint8)
        self._head = np.frombuffer(b"".join(heads), np.uint8)

    def _read(self, span: Span) -> int:
        """Have a record read; return where it will be."""
        stop = span.start + span.length
        start, end, at = self._ranges[-1] if self._ranges else (0, -1, 0)
        if end >= 0 and 0 <= span.start - end <= NEAR:
            self._ranges[-1] = (start, stop, at)
            return at + span.start - start
        at += max(end - start, 0)
        self._ranges.append((span.start, stop, at))
        return at

    def _frame(self, start: int, stop: int) -> None:
        """Have bytes compared."""
        if self._frames and self._frames[-1].stop == start:
            start = self._frames.pop().start
        self._frames.append(slice(start, stop))

    def carry_out(self, opened: OpenFile, told: Told) -> None:
        """Read and measure all of them, unless one does not lie where it should."""
        start, stop, at = self._ranges[-1]
        view = memoryview(bytearray(at + stop - start))
        for start, stop, at in self._ranges:
            if opened.read_into(start, [view[at : at + stop - start]]) != stop - start:
                return
        frames = np.frombuffer(b"".join([view[one] for one in self._frames]), np.uint8)
        if not np.array_equal(frames & self._mask, self._head):
            return
        for group in self._groups.values():
            content = b"".join([view[one] for one in group.slices])
            rows = np.frombuffer(content, group.dtype).reshape(-1, group.size)
            found = of_rows(rows, [one for one, _ in group.wants if isinstance(one, Reduction)])
            for one, values in found.items():
                told[one, 0].update(zip(group.names, values, strict=True))


class _Group(NamedTuple):
    """Tensors of one type and size of which the same is wanted."""

    names: list[str]
    slices: list[slice]
    dtype: "np.dtype[Any]"
    size: int
    wants: tuple[Want, ...]
