"""Outbox: every event is on disk before any sink gets it."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rule_core.failures import OnError
from rule_runner.errors import OutputError, restated
from rule_runner.notify.dead_letters import DeadLetters
from rule_runner.notify.event import COMPLETED, DecodedEvent, Event, EventDetail, RuleState
from rule_runner.results.durable_files import (
    Closing,
    JsonLines,
    make_folder,
    open_regular,
    output_errors,
)
from rule_runner.results.file_names import EVENTS
from rule_runner.results.json_text import dump_json


class Outbox(Closing):
    """``events.jsonl`` of one output folder, which is locked.

    One outbox serves all rule jobs of one evaluation. An event with a known key is not
    written again.

    Parameters
    ----------
    folder
        Created with its parents if missing.

    Attributes
    ----------
    dead_letters
        Events that sinks refused for good.
    size
        Bytes of ``events.jsonl`` that are safely on disk.
    next_sequence
        ``EventSequence`` of the next event; continues after a restart.
    published
        The last published state of each rule job, by its name.
    published_end
        Whether an event reported the end of the training job.

    Raises
    ------
    OutputError
        If the events cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder
        self.path = folder / EVENTS
        self.dead_letters = DeadLetters(folder)
        self._events = JsonLines(self.path)
        self._keys: set[str] = set()
        self.published: dict[str, RuleState] = {}
        self.published_end = False
        self.next_sequence = 1
        with OnError(self.close):
            for event in self._events.read(DecodedEvent):
                self._add(event.detail)
        self.size = self._events.size

    def _add(self, detail: EventDetail) -> None:
        """Record the content of an event that is on disk."""
        self._keys.add(detail.event_key)
        self.published |= {state.configuration_name: state for state in detail.states()}
        self.published_end = self.published_end or detail.training_job_status == COMPLETED
        self.next_sequence = max(self.next_sequence, detail.event_sequence + 1)

    def publish(self, event: Event) -> bool:
        """Record `event`; return when it is on disk.

        Returns
        -------
        bool
            False if an event with the same key is recorded already.

        Raises
        ------
        OutputError
            If it cannot be recorded.
        """
        text = dump_json(event)
        detail = msgspec.json.decode(text, type=DecodedEvent).detail
        if detail.event_key in self._keys:
            return False
        self._events.append(text, durable=True)
        self._add(detail)
        self.size = self._events.size
        return True

    def close(self) -> None:
        """Close the file."""
        self._events.close()


def read_events(path: Path, start: int = 0, end: int | None = None) -> Iterator[tuple[int, Event]]:
    """Yield each event from byte `start`, with the position after its line.

    May be called while another thread or process adds events.

    Parameters
    ----------
    start
        0, or the position after a line; any other position counts as 0.
    end
        The position to end at; None is the end of the last complete line.

    Raises
    ------
    OutputError
        If the file cannot be read, or a line is not an event.
    """
    if not path.exists():  # it is created with the first event
        return
    with output_errors(path), os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
        if start > 0:
            stream.seek(start - 1)
            if stream.read(1) != b"\n":
                start = 0
        stream.seek(max(start, 0))
        position = max(start, 0)
        for line in stream:
            position += len(line)
            if not line.endswith(b"\n") or (end is not None and position > end):
                return
            problem = f"{str(path)!r} has a line that is not an event, got {line[:80]!r}."
            with restated(OutputError, msgspec.DecodeError, sentence=problem):
                event = msgspec.json.decode(line, type=Event)
            yield position, event
