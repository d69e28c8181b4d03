"""TraceWriter: events of many timelines, by their start -> one trace for a viewer.

A viewer draws the events of one thread below each other, and loses those that overlap without one
being inside the other. A phase's threads are therefore drawn in as many rows as it takes.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from smdebug.profiler.sorted_lines import SortedLines
from smdebug.profiler.trace_event import Number, TraceEvent

# Where the numbers of phases begin whose names have these parts; viewers sort by the numbers.
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
# A line is the start, how much shorter than the longest the event is, and the number of its track,
# of fixed lengths, so that the order of lines is the one of starts, with outer events first.
_DIGITS: Final = 20
_TRACK_DIGITS: Final = 8
_NS: Final = 1000
_ZERO: Final = 10**19  # added to nanoseconds, which may be negative
_HEAD: Final = 2 * _DIGITS + _TRACK_DIGITS
_MOST_TRACKS: Final = 1 << 16
_MOST_ROWS: Final = 64  # of one thread; what overlaps more often shares the last
_COUNTER: Final = "C"
Write = Callable[[bytes], None]


class Body(msgspec.Struct, omit_defaults=True):
    """An event as it is written, but for its numbers of phase and thread."""

    name: str
    ph: str
    ts: Number
    dur: Number | None = None
    s: str | None = None
    args: dict[str, Any] | None = None


class Track(NamedTuple):
    """What an event is drawn with: its phase's name and its thread's name; "" is none."""

    phase: str
    thread: str


class EventLines:
    """Events as lines that can be sorted, and the tracks that they name.

    Parameters
    ----------
    lines
        Takes the lines.

    Attributes
    ----------
    tracks
        By their numbers.
    count, left_out
        Events that were taken, and those that were not: of too many threads, or nested too deeply.
    """

    def __init__(self, lines: SortedLines) -> None:
        self.tracks: list[Track] = []
        self.count = 0
        self.left_out = 0
        self._lines = lines
        self._numbers: dict[tuple[object, ...], int] = {}
        self._encode = msgspec.json.Encoder().encode

    def add(self, event: TraceEvent) -> None:
        """Take an event."""
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
    named = thread if event.tid == event.phase_tid else f"{event.node_id}_{event.tid}"
    return Track(event.event_phase, named)


class _Rows:
    """The rows in which the events of a track are drawn: those that are open in each."""

    def __init__(self) -> None:
        self._open: list[list[int]] = [[]]

    def row(self, start: int, end: int) -> int:
        """Return the first row in which an event overlaps nothing that it is not inside of."""
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
    """Writes one trace: an array of records, those of a phase and a thread before their first use.

    Parameters
    ----------
    write
        Takes the text piece by piece.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._separator = b"[\n"
        self._next = dict(FIRST_NUMBERS)
        self._phases: dict[str, int] = {}
        self._threads: dict[int, int] = {}
        self._rows: dict[int, _Rows] = {}
        self._places: dict[tuple[int, int], bytes] = {}

    def write_events(self, lines: Iterator[bytes], tracks: list[Track]) -> None:
        """Write all events.

        Parameters
        ----------
        lines
            Of `EventLines`, in their order.
        tracks
            That the lines name.
        """
        for line in lines:
            start, inside = int(line[:_DIGITS]), int(line[_DIGITS : 2 * _DIGITS])
            number = int(line[2 * _DIGITS : _HEAD])
            rows = self._rows.get(number)
            if rows is None:
                rows = self._rows[number] = _Rows()
            row = rows.row(start, start + _ZERO - inside) if inside < _ZERO else 0
            place = self._places.get((number, row))
            if place is None:
                place = self._places[number, row] = self._place(tracks[number], row)
            self._write(b"%b%b%b" % (self._separator, line[_HEAD:-1], place))
            self._separator = b",\n"

    def end(self) -> None:
        """Write what ends the array."""
        self._write(b"[\n]" if self._separator == b"[\n" else b"\n]")

    def _place(self, track: Track, row: int) -> bytes:
        """Return the end of the records of a thread's row, which are named first."""
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
        """Return the next number of phases with such names; once they are used up, of others."""
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
