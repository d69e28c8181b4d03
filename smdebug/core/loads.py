"""Loads: elements of tensors, read in the order of their use, by another thread if one may.

A thread that reads a few large ranges one after the other hardly takes turns at Python with the
one that measures; threads that each read and measured a little would mostly wait for each other.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from queue import SimpleQueue
from threading import Semaphore
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.core.measures import Want
from smdebug.core.record_layout import FOOTER, RecordLayout
from smdebug.storage.protocol import OpenFile

LOAD_BYTES: Final = 1 << 21  # what a thread reads at once
AHEAD: Final = 4  # loads that are read before they are used
MOST_PARTS: Final = 256  # of one read: a system takes 1024 buffers, and three are of one part
_ALIGNED: Final = 64

Bytes = NDArray[np.uint8]


class Part(NamedTuple):
    """Some elements of a record that are read together, and what stands around them there.

    Attributes
    ----------
    opened
        The event file.
    start
        Where in it the part begins: with what stands before the elements, if `head` is not 0.
    head, size, tail
        Bytes before the elements, of the elements, and behind them up to the end of the record; 0
        if they are not the first or the last of the record.
    layout
        Of the record.
    """

    opened: OpenFile
    start: int
    head: int
    size: int
    tail: int
    layout: RecordLayout

    @property
    def stop(self) -> int:
        """Where it ends in the file."""
        return self.start + self.head + self.size + self.tail

    def fits(self, head: bytearray, tail: bytearray) -> bool:
        """Say whether what stands around the elements is what must stand there."""
        return (not head or self.layout.begins(head)) and (not tail or tail.endswith(FOOTER))


# Parts that are used together: of a value, and of the earlier ones that it is compared with.
Unit = tuple[Part, ...]
Elements = list[Bytes | None]


class Reading(NamedTuple):
    """How a tensor is read: part by part, each with those of earlier values.

    Attributes
    ----------
    name, wants, layout
        The tensor, what is wanted of it, and where its elements lie in the record.
    backs
        How many steps back the values are of which each unit has a part.
    """

    name: str
    wants: Sequence[Want]
    layout: RecordLayout
    backs: list[int]
    units: list[Unit]


def grouped(units: Iterable[Unit], limit: int) -> Iterator[list[Unit]]:
    """Yield units that are read one after the other, of `limit` bytes if they are not larger."""
    group: list[Unit] = []
    nbytes = 0
    for unit in units:
        size = sum(part.size for part in unit)
        if group and nbytes + size > limit:
            yield group
            group, nbytes = [], 0
        group.append(unit)
        nbytes += size
    if group:
        yield group


def read(parts: Sequence[Part], memory: Bytes) -> Elements:
    """Read parts into memory; return the elements of each, None if they are not as they should be.

    What lies side by side in a file is read at once. The elements are aligned, and cannot be
    written to.
    """
    found: Elements = []
    at = 0
    for _, run in groupby(_numbered(parts), lambda one: one[0]):
        together = [part for _, part in run]
        found += _read(together, memory[at:])
        at += needed(together)
    return found


def _numbered(parts: Iterable[Part]) -> Iterator[tuple[int, Part]]:
    """Yield parts with the number of the run that they belong to."""
    number, count, last = 0, 0, None
    for part in parts:
        beside = last is not None and part.opened is last.opened and part.start == last.stop
        if not beside or count == MOST_PARTS:
            number, count = number + 1, 0
        yield number, part
        last, count = part, count + 1


def _read(parts: Sequence[Part], memory: Bytes) -> Elements:
    """Read parts that lie side by side."""
    buffers: list[memoryview] = []
    found: list[tuple[Part, bytearray, Bytes, bytearray]] = []
    at = 0
    for part in parts:
        head, tail = bytearray(part.head), bytearray(part.tail)
        elements = memory[at : at + part.size]
        at += room(part)
        around = memoryview(head), elements.data, memoryview(tail)
        buffers += [one for one in around if len(one)]
        elements = elements.view()
        elements.flags.writeable = False
        found.append((part, head, elements, tail))
    count = parts[0].opened.read_into(parts[0].start, buffers)
    if count != sum(map(len, buffers)):
        return [None] * len(parts)
    return [elements if part.fits(head, tail) else None for part, head, elements, tail in found]


class Memory:
    """Memory that is used again and again: taking it anew would cost as much as reading."""

    def __init__(self) -> None:
        self._free: deque[Bytes] = deque()

    def take(self, nbytes: int) -> Bytes:
        """Return memory that nobody uses."""
        try:
            found = self._free.pop()
        except IndexError:
            found = np.empty(0, np.uint8)
        return found if found.size >= nbytes else np.empty(nbytes, np.uint8)

    def give(self, memory: Bytes) -> None:
        """Take memory back."""
        self._free.append(memory)


def needed(parts: Iterable[Part]) -> int:
    """Return how much memory the elements of parts need."""
    return sum(map(room, parts))


def room(part: Part) -> int:
    """Return how much memory the elements of one part need."""
    return -(-part.size // _ALIGNED) * _ALIGNED


class Ahead:
    """Reads units before they are used, a few loads of them at most, in the thread that runs it."""

    def __init__(self, units: Iterable[Unit], memory: Memory) -> None:
        self._loads = list(grouped(units, LOAD_BYTES))
        self._memory = memory
        self._ready: SimpleQueue[tuple[Bytes, Elements] | BaseException] = SimpleQueue()
        self._room = Semaphore(AHEAD)
        self._closed = False

    def run(self) -> None:
        """Read until all is read, or nobody wants it any more."""
        try:
            for load in self._loads:
                self._room.acquire()
                if self._closed:
                    return
                parts = [part for unit in load for part in unit]
                memory = self._memory.take(needed(parts))
                self._ready.put((memory, read(parts, memory)))
        except BaseException as err:  # noqa: BLE001 - whoever uses the elements gets it
            self._ready.put(err)

    def __iter__(self) -> Iterator[Elements]:
        """Yield the elements of each unit; those of the load before are no more then."""
        for load in self._loads:
            found = self._ready.get()
            if isinstance(found, BaseException):
                raise found
            memory, elements = found
            for unit in load:
                yield elements[: len(unit)]
                elements = elements[len(unit) :]
            self._memory.give(memory)
            self._room.release()

    def close(self) -> None:
        """Have nothing more read."""
        self._closed = True
        self._room.release()
