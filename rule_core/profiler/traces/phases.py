"""Phases: the named phases and threads of a timeline, and the row of each event."""

from hashlib import blake2b
from typing import Final

from rule_core.profiler.files.time_units import ordered_node_id
from rule_core.profiler.traces.event import Id, ProcessInfo
from rule_core.profiler.traces.records import NotUsedError

Row = tuple[Id, ProcessInfo]  # number of a thread, and its phase
UNKNOWN: Final = "Unknown"
_LARGEST_ID: Final = (1 << 63) - 1
# Unnamed threads get 48-bit numbers, which rarely collide and are exact in every JSON reader.
_ID_BYTES: Final = 6


def thread_id(node_id: str, tid: Id, phase: str) -> int:
    """Return a stable number for a thread that its file does not name.

    >>> thread_id("algo-1", 0, "Forward") == thread_id("algo-1", 0, "Forward")
    True
    """
    text = f"{node_id}_{tid}\0{phase}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=_ID_BYTES).digest(), "big")


class Phases:
    """The phases and threads that a timeline has named so far.

    Parameters
    ----------
    node_id
        Node of the timeline; see `ordered_node_id`.
    by_name
        Phases by name, shared with other timelines.
    most
        Limit for phases, for named threads and for threads with events.
    """

    def __init__(self, node_id: str, by_name: dict[str, ProcessInfo], most: int) -> None:
        self.node_id = ordered_node_id(node_id)
        self._by_name = by_name
        self._most = most
        self._processes: dict[Id, ProcessInfo] = {}
        self._named: set[tuple[Id, Id]] = set()
        self._rows: dict[Id, dict[Id | None, Row]] = {}
        self._count = 0

    def row(self, pid: Id, tid: Id | None) -> Row:
        """Return the thread and the phase in which events are drawn.

        Raises
        ------
        NotUsedError
            If there are too many rows, or the numbers are too large.
        """
        rows = self._rows.get(pid)
        row = None if rows is None else rows.get(tid)
        return self._new_row(pid, tid) if row is None else row

    def _new_row(self, pid: Id, tid: Id | None) -> Row:
        self._count = self._next_count(self._count)
        process = self._process(pid)
        if tid is not None and (pid, tid) in self._named:
            row = tid, process
        else:
            thread = 0 if tid is None else _check_id(tid)
            number = thread_id(self.node_id, thread, process.name)
            process.add_thread(number, f"{self.node_id}_{thread}")
            row = number, process
        return self._rows.setdefault(pid, {}).setdefault(tid, row)

    def name_process(self, pid: Id, name: str) -> None:
        """Record the name of a phase; writers may repeat it before every event, or change it."""
        current = self._processes.get(pid)
        if current is not None and current.name == name:
            return
        process = self._by_name.get(name)
        if process is None:
            self._next_count(len(self._by_name))
            process = self._by_name[name] = ProcessInfo(_check_id(pid), name)
        self._next_count(len(self._processes))
        self._processes[_check_id(pid)] = process
        self._rows.pop(pid, None)

    def name_thread(self, pid: Id, tid: Id, name: str) -> None:
        """Record the name of a thread."""
        self._next_count(len(self._named))
        self._process(pid).add_thread(_check_id(tid), f"{self.node_id}_{name}")
        self._named.add((pid, tid))
        self._rows.get(pid, {}).pop(tid, None)

    def _process(self, pid: Id) -> ProcessInfo:
        process = self._processes.get(pid)
        if process is None:
            self._next_count(len(self._processes))
            process = ProcessInfo(pid, UNKNOWN)
            self._processes[_check_id(pid)] = process
            self._by_name.setdefault(UNKNOWN, process)
        return process

    def _next_count(self, count: int) -> int:
        if count >= self._most:
            raise NotUsedError(f"there are more than {self._most} phases or threads")
        return count + 1


def _check_id(number: Id) -> Id:
    if isinstance(number, int) and abs(number) > _LARGEST_ID:
        raise NotUsedError("its pid or tid has more than 63 bits")
    return number
