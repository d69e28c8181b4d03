"""ConvertedTimeline: writes the events of one trace as a timeline, whose zero is set at the end."""

from pathlib import Path
from typing import Any, Final, Self

import msgspec

from rule_core.profiler.traces.assembler import START

_ZERO_WIDTH: Final = 24  # characters


class ConvertedTimeline:
    """A timeline that is being written.

    Parameters
    ----------
    path
        Where to write it.

    Attributes
    ----------
    count
        The number of events.
    """

    def __init__(self, path: Path) -> None:
        self.count = 0
        self._path = path
        self._phases: dict[str, int] = {}
        self._encoder = msgspec.json.Encoder()
        self._file = path.open("wb")
        head = b'[\n{"name":"process_name","ph":"M","pid":0,"args":{"%s":' % START.encode()
        self._zero_at = len(head)
        self._file.write(head + b" " * _ZERO_WIDTH + b"}}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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

    def finish(self, zero_us: float) -> None:
        """Write the end of the file, and its zero in epoch microseconds."""
        self._file.write(b"\n]\n")
        self._file.seek(self._zero_at)
        self._file.write(b"%d" % zero_us if zero_us == int(zero_us) else b"%.3f" % zero_us)

    def _put(self, record: dict[str, Any]) -> None:
        self._file.write(b",\n" + self._encoder.encode(record))
