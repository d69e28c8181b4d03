"""ConvertedTimeline: writes the events of one trace as a timeline, whose zero is set at the end.

`ConvertedTimelines` writes a timeline for each minute, as a profiler does: readers of a time range
then parse the files near it only.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from rule_core.profiler.traces.assembler import START
from rule_core.profiler.traces.records import NotUsedError

MINUTE_US: Final = 60_000_000
_MOST_MINUTES: Final = 1440  # with events, of one trace
_MOST_OPEN: Final = 32  # files
_ZERO_WIDTH: Final = 24  # characters


class ConvertedTimeline:
    """A timeline that is being written.

    Parameters
    ----------
    path
        Where to write it.

    Attributes
    ----------
    path
        As given.
    count
        The number of events.
    last
        The end of the last event, relative to the file's zero.
    """

    def __init__(self, path: Path) -> None:
        self.count = 0
        self.last = -math.inf
        self.path = path
        self._phases: dict[str, int] = {}
        self._encoder = msgspec.json.Encoder()
        self._file: BinaryIO = path.open("wb")
        head = b'[\n{"name":"process_name","ph":"M","pid":0,"args":{"%s":' % START.encode()
        self._zero_at = len(head)
        self._file.write(head + b" " * _ZERO_WIDTH + b"}}")

    def open(self) -> None:
        """Open the file again, to go on at its end."""
        if self._file.closed:
            self._file = self.path.open("r+b")
            self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the file; `open` opens it again."""
        self._file.close()

    def add(
        self, phase: str, name: str, ts: float, dur: float, tid: int | str, args: dict[str, Any]
    ) -> None:
        """Append an event; `ts` is relative to the file's zero."""
        pid = self._phases.get(phase)
        if pid is None:
            pid = self._phases[phase] = len(self._phases) + 1
            self._put({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": phase}})
        event = {"name": name, "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur}
        self._put({**event, "args": args} if args else event)
        self.count += 1
        self.last = max(self.last, ts + dur)

    def finish(self, zero_us: float) -> None:
        """Write the end of the file, and its zero in epoch microseconds."""
        self.open()
        self._file.write(b"\n]\n")
        self._file.seek(self._zero_at)
        self._file.write(b"%d" % zero_us if zero_us == int(zero_us) else b"%.3f" % zero_us)

    def _put(self, record: dict[str, Any]) -> None:
        self._file.write(b",\n" + self._encoder.encode(record))


class ConvertedTimelines:
    """A timeline for each minute of one trace, by the ends of events.

    Parameters
    ----------
    path
        Where to write them; the number of the minute is appended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._timelines: dict[int, ConvertedTimeline] = {}
        self._open: dict[int, ConvertedTimeline] = {}  # the one opened last is the last

    def close(self) -> None:
        """Close all files."""
        for timeline in self._open.values():
            timeline.close()

    @property
    def count(self) -> int:
        """The number of events."""
        return sum(timeline.count for timeline in self._timelines.values())

    def add(
        self, phase: str, name: str, ts: float, dur: float, tid: int | str, args: dict[str, Any]
    ) -> None:
        """Append an event; see `ConvertedTimeline.add`.

        Raises
        ------
        NotUsedError
            If there are events in too many minutes.
        """
        self._timeline(int((ts + dur) // MINUTE_US)).add(phase, name, ts, dur, tid, args)

    def finish(self, zero_us: float) -> Iterator[tuple[Path, float]]:
        """Write the ends of the files; yield the path of each, and the end of its last event."""
        for _, timeline in sorted(self._timelines.items()):
            timeline.finish(zero_us)
            timeline.close()
            yield timeline.path, timeline.last

    def _timeline(self, minute: int) -> ConvertedTimeline:
        timeline = self._open.get(minute)
        if timeline is not None:
            return timeline
        if minute not in self._timelines:
            if len(self._timelines) >= _MOST_MINUTES:
                raise NotUsedError(f"there are events in more than {_MOST_MINUTES} minutes")
            path = self._path.with_name(f"{self._path.name}.{minute}")
            self._timelines[minute] = ConvertedTimeline(path)
        timeline = self._open[minute] = self._timelines[minute]
        timeline.open()
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return timeline
