"""Phases: which phases and threads a timeline has named, and where an event of it belongs."""

import re
from hashlib import blake2b
from typing import Final, NamedTuple

from smdebug.profiler.trace_event import Id, ProcessInfo
from smdebug.profiler.trace_records import NotUsedError

UNKNOWN: Final = "Unknown"
_LARGEST_ID: Final = (1 << 63) - 1
_NODE: Final = re.compile(r"(.*)-(algo.*)", re.DOTALL)
# Of a thread that has no name: 48 bits, so that two do not meet and every reader of JSON has them.
_ID_BYTES: Final = 6


class Row(NamedTuple):
    """Where an event is drawn."""

    phase: str
    phase_tid: Id
    process: ProcessInfo


def ordered_node_id(node_id: str) -> str:
    """Return a node's name with the host first, so that names sort by host.

    >>> ordered_node_id("11-algo-1"), ordered_node_id("905-b88ab1bb8259")
    ('algo-1-11', '905-b88ab1bb8259')
    """
    found = _NODE.match(node_id)
    return node_id if found is None else f"{found[2]}-{found[1]}"


def thread_id(node_id: str, tid: Id, phase: str) -> int:
    """Return a number for a thread that its file does not name: always the same one.

    >>> thread_id("algo-1", 0, "Forward") == thread_id("algo-1", 0, "Forward")
    True
    """
    text = f"{node_id}_{tid}\0{phase}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=_ID_BYTES).digest(), "big")


class Phases:
    """What one timeline has told of its phases and threads so far.

    Parameters
    ----------
    node_id
        Of the timeline; see `ordered_node_id`.
    by_name
        Phases by name, to be shared with other timelines.
    most
        How many phases, named threads, and threads with events there may be.
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
        """Return where events of a phase and thread belong.

        Raises
        ------
        NotUsedError
            If there are too many of them, or the numbers are too large.
        """
        rows = self._rows.get(pid)
        found = None if rows is None else rows.get(tid)
        return self._new_row(pid, tid) if found is None else found

    def _new_row(self, pid: Id, tid: Id | None) -> Row:
        self._count = self._one_more(self._count)
        process = self._process(pid)
        if tid is not None and (pid, tid) in self._named:
            row = Row(process.name, tid, process)
        else:
            thread = 0 if tid is None else _checked(tid)
            number = thread_id(self.node_id, thread, process.name)
            process.add_thread(number, f"{self.node_id}_{thread}")
            row = Row(process.name, number, process)
        return self._rows.setdefault(pid, {}).setdefault(tid, row)

    def name_process(self, pid: Id, name: str) -> None:
        """Take the name of a phase; writers repeat it before every event, or change it."""
        known = self._processes.get(pid)
        if known is not None and known.name == name:
            return
        process = self._by_name.get(name)
        if process is None:
            self._one_more(len(self._by_name))
            process = self._by_name[name] = ProcessInfo(_checked(pid), name)
        self._one_more(len(self._processes))
        self._processes[_checked(pid)] = process
        self._rows.pop(pid, None)

    def name_thread(self, pid: Id, tid: Id, name: str) -> None:
        """Take the name of a thread."""
        self._one_more(len(self._named))
        self._process(pid).add_thread(_checked(tid), f"{self.node_id}_{name}")
        self._named.add((pid, tid))
        self._rows.get(pid, {}).pop(tid, None)

    def _process(self, pid: Id) -> ProcessInfo:
        known = self._processes.get(pid)
        if known is None:
            self._one_more(len(self._processes))
            known = ProcessInfo(pid, UNKNOWN)
            self._processes[_checked(pid)] = known
            self._by_name.setdefault(UNKNOWN, known)
        return known

    def _one_more(self, count: int) -> int:
        if count >= self._most:
            msg = f"there are more than {self._most} phases or threads"
            raise NotUsedError(msg)
        return count + 1


def _checked(number: Id) -> Id:
    if isinstance(number, int) and abs(number) > _LARGEST_ID:
        msg = "its pid or tid has more than 63 bits"
        raise NotUsedError(msg)
    return number
