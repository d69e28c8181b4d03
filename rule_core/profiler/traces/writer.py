"""TraceWriter: writes the events of many timelines as one trace, sorted by start.

Viewers nest the events of a thread, and lose events that overlap without being nested. Threads are
therefore split into as many rows as needed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from rule_core.profiler.traces.event import Number, TraceEvent
from rule_core.profiler.traces.external_sort import SortedLines

# First numbers of phases whose names contain these parts; viewers sort by number.
FIRST_NUMBERS: Final = {
    "Step:": 1,
    "Forward": 10_000,
    "Backward": 20_000,
    "DataIterator": 30_000,
    "Dataset": 40_000,
    "/device": 50_000,
    "/host": 60_000,
    "gpu_functions": 70_000,
    "cpu_functions": 80_000,
    "Horovod": 90_000,
    "": 1_000_000,
}
_OTHERS: Final = ""
# A line begins with start, complement of the duration and number of the track, each padded to a
# fixed length: sorted lines are ordered by start, with outer events first.
_DIGITS: Final = 20
_TRACK_DIGITS: Final = 8
_NS: Final = 1000
_ZERO: Final = 10**19  # added to nanoseconds, which may be negative
_HEAD: Final = 2 * _DIGITS + _TRACK_DIGITS
_MOST_TRACKS: Final = 1 << 16
_MOST_ROWS: Final = 64  # per thread; further overlapping events share the last row
_COUNTER: Final = "C"
Write = Callable[[bytes], None]


class Body(msgspec.Struct, omit_defaults=True):
    """A written event, without its numbers of phase and thread."""

    name: str
    ph: str
    ts: Number
    dur: Number | None = None
    s: str | None = None
    args: dict[str, Any] | None = None


class Track(NamedTuple):
    """The names of an event's phase and thread; "" if absent."""

    phase: str
    thread: str


class EventLines:
    """Encodes events as sortable lines, and collects their tracks.

    Parameters
    ----------
    lines
        Receives the lines.

    Attributes
    ----------
    tracks
        The tracks, by number.
    count, left_out
        Numbers of added events and of skipped ones, with too many threads or nested too deeply.
    """

    def __init__(self, lines: SortedLines) -> None:
        self.tracks: list[Track] = []
        self.count = 0
        self.left_out = 0
        self._lines = lines
        self._numbers: dict[tuple[object, ...], int] = {}
        self._encode = msgspec.json.Encoder().encode

    def add(self, event: TraceEvent) -> None:
        """Add an event."""
        kind, args = event.phase, event.event_args
        body = Body(event.event_name, kind, event.start_time, args=args or None)
        if kind == "X":
            body.dur = event.duration
        elif kind == "i":
            scope = (args or {}).get("s", "t")
            body.s = scope if scope in {"g", "p", "t"} else "t"
            body.args = {key: value for key, value in (args or {}).items() if key != "s"} or None
        key = (event.event_phase, event.node_id, event.phase_tid, event.tid, kind == _COUNTER)
        number = self._numbers.get(key)
        if number is None:
            if len(self.tracks) == _MOST_TRACKS:
                self.left_out += 1
                return
            number = self._numbers[key] = len(self.tracks)
            self.tracks.append(_track_of(event))
        try:
            text = self._encode(body)
        except (ValueError, RecursionError):
            self.left_out += 1
            return
        start = round(event.start_time * _NS) + _ZERO
        inside = _ZERO - round(event.duration * _NS)
        self._lines.add(b"%020d%020d%08d%b\n" % (start, inside, number, text[:-1]))
        self.count += 1


def _track_of(event: TraceEvent) -> Track:
    if event.phase == _COUNTER or event.process_info is None:
        return Track(event.event_phase, "")
    thread = event.process_info.get_thread_info(event.phase_tid).thread_name
    name = thread if event.tid == event.phase_tid else f"{event.node_id}_{event.tid}"
    return Track(event.event_phase, name)


class _RowAllocator:
    """Assigns the events of a track to rows, by the open events of each row."""

    def __init__(self) -> None:
        self._open: list[list[int]] = [[]]

    def row(self, start: int, end: int) -> int:
        """Return the first row in which an event is nested in every event that it overlaps."""
        for number, ends in enumerate(self._open):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                return number
        if len(self._open) == _MOST_ROWS:
            return _MOST_ROWS - 1
        self._open.append([end])
        return len(self._open) - 1


class TraceWriter:
    """Writes one trace as an array of records; phases and threads are named before their first use.

    Parameters
    ----------
    write
        Called with each piece of the text.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._separator = b"[\n"
        self._next = dict(FIRST_NUMBERS)
        self._phases: dict[str, int] = {}
        self._threads: dict[int, int] = {}
        self._rows: defaultdict[int, _RowAllocator] = defaultdict(_RowAllocator)
        self._suffixes: dict[tuple[int, int], bytes] = {}

    def write_events(self, lines: Iterator[bytes], tracks: list[Track]) -> None:
        """Write all events and the end of the array.

        Parameters
        ----------
        lines
            Sorted lines of `EventLines`.
        tracks
            Its tracks.
        """
        for line in lines:
            start, inside = int(line[:_DIGITS]), int(line[_DIGITS : 2 * _DIGITS])
            number = int(line[2 * _DIGITS : _HEAD])
            rows = self._rows[number]
            row = rows.row(start, start + _ZERO - inside) if inside < _ZERO else 0
            suffix = self._suffixes.get((number, row))
            if suffix is None:
                suffix = self._suffixes[number, row] = self._suffix(tracks[number], row)
            self._write(b"%b%b%b" % (self._separator, line[_HEAD:-1], suffix))
            self._separator = b",\n"
        self._write(b"[\n]" if self._separator == b"[\n" else b"\n]")

    def _suffix(self, track: Track, row: int) -> bytes:
        """Name the row of a thread, and return the end of its records."""
        pid = self._phases.get(track.phase)
        if pid is None:
            pid = self._phases[track.phase] = self._number(track.phase)
            self._name("process_name", pid, 0, {"name": track.phase})
            self._name("process_sort_index", pid, 0, {"sort_index": pid})
        if not track.thread:
            return b',"pid":%d,"tid":0}' % pid
        tid = self._threads[pid] = self._threads.get(pid, 0) + 1
        name = f"{track.thread} ({row + 1})" if row else track.thread
        self._name("thread_name", pid, tid, {"name": name})
        self._name("thread_sort_index", pid, tid, {"sort_index": tid})
        return b',"pid":%d,"tid":%d}' % (pid, tid)

    def _number(self, phase: str) -> int:
        """Return the next number for a phase; once its range is used up, one for others."""
        part = next(part for part in FIRST_NUMBERS if part in phase)
        later = [first for first in FIRST_NUMBERS.values() if first > FIRST_NUMBERS[part]]
        if later and self._next[part] >= min(later):
            part = _OTHERS
        number = self._next[part]
        self._next[part] += 1
        return number

    def _name(self, kind: str, pid: int, tid: int, args: dict[str, Any]) -> None:
        record = {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args}
        self._write(self._separator + msgspec.json.encode(record))
        self._separator = b",\n"
