"""Outbox: an event is on disk before anybody is sent it, and stays; cursors say who has it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from rule_runner.durable import (
    SCRATCH,
    Closing,
    FolderLock,
    JsonLines,
    make_folder,
    open_regular,
    output_errors,
    remove_files,
    write_atomically,
)
from rule_runner.errors import OutputError
from rule_runner.events import COMPLETED, Event, Progress, RuleState
from rule_runner.results import dump_json
from rule_runner.status import RuleStatus

EVENTS: Final = "events.jsonl"
CURSOR: Final = "cursor-"


class _State(msgspec.Struct, rename="pascal"):
    rule_configuration_name: str
    rule_evaluation_status: RuleStatus
    status_details: str | None = None
    steps_evaluated: int = 0
    last_step: int | None = None
    evaluation_lag_seconds: float = 0.0

    def told(self, *, profiler: bool) -> RuleState:
        """Return where a rule job stood."""
        progress = Progress(self.steps_evaluated, self.last_step, self.evaluation_lag_seconds)
        name, status = self.rule_configuration_name, self.rule_evaluation_status
        return RuleState(name, status, self.status_details, progress=progress, profiler=profiler)


class _Detail(msgspec.Struct, rename="pascal"):
    event_key: str
    event_sequence: int
    training_job_status: str = ""
    debug_rule_evaluation_statuses: list[_State] = []
    profiler_rule_evaluation_statuses: list[_State] = []

    def states(self) -> Iterator[RuleState]:
        """Yield where the rule jobs stood."""
        for one in self.debug_rule_evaluation_statuses:
            yield one.told(profiler=False)
        for one in self.profiler_rule_evaluation_statuses:
            yield one.told(profiler=True)


class _Head(msgspec.Struct):
    detail: _Detail


class Outbox(Closing):
    """``events.jsonl`` of one output folder, locked until `close`.

    One outbox serves all rule jobs of one evaluation. News that it holds already are not
    written again.

    Parameters
    ----------
    folder
        Made with its parents.
    overwrite
        Whether the events of an earlier evaluation are removed, and the cursors with them.

    Attributes
    ----------
    size
        Bytes of ``events.jsonl`` that are on disk for good.
    next_sequence
        ``EventSequence`` of the next event; goes on after a restart.
    told
        Where each rule job stands by the events that are there, by its name.
    told_ended
        Whether it has been told that the training job has ended.

    Raises
    ------
    OutputError
        If the folder cannot be used or is in use.
    """

    def __init__(self, folder: Path, *, overwrite: bool = False) -> None:
        make_folder(folder)
        self.folder = folder
        self.path = folder / EVENTS
        with ExitStack() as stack:
            stack.callback(FolderLock(folder, "events.lock").release)
            if overwrite:
                remove_files([self.path, *_cursors(folder)])
            self._events = JsonLines(self.path)
            stack.callback(self._events.close)
            heads = [head.detail for _, head in self._events.read(_Head)]
            self._open = stack.pop_all()
        self._keys: set[str] = set()
        self.told: dict[str, RuleState] = {}
        self.told_ended = False
        self.next_sequence = 1
        for head in heads:
            self._take(head)
        self.size = self._events.size

    def _take(self, head: _Detail) -> None:
        """Take note of an event that is on disk."""
        self._keys.add(head.event_key)
        self.told |= {one.configuration_name: one for one in head.states()}
        self.told_ended = self.told_ended or head.training_job_status == COMPLETED
        self.next_sequence = max(self.next_sequence, head.event_sequence + 1)

    def publish(self, event: Event) -> bool:
        """Record `event`; return when it is on disk.

        Returns
        -------
        bool
            False if the same news had been recorded before.

        Raises
        ------
        OutputError
            If it cannot be recorded.
        """
        text = dump_json(event)
        head = msgspec.json.decode(text, type=_Head).detail
        if head.event_key in self._keys:
            return False
        self._events.append(text, durable=True)
        self._take(head)
        self.size = self._events.size
        return True

    def close(self) -> None:
        """Close the file and give the folder free."""
        self._open.close()


def read_events(path: Path, start: int = 0, end: int | None = None) -> Iterator[tuple[int, Event]]:
    """Yield each event from byte `start` on, and the byte after its line.

    May be called while another thread or process adds events.

    Parameters
    ----------
    start
        0, or a byte after a line; any other is taken for 0.
    end
        The byte to end at; None is the end of the last whole line.

    Raises
    ------
    OutputError
        If the file cannot be read, or a line is not an event.
    """
    with output_errors(path), os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
        if start > 0:
            stream.seek(start - 1)
            if stream.read(1) != b"\n":
                start = 0
        stream.seek(max(start, 0))
        at = max(start, 0)
        for line in stream:
            at += len(line)
            if not line.endswith(b"\n") or (end is not None and at > end):
                return
            try:
                yield at, msgspec.json.decode(line, type=Event)
            except msgspec.DecodeError as err:
                msg = f"{str(path)!r} has a line that is not ours, got {line[:80]!r}."
                raise OutputError(msg) from err


class Cursor:
    """How far one sink has been sent the events of an output folder.

    Parameters
    ----------
    folder
        The output folder.
    sink
        Name of the sink.
    """

    def __init__(self, folder: Path, sink: str) -> None:
        self._path = folder / SCRATCH / f"{CURSOR}{sink}"

    def read(self) -> int:
        """Return the byte after the last event that the sink took; 0 if that is not known."""
        try:
            return max(0, int(self._path.read_text("ascii")))
        except (OSError, ValueError):  # not there, or not ours: send all again
            return 0

    def write(self, position: int) -> None:
        """Move it; it is on disk when this returns.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        write_atomically(self._path, f"{position}\n")


def feeds_sinks(folder: Path) -> bool:
    """Say whether it is this output folder whose events go to sinks."""
    return any(_cursors(folder))


def _cursors(folder: Path) -> Iterator[Path]:
    return (folder / SCRATCH).glob(f"{CURSOR}*")
