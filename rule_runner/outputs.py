"""Outputs: the folder of a rule job and the outbox of its events, both safe across crashes."""

import os
import unicodedata
from collections.abc import Iterable, Sequence
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
    write_atomically,
)
from rule_runner.errors import OutputError, UsageError
from rule_runner.events import COMPLETED, Event, RuleState
from rule_runner.finding_ids import FindingIds
from rule_runner.measurements import MeasurementsRecord
from rule_runner.results import Evidence, RuleResult, dump_json
from rule_runner.sinks import EventSink, send_safely
from rule_runner.status import RuleStatus

RESULT: Final = "rule_result.json"
FINDINGS: Final = "findings.jsonl"
MEASUREMENTS: Final = "measurements.json"
EVENTS: Final = "events.jsonl"
CURSOR: Final = "cursor-"
NAME_LIMIT: Final = 255  # bytes of a file name

_OVERWRITE: Final = "Choose another folder, or use --overwrite."


def safe_name(name: str) -> str:
    """Return `name` if it can name a folder inside the output folder.

    Raises
    ------
    UsageError
        If it is empty, longer than 255 bytes, begins with a dot, or holds a slash, a control
        character or a lone surrogate.
    """
    odd = any(char == "/" or unicodedata.category(char) in {"Cc", "Cs"} for char in name)
    if not name or name.startswith(".") or odd or len(name.encode()) > NAME_LIMIT:
        msg = (
            "Name of a rule job must be 1 to 255 bytes, without '/' and control characters and "
            f"not beginning with '.', got {name!r}."
        )
        raise UsageError(msg)
    return name


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with output_errors(path):
            path.unlink(missing_ok=True)


class _Recorded(msgspec.Struct):
    id: str


class _Begun(msgspec.Struct):
    fingerprint: str
    ended_at: str | None


class OutputFolder(Closing):
    """The output folder of one rule job, locked until `close`.

    ``rule_result.json`` is replaced as a whole, ``findings.jsonl`` grows. A folder left by a
    crash of the same rule job is taken up again: the job is walked from its start, and what is
    already recorded is not recorded twice.

    Parameters
    ----------
    path
        The folder; made with its parents.
    fingerprint
        `rule_runner.results.fingerprint` of the rule job.
    overwrite
        Whether our files of an earlier evaluation there are removed; no other file is.
    reopen
        Whether a rule job that has ended is taken up again: another of its evaluation has not.

    Attributes
    ----------
    resumed
        Whether the folder holds an unfinished evaluation of this rule job.

    Raises
    ------
    OutputError
        If the folder cannot be used, is in use, or holds another or an ended evaluation.
    """

    def __init__(
        self, path: Path, fingerprint: str, *, overwrite: bool = False, reopen: bool = False
    ) -> None:
        self.path = path
        self._fingerprint = fingerprint
        make_folder(path)
        with ExitStack() as stack:
            stack.callback(FolderLock(path, "lock").release)
            if overwrite:
                _remove(path / name for name in (RESULT, FINDINGS, MEASUREMENTS))
            self.resumed = self._resumable(reopen=reopen)
            self._findings = JsonLines(path / FINDINGS)
            stack.callback(self._findings.close)
            self._recorded = self._recorded_ids()
            self._open = stack.pop_all()
        self._ids = FindingIds(fingerprint)

    def _resumable(self, *, reopen: bool) -> bool:
        path = self.path / RESULT
        try:
            with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
                begun = msgspec.json.decode(stream.read(), type=_Begun)
        except FileNotFoundError:
            return False
        except (OSError, msgspec.DecodeError) as err:
            msg = f"{str(path)!r} is not a result that can be read. {_OVERWRITE}"
            raise OutputError(msg) from err
        if begun.fingerprint != self._fingerprint:
            msg = (
                f"Output folder {str(self.path)!r} holds another evaluation: its rule, "
                f"parameters, trial or range differ. {_OVERWRITE}"
            )
            raise OutputError(msg)
        if begun.ended_at is not None and not reopen:
            msg = f"Output folder {str(self.path)!r} holds an ended evaluation. {_OVERWRITE}"
            raise OutputError(msg)
        return True

    def _recorded_ids(self) -> set[str]:
        recorded = {finding.id for _, finding in self._findings.read(_Recorded)}
        if recorded and not self.resumed:
            msg = f"Output folder {str(self.path)!r} has findings without a result. {_OVERWRITE}"
            raise OutputError(msg)
        return recorded

    def write_result(self, result: RuleResult) -> None:
        """Replace ``rule_result.json``; once at the start, so that a crash can be resumed."""
        write_atomically(self.path / RESULT, dump_json(result, indent=2) + "\n")

    def write_measurements(self, record: MeasurementsRecord) -> None:
        """Replace ``measurements.json``."""
        write_atomically(self.path / MEASUREMENTS, dump_json(record) + "\n")

    def append_finding(self, evidence: Evidence) -> bool:
        """Add `evidence` to ``findings.jsonl``; steps come in ascending order.

        Returns
        -------
        bool
            False if an earlier, crashed evaluation had recorded it.
        """
        finding_id = self._ids.next(evidence)
        if finding_id in self._recorded:
            return False
        record = {"id": finding_id} | msgspec.to_builtins(evidence)
        self._findings.append(dump_json(record))
        return True

    def close(self) -> None:
        """Close the files and give the folder free."""
        self._open.close()


class _State(msgspec.Struct, rename="pascal"):
    rule_configuration_name: str
    rule_evaluation_status: RuleStatus
    status_details: str | None = None


class _Detail(msgspec.Struct, rename="pascal"):
    event_key: str
    event_sequence: int
    training_job_status: str = ""
    debug_rule_evaluation_statuses: list[_State] = []


class _Head(msgspec.Struct):
    detail: _Detail


class Outbox(Closing):
    """``events.jsonl``: an event is on disk before it is sent, and is sent at least once.

    One outbox serves all rule jobs of one evaluation. News that it holds already are not
    written again; what a sink had not taken when the process ended is sent with the next
    `publish`. Locked until `close`.

    Parameters
    ----------
    folder
        Made with its parents.
    sinks
        Where events go.
    overwrite
        Whether the events of an earlier evaluation are removed.

    Attributes
    ----------
    next_sequence
        ``EventSequence`` of the next event; goes on after a restart.
    told
        Where each rule job stood, by its name, when the folder was opened.
    told_ended
        Whether it was told by then that the training job had ended.

    Raises
    ------
    OutputError
        If the folder cannot be used or is in use.
    """

    def __init__(
        self, folder: Path, sinks: Sequence[EventSink] = (), *, overwrite: bool = False
    ) -> None:
        make_folder(folder)
        self._scratch = folder / SCRATCH
        self._sinks = sinks
        with ExitStack() as stack:
            stack.callback(FolderLock(folder, "events.lock").release)
            if overwrite:
                _remove([folder / EVENTS, *self._scratch.glob(f"{CURSOR}*")])
            self._events = JsonLines(folder / EVENTS)
            stack.callback(self._events.close)
            heads = [head.detail for _, head in self._events.read(_Head)]
            self._open = stack.pop_all()
        self._keys = {head.event_key for head in heads}
        self.told_ended = any(head.training_job_status == COMPLETED for head in heads)
        self.told = {
            one.rule_configuration_name: RuleState(
                one.rule_configuration_name, one.rule_evaluation_status, one.status_details
            )
            for head in heads
            for one in head.debug_rule_evaluation_statuses
        }
        self.next_sequence = max((head.event_sequence for head in heads), default=0) + 1
        self._cursors = {sink.name: self._read_cursor(sink) for sink in sinks}

    def publish(self, event: Event) -> bool:
        """Record `event`, then send what each sink has not taken yet.

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
        new = head.event_key not in self._keys
        if new:
            self._events.append(text, durable=True)
            self._keys.add(head.event_key)
            self.next_sequence = head.event_sequence + 1
        for sink in self._sinks:
            self._deliver(sink)
        return new

    def _deliver(self, sink: EventSink) -> None:
        for end, event in self._events.read(Event, self._cursors[sink.name]):
            if not send_safely(sink, event):
                return
            self._cursors[sink.name] = end
            write_atomically(self._cursor(sink), f"{end}\n")

    def _cursor(self, sink: EventSink) -> Path:
        return self._scratch / f"{CURSOR}{safe_name(sink.name)}"

    def _read_cursor(self, sink: EventSink) -> int:
        try:
            return int(self._cursor(sink).read_text("ascii"))
        except (OSError, ValueError):  # not there, or not ours: send all again
            return 0

    def close(self) -> None:
        """Close the file and give the folder free."""
        self._open.close()
