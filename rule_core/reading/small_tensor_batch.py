"""SmallTensorBatch: small tensors of one event file, read in a few ranges and measured together."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from rule_core.format.index_file import Span
from rule_core.format.record_layout import FOOTER, ORDER, RecordLocation
from rule_core.model.reductions import Reduction, of_rows
from rule_core.model.streaming_statistics import Want
from rule_core.storage.base import OpenFile

SMALL: Final = 1 << 14  # bytes of elements up to which tensors are measured together
NEAR: Final = 1 << 14  # gaps up to this many bytes are read instead of skipped

Results = dict[Want, dict[str, Any]]


class SmallTensorBatch:
    """Reads, checks and measures the small tensors of one event file together.

    Parameters
    ----------
    locations
        Their locations.
    wants
        The statistics to compute for each.
    """

    def __init__(
        self, locations: Mapping[str, RecordLocation], wants: Mapping[str, Sequence[Want]]
    ) -> None:
        names = sorted(wants, key=lambda name: locations[name].span.start)
        self._ranges: list[tuple[int, int, int]] = []  # start, stop and offset in the buffer
        self._frames: list[slice] = []
        self._groups: dict[Any, Group] = {}
        masks, heads = [], []
        for name in names:
            span, layout = locations[name]
            offset = self._read(span)
            self._frame(offset, offset + layout.start)
            self._frame(offset + layout.length - len(FOOTER), offset + layout.length)
            masks += [layout.mask.to_bytes(layout.start, ORDER), b"\xff" * len(FOOTER)]
            heads += [layout.head.to_bytes(layout.start, ORDER), FOOTER]
            key = layout.dtype, layout.size, tuple(wants[name])
            group = self._groups.setdefault(key, Group([], [], *key))
            group.names.append(name)
            group.slices.append(slice(offset + layout.start, offset + layout.stop))
        self._mask = np.frombuffer(b"".join(masks), np.uint8)
        self._head = b"".join(heads)

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
        start, stop, offset = self._ranges[-1]
        view = memoryview(bytearray(offset + stop - start))
        for start, stop, offset in self._ranges:
            if opened.read_into(start, [view[offset : offset + stop - start]]) != stop - start:
                return
        frames = np.frombuffer(b"".join([view[frame] for frame in self._frames]), np.uint8)
        if (frames & self._mask).tobytes() != self._head:
            return
        for group in self._groups.values():
            content = b"".join([view[part] for part in group.slices])
            rows = np.frombuffer(content, group.dtype).reshape(-1, group.size)
            reductions = [stat for stat, _ in group.wants if isinstance(stat, Reduction)]
            for reduction, values in of_rows(rows, reductions).items():
                results[reduction, 0].update(zip(group.names, values, strict=True))


class Group(NamedTuple):
    """Tensors of one type and size with the same wants."""

    names: list[str]
    slices: list[slice]
    dtype: "np.dtype[Any]"
    size: int
    wants: tuple[Want, ...]
