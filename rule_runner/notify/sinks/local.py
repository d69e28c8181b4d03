"""Sinks on this machine: a text stream, and a file of JSON lines."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rule_runner.notify.event import Event
from rule_runner.notify.sinks.base import EventSink, Sent
from rule_runner.results.durable_files import output_errors, write_all
from rule_runner.results.json_text import dump_json


class StdoutSink(EventSink):
    """One JSON line per event on a text stream.

    Parameters
    ----------
    stream
        By default the current `sys.stdout`.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def send(self, events: Sequence[Event]) -> Sent:
        """Write `events`."""
        stream = self._stream or sys.stdout
        stream.writelines(f"{line}\n" for event in events for line in self.lines(event))
        stream.flush()
        return Sent(len(events))

    def lines(self, event: Event) -> list[str]:
        """Return the lines for an event."""
        return [dump_json(event)]


class FileSink(EventSink):
    """One JSON line per event at the end of a file; several evaluations may share it.

    Parameters
    ----------
    path
        The file; created if missing, in an existing folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, events: Sequence[Event]) -> Sent:
        """Add `events`; they are on disk when this returns."""
        data = "".join(f"{dump_json(event)}\n" for event in events).encode()
        with output_errors(self._path):
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
        return Sent(len(events))
