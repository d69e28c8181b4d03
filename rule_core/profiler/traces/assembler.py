"""Assembler: builds the events of a timeline from its records."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from rule_core.logger import get_logger
from rule_core.profiler.files.chunks import TimelineFaultError
from rule_core.profiler.traces.event import Id, Number, ProcessInfo, TraceEvent
from rule_core.profiler.traces.phases import UNKNOWN, Phases
from rule_core.profiler.traces.records import NotUsedError, Record, RecordReader

T = TypeVar("T")
Args = dict[str, Any] | None
START: Final = "start_time_since_epoch_in_micros"
# The largest epoch microseconds that are exact in every JSON reader, in the year 2255.
LATEST: Final = 1 << 53
_ID_DIGITS: Final = 18
_MARKS: Final = {"i": "i", "I": "i", "C": "C"}


class OpenEvent(NamedTuple):
    """A ``B`` event without its ``E`` so far; `ts` is in epoch microseconds."""

    ts: Number
    name: str
    args: Args


# By numbers of phase and thread, in the order of their starts.
OpenEvents = dict[tuple[Id, Id | None], list[OpenEvent]]


def copy_open_events(open_events: OpenEvents) -> OpenEvents:
    """Return a copy, which reading another file does not change."""
    return {row: list(events) for row, events in open_events.items()}


class Assembler:
    """Builds the events of one timeline.

    Parameters
    ----------
    reader
        Source of the records, which counts skipped ones.
    node_id, file_type
        Node and file type of the events; ``11-algo-1`` becomes ``algo-1-11``.
    start_us
        Epoch microseconds of the file's zero, until a record defines it.
    marks
        Whether to yield instant events and counters too, with duration 0.
    processes
        Phases by name, shared with other timelines.
    open_events
        Open ``B`` events of the writer's earlier files, updated with those of this file.
    """

    def __init__(
        self,
        reader: RecordReader,
        *,
        node_id: str = "",
        file_type: str = "",
        start_us: int = 0,
        marks: bool = False,
        processes: dict[str, ProcessInfo] | None = None,
        open_events: OpenEvents | None = None,
    ) -> None:
        self._unpaired = 0
        self._reader = reader
        self._file_type = file_type
        self._start: Number = start_us
        self._marks = _MARKS if marks else {}
        self._phases = Phases(node_id, {} if processes is None else processes, reader.limits.rows)
        self._open: OpenEvents = {} if open_events is None else open_events
        self._most_open = reader.limits.rows

    def parse(self, source: str, problems: list[str]) -> Iterator[TraceEvent]:
        """Yield the events of all records in file order; a pair of ``B`` and ``E`` at its ``E``.

        Parameters
        ----------
        source
            Name of the timeline in messages.
        problems
            Receives a sentence for a fatal problem, and one for skipped records.
        """
        try:
            yield from self.events(self._reader.batches())
        except TimelineFaultError as err:
            problems.append(f"Timeline {source!r} {err}.")
        problems += self._reader.problems(f"Timeline {source!r}")
        if self._unpaired:
            get_logger("profiler").info(
                "Timeline %r has %d E events that did not begin in it.", source, self._unpaired
            )

    def events(self, batches: Iterable[Iterable[Record]]) -> Iterator[TraceEvent]:
        """Yield the events of batches of records, skipping invalid records."""
        for batch in batches:
            for record in batch:
                try:
                    event = self._event(record)
                except NotUsedError as err:
                    self._reader.skip(str(err))
                else:
                    if event is not None:
                        yield event

    def _event(self, record: Record) -> TraceEvent | None:
        kind = record.ph
        if kind == "X":
            ts, dur = self._time(record), _required(record.dur, "dur")
            name = _required(record.name, "name")
            return self._make_event(record, kind, ts, dur, name, record.args)
        if kind == "M":
            self._learn(record)
        elif kind == "B":
            self._begin(record)
        elif kind == "E":
            return self._end(record)
        elif kind in self._marks:
            args = record.args if record.s is None else {**(record.args or {}), "s": record.s}
            name = record.name or ""
            return self._make_event(record, self._marks[kind], self._time(record), 0, name, args)
        return None

    def _make_event(
        self, record: Record, kind: str, ts: Number, dur: Number, name: str, args: Args
    ) -> TraceEvent:
        if not 0 <= dur <= LATEST:
            raise NotUsedError(f"it lasts {dur:.6g} us")
        phase_pid = _pid(record) if kind == "X" else record.pid or 0
        phase_tid, process = self._phases.row(phase_pid, record.tid)
        pid, tid = phase_pid, phase_tid
        if args:
            pid = _real_id(args.get("pid"), pid)
            tid = _real_id(args.get("thread_id"), tid)
        return TraceEvent(
            ts,
            name,
            dur,
            phase_pid,
            phase_tid,
            args,
            self._phases.node_id,
            kind,
            self._file_type,
            process.name,
            pid,
            tid,
            process,
        )

    def _time(self, record: Record) -> Number:
        ts = self._start + _required(record.ts, "ts")
        if not -LATEST <= ts <= LATEST:
            raise NotUsedError(f"its time is {ts:.6g} us")
        return ts

    def _learn(self, record: Record) -> None:
        """Read phases, threads and the file's zero from a metadata record."""
        args = record.args or {}
        if record.name == "process_name" and "name" in args:
            self._phases.name_process(_pid(record), _text(args["name"]))
        elif record.name == "thread_name":
            if record.tid is None:
                raise _missing(field="tid")
            self._phases.name_thread(_pid(record), record.tid, _text(args.get("name")))
        start = args.get(START)
        if start is not None:
            if not isinstance(start, int | float) or not 0 <= start <= LATEST:
                raise NotUsedError(f"its {START} is {start!r:.40}")
            self._start = start

    def _begin(self, record: Record) -> None:
        event = OpenEvent(self._time(record), _required(record.name, "name"), record.args)
        key = _pid(record), record.tid
        stack = self._open.get(key, [])
        if max(len(stack), len(self._open)) >= self._most_open:
            raise NotUsedError(f"there are more than {self._most_open} events open")
        stack.append(event)
        self._open[key] = stack

    def _end(self, record: Record) -> TraceEvent | None:
        """Return the event that an ``E`` record ends; None without a ``B``."""
        key, ts = (_pid(record), record.tid), self._time(record)
        stack = self._open.get(key)
        if not stack or stack[-1].ts > ts:
            self._unpaired += 1
            return None
        start = stack.pop()
        if not stack:
            del self._open[key]
        args = {**(start.args or {}), **(record.args or {})} or None
        return self._make_event(record, "X", start.ts, ts - start.ts, start.name, args)


def _missing(*, field: str) -> NotUsedError:
    return NotUsedError(f"it has no {field!r}")


def _pid(record: Record) -> Id:
    if record.pid is None:
        raise _missing(field="pid")
    return record.pid


def _required(value: T | None, field: str) -> T:
    """Return what a record must have."""
    if value is None:
        raise _missing(field=field)
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else UNKNOWN


def _real_id(value: object, default: Id) -> Id:
    """Return a number from an event's args, or the default if it is invalid.

    >>> _real_id(905, 1), _real_id("905", 1), _real_id("main", 1), _real_id(None, 1)
    (905, 905, 1, 1)
    """
    if isinstance(value, str) and value.isdecimal() and len(value) <= _ID_DIGITS:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_ID_DIGITS:
        return value
    return default
