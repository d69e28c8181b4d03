"""Gathered: small tensors of one event file, read in a few ranges and measured side by side."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from smdebug.core.index import Span
from smdebug.core.measures import Want
from smdebug.core.record_layout import FOOTER, ORDER, Place
from smdebug.core.reductions import Reduction, of_rows
from smdebug.storage.protocol import OpenFile

SMALL: Final = 1 << 14  # bytes of elements: such tensors are measured together
NEAR: Final = 1 << 14  # bytes between them that are read rather than left out

Told = dict[Want, dict[str, Any]]


class Gathered:
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
        self._groups: dict[Any, Group] = {}
        masks, heads = [], []
        for name in names:
            span, layout = places[name]
            at = self._read(span)
            self._frame(at, at + layout.start)
            self._frame(at + layout.length - len(FOOTER), at + layout.length)
            masks += [layout.mask.to_bytes(layout.start, ORDER), b"\xff" * len(FOOTER)]
            heads += [layout.head.to_bytes(layout.start, ORDER), FOOTER]
            key = layout.dtype, layout.size, tuple(wants[name])
            group = self._groups.setdefault(key, Group([], [], *key))
            group.names.append(name)
            group.slices.append(slice(at + layout.start, at + layout.stop))
        self._mask = np.frombuffer(b"".join(masks), np.uint8)
        self._head = b"".join(heads)

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
        if (frames & self._mask).tobytes() != self._head:
            return
        for group in self._groups.values():
            content = b"".join([view[one] for one in group.slices])
            rows = np.frombuffer(content, group.dtype).reshape(-1, group.size)
            found = of_rows(rows, [one for one, _ in group.wants if isinstance(one, Reduction)])
            for one, values in found.items():
                told[one, 0].update(zip(group.names, values, strict=True))


class Group(NamedTuple):
    """Tensors of one type and size of which the same is wanted."""

    names: list[str]
    slices: list[slice]
    dtype: "np.dtype[Any]"
    size: int
    wants: tuple[Want, ...]
