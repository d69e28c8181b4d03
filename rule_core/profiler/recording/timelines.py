"""Timelines: the open timelines of a process, which are closed by size, age and hour."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from rule_core.clock import Clock
from rule_core.profiler.recording import layout
from rule_core.profiler.recording.config import FileLimits
from rule_core.storage.publish import publish
from rule_core.storage.uri import is_s3, open_output

BUFFER: Final = 1 << 16  # bytes, written at once
FLUSH_S: Final = 1.0
_END: Final = b"\n]"
_SEPARATOR: Final = b",\n"
_encode = msgspec.json.Encoder().encode


class TraceRecord(NamedTuple):
    """An event of a timeline.

    Attributes
    ----------
    suffix
        Kind of the timeline: the ending of its name.
    phase, name
        Phase and name of the event.
    start_us, end_us
        Epoch microseconds.
    args
        Further values.
    """

    suffix: str
    phase: str
    name: str
    start_us: int
    end_us: int
    args: dict[str, Any]


class TimelineFile:
    """A timeline while it is written.

    Parameters
    ----------
    path
        Its draft. One of a process that was killed is completed and published first.
    origin_us
        The time in epoch microseconds from which its times count.
    opened_s
        Monotonic seconds.

    Attributes
    ----------
    nbytes
        Size in bytes, including buffered data.
    last_end_us
        The end of its last event; 0 without events.
    """

    def __init__(self, path: Path, origin_us: int, opened_s: float) -> None:
        self.path = path
        self.opened_s = opened_s
        self.last_end_us = 0
        self.hour = ""
        self._origin_us = origin_us
        self._file = path.open("xb", buffering=0)
        # Another process that finds this file knows by the lock that it is in use.
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._phases: dict[str, int] = {}
        self._buffer = bytearray(b"[\n")
        self.nbytes = 0
        self._flushed_s = opened_s
        start = {"start_time_since_epoch_in_micros": origin_us}
        self._buffer += _encode({"name": "process_name", "ph": "M", "pid": 0, "args": start})
        self._add({"name": "process_sort_index", "ph": "M", "pid": 0, "args": {"sort_index": 0}})

    def add(self, record: TraceRecord) -> None:
        """Append an event."""
        pid = self._phases.get(record.phase) or self._new_phase(record.phase)
        start_us, dur_us = record.start_us - self._origin_us, record.end_us - record.start_us
        times = {"ts": start_us, "dur": dur_us}
        self._add({"name": record.name, "pid": pid, "ph": "X", **times, "args": record.args})
        self.last_end_us = max(self.last_end_us, record.end_us)
        self.hour = self.hour or layout.hour(record.end_us)

    def _new_phase(self, phase: str) -> int:
        pid = self._phases[phase] = len(self._phases) + 1
        self._add({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": phase}})
        index = {"sort_index": pid}
        self._add({"name": "process_sort_index", "ph": "M", "pid": pid, "args": index})
        return pid

    def _add(self, document: dict[str, Any]) -> None:
        text = _encode(document)
        self._buffer += _SEPARATOR
        self._buffer += text
        self.nbytes += len(text) + len(_SEPARATOR)
        if len(self._buffer) >= BUFFER:
            self.flush()

    def flush(self) -> None:
        """Write buffered data to the disk."""
        remaining = memoryview(bytes(self._buffer))
        self._buffer.clear()
        while remaining:
            remaining = remaining[self._file.write(remaining) :]

    def flush_if_due(self, now_s: float) -> None:
        """Write buffered data unless that happened less than a second ago."""
        if self._buffer and now_s - self._flushed_s >= FLUSH_S:
            self._flushed_s = now_s
            self.flush()

    def finish(self) -> None:
        """Write the end of the array, and close the file."""
        self._buffer += _END
        self.flush()
        self.leave()

    def leave(self) -> None:
        """Close the file as it is."""
        self._file.close()


class Timelines:
    """The timelines of one process, a file at a time for each kind.

    Parameters
    ----------
    folder
        Folder or S3 address of the recording.
    node
        Node of the process, see `layout.node_id`. If another process uses the name, the process
        ID is appended.
    limits
        When files are closed.
    clock
        Clock for their age.
    origin_us
        The time from which the times in files count, in epoch microseconds.

    Attributes
    ----------
    failures
        The number of files that could not be opened.
    """

    def __init__(
        self, folder: str, node: str, limits: FileLimits, clock: Clock, origin_us: int
    ) -> None:
        self.limits = limits
        self.failures = 0
        self._is_remote = is_s3(folder)
        self._output = open_output(folder)
        self._root = Path(tempfile.mkdtemp(prefix="rule-runner-") if self._is_remote else folder)
        self._node = node
        self._clock = clock
        self._origin_us = origin_us
        self._open: dict[str, TimelineFile] = {}

    def add(self, record: TraceRecord) -> None:
        """Append an event to the timeline of its kind.

        Raises
        ------
        OSError
            If the timeline cannot be opened more often than the limits allow, or not written.
        """
        file = self._open.get(record.suffix)
        if file is not None and file.hour and file.hour != layout.hour(record.end_us):
            self._publish(record.suffix)
            file = None
        file = file or self._new(record.suffix)
        if file is None:
            return
        file.add(record)
        if file.nbytes > self.limits.max_bytes:
            self._publish(record.suffix)

    def tick(self) -> None:
        """Flush and close the files whose time has come."""
        now_s = self._clock.monotonic()
        for suffix, file in list(self._open.items()):
            if now_s - file.opened_s > self.limits.max_age_s:
                self._publish(suffix)
            else:
                file.flush_if_due(now_s)

    def close(self) -> None:
        """Close all files."""
        for suffix in list(self._open):
            self._publish(suffix)
        if self._is_remote:
            shutil.rmtree(self._root, ignore_errors=True)

    def leave(self) -> None:
        """Close all drafts as they are, after an error."""
        for file in self._open.values():
            file.leave()
        self._open.clear()

    def _new(self, suffix: str) -> TimelineFile | None:
        """Open a new file; return None if that fails now, and may succeed later."""
        try:
            path = self._draft(suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            file = TimelineFile(path, self._origin_us, self._clock.monotonic())
        except OSError:
            self.failures += 1
            if self.failures >= self.limits.open_failures:
                raise
            return None
        self._open[suffix] = file
        return file

    def _draft(self, suffix: str) -> Path:
        """Return the path of a new draft; publish one that a killed process has left."""
        path = self._root / layout.draft_key(self._node, suffix)
        if path.exists() and not complete_draft(path):
            self._node = f"{self._node}-{os.getpid()}"
            path = self._root / layout.draft_key(self._node, suffix)
            path.unlink(missing_ok=True)
        return path

    def _publish(self, suffix: str) -> None:
        """Close a timeline and give it its name; one without events is removed."""
        file = self._open.pop(suffix)
        file.finish()
        if self._is_remote and file.last_end_us:
            key = layout.timeline_key(file.last_end_us, self._node, suffix)
            publish(self._output, key, file.path.read_bytes())
            file.path.unlink()
        else:
            _rename(file.path, file.last_end_us)


def complete_drafts(folder: str) -> None:
    """Complete and publish the timelines that killed processes have left in a local folder.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    for draft in sorted(Path(folder, layout.DRAFTS).glob(f"*_*{layout.DRAFT}")):
        complete_draft(draft)


def complete_draft(path: Path) -> bool:
    """Complete and publish a draft; return False if another process uses it."""
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        text = file.read()
        end = text.rfind(_SEPARATOR) if not text.endswith(_END) else len(text) - len(_END)
        last_end_us = _last_end_us(text[: max(end, 0)] + _END)
        if last_end_us:
            file.truncate(end)
            file.seek(end)
            file.write(_END)
    _rename(path, last_end_us)
    return True


def _rename(draft: Path, end_us: int) -> None:
    """Give a draft the name of a finished timeline; one without events is removed."""
    if not end_us:
        draft.unlink(missing_ok=True)
        return
    root = draft.parents[1]
    node, _, suffix = draft.name.removesuffix(layout.DRAFT).partition("_")
    while True:
        final = root / layout.timeline_key(end_us, node, suffix)
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(draft, final)  # unlike a rename, it replaces no file
        except FileExistsError:
            end_us += 1
            continue
        except OSError:  # a file system without links
            draft.replace(final)
            return
        draft.unlink()
        return


def _last_end_us(text: bytes) -> int:
    """Return the end of the last event in the text of a timeline; 0 without one."""
    with suppress(msgspec.MsgspecError, KeyError, TypeError, IndexError, ValueError):
        records = msgspec.json.decode(text)
        origin_us = records[0]["args"]["start_time_since_epoch_in_micros"]
        ends = (each["ts"] + each["dur"] for each in records if each.get("ph") == "X")
        return int(origin_us + max(ends))
    return 0
