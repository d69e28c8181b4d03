"""StepPlan: reads what is wanted of the tensors that one worker saved at a step, and measures it.

Small tensors are read and measured together; the others are measured piece by piece as they are
read, so that their elements are never all in memory.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from smdebug.core.gathered import SMALL, Gathered, Told
from smdebug.core.index import Entry, Span
from smdebug.core.measures import PIECE_BYTES, Want
from smdebug.core.prepared import Part, Prepared, Reading
from smdebug.core.record_layout import Place, RecordLayout, keep
from smdebug.core.reductions import Reduction, is_in_pieces
from smdebug.storage.protocol import ByteRange, OpenFile

Names = frozenset[str]
Layouts = MutableMapping[Any, RecordLayout]
# Returns the layout of a record at which nobody has looked so far, or None.
Learn = Callable[[str, Span], RecordLayout | None]
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
    extent
        The bytes of the event file that what is read lies in: from the first to behind the last.
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
        self._prepared: list[tuple[_Key, Prepared]] = []
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
        self._small = Gathered(self._places, small) if small else None
        self._large = {name: told for name, told in of_name.items() if name not in small}
        self.backs = {0, *(back for _, back in wants)}
        spans = [place.span for place in self._places.values()]
        self.nbytes = sum(one.length for one in spans)
        self.extent = ByteRange(
            min((one.start for one in spans), default=0),
            max((one.start + one.length for one in spans), default=0),
        )

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

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor of which something is told."""
        return self._places[name].layout.shape

    def carry_out(self, opened: Opened) -> Told:
        """Measure; what does not lie where it should is left out.

        Parameters
        ----------
        opened
            The event file of the step, 0 steps back, and those earlier ones of `backs` that there
            are.
        """
        told: Told = {want: {} for want in self._wants}
        if self._small is not None:
            self._small.carry_out(opened[0][0], told)
        if self._large:
            with np.errstate(all="ignore"):
                self._measure_large(opened, told)
        return told

    def _measure_large(self, opened: Opened, told: Told) -> None:
        """Measure tensors that are not small, each piece when it is read."""
        key = _Key(len(self._layouts), {back: entries for back, (_, entries) in opened.items()})
        kept = None
        with suppress(IndexError):  # there is none at first, or another thread has it
            kept = self._prepared.pop()
        if kept is None or not kept[0].is_like(key):
            found = (self._reading(*one, opened) for one in self._large.items())
            kept = key, Prepared([one for one in found if one is not None])
        kept[1].carry_out({back: file for back, (file, _) in opened.items()}, told)
        self._prepared.append(kept)

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
                keep(self._layouts, key, layout)
        return None if layout is None else Place(entry.raw, layout)

    def _is_small(self, name: str, wants: Sequence[Want]) -> bool:
        layout = self._places[name].layout
        alone = all(isinstance(one, Reduction) and not back for one, back in wants)
        return alone and layout.stop - layout.start <= SMALL

    def _reading(self, name: str, wants: Sequence[Want], opened: Opened) -> Reading | None:
        """Return how a tensor is read, and the earlier values that it is compared with."""
        backs = [0, *sorted({back for _, back in wants if back})]
        places: list[tuple[OpenFile, Place]] = []
        for back in backs:
            file, entries = opened.get(back, (None, {}))
            place = None if file is None else self._place(name, entries)
            if file is None or place is None:
                return None
            places.append((file, place))
        layout = places[0][1].layout
        alike = (self._places[name], *(place for _, place in places))  # `shape` tells the first's
        if len({(one.layout.dtype, one.layout.shape) for one in alike}) > 1:
            return None
        end = layout.stop - layout.start
        units = [
            tuple(_part(file, place, at, min(at + PIECE_BYTES, end)) for file, place in places)
            for at in range(0, end, PIECE_BYTES)
        ]
        return Reading(name, wants, layout, backs, units)


def _is_told(want: Want, entry: Entry, layout: RecordLayout) -> bool:
    """Say whether a measure is told piece by piece, and was not saved."""
    one, _ = want
    if layout.dtype.kind not in "biufV":
        return False
    if not isinstance(one, Reduction):
        return True
    return one not in entry.reductions and is_in_pieces(one, layout.dtype, layout.size)


class _Key(NamedTuple):
    """What readings depend on: how many layouts are known, and where records lie."""

    layouts: int
    entries: Mapping[int, Mapping[str, Entry]]

    def is_like(self, other: "_Key") -> bool:
        """Say whether readings are the same: steps whose records lie alike share their entries."""
        return (
            self.layouts == other.layouts
            and self.entries.keys() == other.entries.keys()
            and all(self.entries[back] is one for back, one in other.entries.items())
        )


def _part(opened: OpenFile, place: Place, at: int, stop: int) -> Part:
    """Return the part of a record with the elements from byte `at` to `stop`."""
    span, layout = place
    head = layout.start if at == 0 else 0
    tail = layout.length - layout.stop if stop == layout.stop - layout.start else 0
    return Part(opened, span.start + layout.start + at - head, head, stop - at, tail, layout)
