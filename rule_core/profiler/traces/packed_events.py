"""PackedEvents: the events of one timeline, packed in memory or in a temporary file."""

import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from tempfile import SpooledTemporaryFile
from typing import Any, Final, NamedTuple

import msgspec

from rule_core.exceptions import SMDebugRuntimeError
from rule_core.profiler.traces.event import Number, ProcessInfo, TraceEvent

BLOCK: Final = 512  # events unpacked together
IN_MEMORY: Final = 8 << 20  # bytes; larger timelines are written to disk
_COST_ON_DISK: Final = 64  # bytes on disk count as one in memory

Row = list[Any]
_fields_of = attrgetter(
    *("start_time", "event_name", "duration", "phase_pid", "phase_tid", "event_args"),
    *("phase", "event_phase", "pid", "tid"),
)


class _Block(NamedTuple):
    """Some events: their times, and the position of their bytes in the file."""

    first_start: Number
    first_end: Number
    last_end: Number
    offset: int
    length: int


class PackedEvents:
    """The events of one timeline in the order of the file.

    Parameters
    ----------
    events
        Events of one node and file type, consumed once.
    name
        Name of the timeline, for messages.

    Raises
    ------
    SMDebugRuntimeError
        If the disk is too full for a large timeline.
    """

    def __init__(self, events: Iterable[TraceEvent], name: str) -> None:
        self.count = 0
        self._name = name
        self._blocks: list[_Block] = []
        self._size = 0
        self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        self._processes: dict[int, ProcessInfo | None] = {}  # by ID
        self._node_id: str | None = None
        self._file_type = ""
        remaining = iter(events)
        while batch := list(islice(remaining, BLOCK)):
            self._add(batch)

    @property
    def nbytes(self) -> int:
        """The cost of the events in a cache, in bytes."""
        bytes_held = self._size if self._size <= IN_MEMORY else self._size // _COST_ON_DISK
        return bytes_held + len(self._blocks) * BLOCK // 2

    @property
    def span(self) -> tuple[Number, Number, Number]:
        """The first start, the first end and the last end of an event, in microseconds."""
        return (
            min((block.first_start for block in self._blocks), default=0),
            min((block.first_end for block in self._blocks), default=0),
            max((block.last_end for block in self._blocks), default=-1),
        )

    def next_end(self, time_us: int) -> Number | None:
        """Return the first end of an event at or after a time; None if none follows."""
        earliest: Number | None = None
        for block in self._blocks:
            if block.last_end < time_us or (earliest is not None and block.first_end >= earliest):
                continue
            ends = (end for row in self._rows(block) if (end := row[0] + row[2]) >= time_us)
            earliest = min(ends if earliest is None else (earliest, *ends))
        return earliest

    def ending(self, start_us: int, end_us: int) -> Iterator[TraceEvent]:
        """Yield the events that end at ``start_us <= time < end_us``."""
        return self._select(
            lambda block: block.first_end < end_us and block.last_end >= start_us,
            lambda row: start_us <= row[0] + row[2] < end_us,
        )

    def overlapping(self, start_us: int, end_us: int) -> Iterator[TraceEvent]:
        """Yield the events that overlap or touch a time range."""
        return self._select(
            lambda block: block.first_start <= end_us and block.last_end >= start_us,
            lambda row: row[0] <= end_us and row[0] + row[2] >= start_us,
        )

    def _select(
        self, may_match: Callable[[_Block], bool], matches: Callable[[Row], bool]
    ) -> Iterator[TraceEvent]:
        for block in filter(may_match, self._blocks):
            yield from map(self._event, filter(matches, self._rows(block)))

    def _rows(self, block: _Block) -> list[Row]:
        try:
            self._file.seek(block.offset)
            rows: list[Row] = msgspec.msgpack.decode(self._file.read(block.length))
        except OSError as err:
            raise self._no_disk(err) from err
        return rows

    def _event(self, row: Row) -> TraceEvent:
        ts, name, dur, phase_pid, phase_tid, args, phase, event_phase, pid, tid, process_id = row
        args = json.loads(args) if isinstance(args, str) else args
        source = self._node_id, phase, self._file_type, event_phase
        thread = pid, tid, self._processes[process_id]
        return TraceEvent(ts, name, dur, phase_pid, phase_tid, args, *source, *thread)

    def _row(self, event: TraceEvent) -> Row:
        process = event.process_info
        self._processes[id(process)] = process
        return [*_fields_of(event), id(process)]

    def _add(self, events: Sequence[TraceEvent]) -> None:
        self.count += len(events)
        self._node_id, self._file_type = events[0].node_id, events[0].file_type
        rows = [self._row(event) for event in events]
        try:
            packed = msgspec.msgpack.encode(rows)
        except OverflowError:  # JSON supports integers of more than 64 bits
            packed = msgspec.msgpack.encode(
                [[*row[:5], json.dumps(row[5]), *row[6:]] for row in rows]
            )
        try:
            self._file.seek(self._size)
            self._file.write(packed)
        except OSError as err:
            raise self._no_disk(err) from err
        block = _Block(
            min(event.start_time for event in events),
            min(event.end_time for event in events),
            max(event.end_time for event in events),
            self._size,
            len(packed),
        )
        self._blocks.append(block)
        self._size += len(packed)

    def _no_disk(self, err: OSError) -> SMDebugRuntimeError:
        return SMDebugRuntimeError(
            f"The events of {self._name!r} cannot be kept in a temporary file: {err.strerror}. "
            "Set TMPDIR to a folder with free space."
        )
