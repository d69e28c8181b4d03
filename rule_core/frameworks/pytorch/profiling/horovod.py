"""HorovodEvents: follows the timeline that Horovod writes, and passes it on."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from rule_core.profiler.files.constants import (
    CONVERT_MICRO_TO_NS,
    CONVERT_TO_MICROSECS,
    HOROVODTIMELINE_SUFFIX,
)
from rule_core.profiler.python_profiles.types import StepPhase
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.recorder import ProfilerRecorder
from rule_core.profiler.recording.step_profiler import StepPoint
from rule_core.profiler.recording.timelines import TraceRecord

TIMELINE_VARIABLE: Final = "HOROVOD_TIMELINE"
LONGEST_LINE: Final = 1 << 20  # bytes
LONGEST_EVENT: Final = 1 << 16  # bytes of a damaged event that are kept until it ends
READ_S: Final = 1.0  # pause between two readings
_START: Final = "start_time_since_epoch"
AddRecord = Callable[[TraceRecord], None]


class HorovodTimeline:
    """Reads a timeline of Horovod while it is written.

    Its times are those of the monotonic clock, unless it names the time of its start. An operation
    that has begun is an event when it ends; without an end, when the timeline is closed.

    Parameters
    ----------
    path
        The timeline; it may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._text = b""
        self._phases: dict[int | str, str] = {}
        self._begun: defaultdict[int | str, list[tuple[str, int]]] = defaultdict(list)
        self._base_us = (time.time_ns() - time.monotonic_ns()) // CONVERT_MICRO_TO_NS

    def new_records(self) -> Iterator[TraceRecord]:
        """Yield the events that were written since the last call."""
        for event in self._new_events():
            try:
                record = self._record(event)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # an event without what makes one
            if record is not None:
                yield record

    def open_records(self, end_us: int) -> Iterator[TraceRecord]:
        """Yield the operations that have no end, as if they ended now."""
        for pid, operations in self._begun.items():
            for name, start_us in operations:
                yield self._complete(pid, name, start_us, max(start_us, end_us))
        self._begun.clear()

    def _new_events(self) -> Iterator[Any]:
        """Yield the documents that have been completed, each on one line or several."""
        with suppress(OSError), self._path.open("rb") as file:  # until Horovod creates it
            file.seek(self._offset)
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                self._offset += len(line)
                line = line[:-1]
                text = self._text + line if len(self._text) < LONGEST_EVENT else line
                for candidate in (line, text):
                    try:
                        event = msgspec.json.decode(candidate.lstrip(b"[, ").rstrip(b"], "))
                    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                        continue
                    text = b""
                    yield event
                    break
                self._text = text

    def _record(self, event: dict[str, Any]) -> TraceRecord | None:
        pid = event.get("pid", 0)
        match event["ph"]:
            case "M":
                self._take_name(pid, event["args"])
            case "B":
                self._begun[pid].append((str(event.get("name", "")), self._time(event)))
            case "E" if self._begun[pid]:
                name, start_us = self._begun[pid].pop()
                return self._complete(pid, name, start_us, self._time(event))
            case "X" | "i" | "I":
                start_us = self._time(event)
                end_us = start_us + round(event.get("dur", 0))
                return self._complete(pid, str(event.get("name", "")), start_us, end_us)
            case _:
                pass
        return None

    def _take_name(self, pid: int | str, args: dict[str, Any]) -> None:
        if "name" in args:
            self._phases[pid] = str(args["name"])
        for key, value in args.items():
            if key.startswith(_START):
                self._base_us = int(value)

    def _time(self, event: dict[str, Any]) -> int:
        time_us: float = event["ts"]
        return self._base_us + round(time_us)

    def _complete(self, pid: int | str, name: str, start_us: int, end_us: int) -> TraceRecord:
        phase = self._phases.get(pid, f"Horovod {pid}")
        args = {"pid": os.getpid()}
        return TraceRecord(HOROVODTIMELINE_SUFFIX, phase, name or phase, start_us, end_us, args)


class HorovodEvents:
    """Passes the operations of Horovod to a recorder, in the range of their profiling.

    Parameters
    ----------
    recorder
        Receives the events.
    path
        Horovod's timeline.
    """

    def __init__(self, recorder: ProfilerRecorder, path: Path) -> None:
        self._recorder = recorder
        self._timeline = HorovodTimeline(path)
        self._ranges: list[tuple[int, int]] = []  # that are over
        self._start_us = 0  # of the range that is not over
        self._read_s = 0.0

    def reach(self, phase: StepPhase, point: StepPoint, config: RecordingConfig) -> None:
        """Note the range at the beginning of a step, and read what Horovod has written."""
        if phase is not StepPhase.STEP_START:
            return
        steps = config.horovod
        now_s = point.time_us / CONVERT_TO_MICROSECS
        if steps is not None and steps.contains(point.step, now_s):
            self._start_us = self._start_us or point.time_us
        else:
            self._end_range(point.time_us)
        if (self._ranges or self._start_us) and now_s - self._read_s >= READ_S:
            self._read_s = now_s
            self._recorder.write_later(self._read)

    def close(self, point: StepPoint, config: RecordingConfig) -> None:  # noqa: ARG002 - of `StepProfiler`
        """Read the rest, and end what has no end."""
        self._end_range(point.time_us)
        if self._ranges:
            self._recorder.write_later(self._read_all)

    def stop(self) -> None:
        """Read nothing more."""
        self._ranges.clear()
        self._start_us = 0

    def _end_range(self, end_us: int) -> None:
        start_us, self._start_us = self._start_us, 0
        if start_us:
            self._ranges.append((start_us, end_us))

    def _read(self, add: AddRecord) -> None:
        for record in self._timeline.new_records():
            self._add(record, add)

    def _read_all(self, add: AddRecord) -> None:
        self._read(add)
        for record in self._timeline.open_records(self._recorder.now_us()):
            self._add(record, add)

    def _add(self, record: TraceRecord, add: AddRecord) -> None:
        """Add an event that overlaps a range."""
        ranges = [*self._ranges, *([(self._start_us, record.end_us)] if self._start_us else [])]
        if any(start <= record.end_us and record.start_us <= end for start, end in ranges):
            add(record)
