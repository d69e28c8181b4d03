"""TraceEvent: one event of a framework timeline, with its process and thread."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

Number = int | float
Id = int | str


class ThreadInfo:
    """A thread of a phase: its number in the file, and its name prefixed by the node."""

    __slots__ = ("thread_name", "tid")

    def __init__(self, tid: Id, thread_name: str) -> None:
        self.tid = tid
        self.thread_name = thread_name

    def __repr__(self) -> str:
        return f"tid:{self.tid} name:{self.thread_name}"


class ProcessInfo:
    """A phase, called a process in traces, and its threads.

    Nodes that share a phase are threads of it.
    """

    __slots__ = ("_threads", "id", "name")

    def __init__(self, id: Id, name: str) -> None:  # noqa: A002 - the documented name
        self.id = id
        self.name = name
        self._threads: dict[Id, ThreadInfo] = {}

    @property
    def threads(self) -> Mapping[Id, ThreadInfo]:
        """The threads, by number."""
        return self._threads

    def add_thread(self, threadid: Id, thread_name: str) -> None:
        """Add a thread unless its number exists."""
        if threadid not in self._threads:
            self._threads[threadid] = ThreadInfo(threadid, thread_name)

    def get_thread_info(self, threadid: Id) -> ThreadInfo:
        """Return a thread by its number; raise `KeyError` if it does not exist."""
        return self._threads[threadid]

    def __repr__(self) -> str:
        return f"id:{self.id} name:{self.name} threads:{self._threads}"


class TraceEvent:
    """One event; times are epoch microseconds.

    Attributes
    ----------
    start_time, end_time, duration
        Times and duration, integers unless the file has fractions.
    event_name, event_args
        Name of the event, and its args; None without args.
    event_phase
        Name of the phase; ``"Unknown"`` if the file has none.
    phase
        ``"X"``; of merged timelines also ``"i"`` and ``"C"``.
    phase_pid, phase_tid
        Numbers of the phase and the thread in the file. Unnamed threads get a number derived from
        node, thread and phase, which is the same in every process and file.
    pid, tid
        Numbers of the real process and thread if the args contain them, else of the phase.
    node_id, process_info, file_type
        Node, phase with its threads, and type of the file.
    """

    __slots__ = (
        *("duration", "end_time", "event_args", "event_name", "event_phase", "file_type"),
        *("node_id", "phase", "phase_pid", "phase_tid", "pid", "process_info", "start_time"),
        "tid",
    )

    def __init__(
        self,
        ts: Number,
        name: str,
        dur: Number,
        phase_pid: Id,
        phase_tid: Id,
        event_args: dict[str, Any] | None,
        node_id: str | None,
        phase: str,
        file_type: str,
        event_phase: str = "",
        pid: Id = 0,
        tid: Id = 0,
        process_info: ProcessInfo | None = None,
    ) -> None:
        self.start_time = ts
        self.event_name = name
        self.duration = dur
        self.end_time = ts + dur
        self.phase_pid = phase_pid
        self.phase_tid = phase_tid
        self.pid = pid
        self.tid = tid
        self.event_args = event_args
        self.node_id = node_id
        self.phase = phase
        self.event_phase = event_phase
        self.process_info = process_info
        self.file_type = file_type

    def to_json(self) -> str:
        """Return the event as a record of the Trace Event Format."""
        record: dict[str, Any] = {
            "name": self.event_name,
            "pid": self.pid,
            "tid": self.tid,
            "ph": self.phase,
            "ts": self.start_time,
        }
        args = dict(self.event_args or {})
        if self.phase == "i":
            record["s"] = args.pop("s", "t")
        elif self.phase == "X":
            record["dur"] = self.duration
        if args:
            record["args"] = args
        return msgspec.json.encode(record).decode()

    def __repr__(self) -> str:
        return (
            f"TraceEvent({self.event_phase!r}, {self.event_name!r}, start_time={self.start_time}, "
            f"duration={self.duration}, node_id={self.node_id!r})"
        )


def overlapping(
    events: Iterable[TraceEvent], start: Number, end: Number, event_type: str | None = None
) -> Iterator[TraceEvent]:
    """Yield the events of a type (name or phase) that overlap ``[start, end]``."""
    for event in events:
        has_type = event_type is None or event_type in {event.event_name, event.event_phase}
        if has_type and event.start_time <= end and start <= event.end_time:
            yield event
