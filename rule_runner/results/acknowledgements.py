"""Acknowledgements: who has seen or muted which findings of a trial, why, and until when."""

import enum
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from rule_core.exceptions import SMDebugError
from rule_core.storage.base import ObjectNotFoundError
from rule_core.storage.publish import publish
from rule_core.storage.uri import is_s3, open_output, open_store
from rule_runner.errors import OutputError, reason_of, translated, unreadable
from rule_runner.escape import printable
from rule_runner.logs import get_logger
from rule_runner.results.durable_files import JsonLines, open_regular, output_errors
from rule_runner.results.file_names import ACKNOWLEDGEMENTS
from rule_runner.results.json_text import dump_json

_log: Final = get_logger(__name__)


MOST_BYTES: Final = 1 << 20  # of the file
_S3_LOCK: Final = threading.Lock()
_SKIPPED: Final = 1000  # lines that are remembered as logged

_Text = Annotated[str, Meta(min_length=1, max_length=1000)]


class AcknowledgementKind(enum.StrEnum):
    """What somebody said about findings.

    ``acknowledged`` findings count, and are shown as seen. ``muted`` ones do not count: they
    neither fail a command nor alert. ``withdrawn`` takes back what was said before.
    """

    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"
    WITHDRAWN = "withdrawn"


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody said about one finding, about all findings of a rule job, or of an incident.

    Attributes
    ----------
    finding
        The ID of the finding, from `rule_runner.results.issues.acknowledged.finding_ids`.
    rule
        The name of the rule job, for all of its findings: those to come, too.
    incident
        The name of the rule job with the root cause of the incident, for all findings of it and of
        what may follow from it: those to come, too. Exactly one of the three is recorded.
    who
        The name of the person or program.
    at
        When it was said.
    until
        The last day on which it holds, in UTC; None: no end.

    Raises
    ------
    ValueError
        If both of a finding and a rule job are set, or neither.
    """

    kind: AcknowledgementKind
    who: _Text
    reason: _Text
    at: Annotated[datetime, Meta(tz=True)]
    finding: _Text | None = None
    rule: _Text | None = None
    incident: _Text | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if (self.finding is None) == (self.rule is None and self.incident is None):
            raise ValueError("an acknowledgement must have a finding, a rule or an incident")

    @property
    def is_muted(self) -> bool:
        """Whether the findings do not count."""
        return self.kind == AcknowledgementKind.MUTED

    def has_expired(self, today: date) -> bool:
        """Return whether it no longer holds."""
        return self.until is not None and self.until < today


def append_acknowledgement(output: str | Path, acknowledgement: Acknowledgement) -> None:
    """Add an acknowledgement to those in the output folder of a trial.

    In a local folder it is on disk when this returns, and several processes may append at once.
    In S3 the object is replaced: several threads may append at once, but only one process.

    Parameters
    ----------
    output
        The output folder of the trial's evaluation, or its ``s3://`` address.

    Raises
    ------
    OutputError
        If it cannot be written.
    ValueError
        If a text of the acknowledgement is empty or too long.
    """
    msgspec.convert(msgspec.to_builtins(acknowledgement), Acknowledgement)  # checks its texts
    line = dump_json(acknowledgement)
    if is_s3(output):
        with _S3_LOCK:
            _append_s3(str(output), line)
    else:
        _append_local(Path(output) / ACKNOWLEDGEMENTS, line)


def _append_local(path: Path, line: str) -> None:
    with output_errors(path):
        lock = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        with output_errors(path):
            fcntl.flock(lock, fcntl.LOCK_EX)
        with JsonLines(path) as lines:
            _check_size(str(path), lines.size + len(line))
            lines.append(line, durable=True)
    finally:
        os.close(lock)


def _append_s3(output: str, line: str) -> None:
    place = f"{output.rstrip('/')}/{ACKNOWLEDGEMENTS}"
    content = _read(output)
    before = content[: content.rfind(b"\n") + 1]  # the complete lines
    _check_size(place, len(before) + len(line))
    problem, causes = f"Cannot write {place!r}: ", (SMDebugError, OSError)
    with translated(OutputError, *causes, before=problem, after=".", words=reason_of):
        publish(open_output(output), ACKNOWLEDGEMENTS, before, line.encode() + b"\n")


def _check_size(place: str, size: int) -> None:
    if size > MOST_BYTES:
        raise OutputError(
            f"{place!r} is full: it holds {MOST_BYTES} bytes. Remove the lines that have expired."
        )


def read_acknowledgements(output: str | Path) -> list[Acknowledgement]:
    """Return the acknowledgements in the output folder of a trial, the oldest first.

    A line that is cut off or no acknowledgement is skipped, and logged once.

    Raises
    ------
    OutputError
        If the file is there and cannot be read.
    """
    lines = _read(str(output)).split(b"\n")
    return [*_decoded(lines, f"{str(output).rstrip('/')}/{ACKNOWLEDGEMENTS}")]


def _decoded(lines: Iterable[bytes], place: str) -> Iterator[Acknowledgement]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=Acknowledgement)
        except (msgspec.MsgspecError, ValueError, RecursionError) as err:
            _log_skipped(place, number, printable(err))


@lru_cache(maxsize=_SKIPPED)
def _log_skipped(place: str, line: int, reason: str) -> None:
    """Log a skipped line, once in a process, which may read it every few seconds."""
    _log.warning("acknowledgement_skipped", place=place, line=line, reason=reason)


def _read(output: str) -> bytes:
    """Return the content of the file; b"" if there is none."""
    return _read_s3(output) if is_s3(output) else _read_local(Path(output) / ACKNOWLEDGEMENTS)


def _read_local(path: Path) -> bytes:
    with (
        unreadable(f"Acknowledgements {str(path)!r}", OutputError, OSError, ValueError),
        suppress(FileNotFoundError, NotADirectoryError),
        os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream,
    ):
        return stream.read(2 * MOST_BYTES)
    return b""


def _read_s3(output: str) -> bytes:
    with (
        unreadable(f"Acknowledgements of {output!r}", OutputError, SMDebugError),
        suppress(ObjectNotFoundError),
    ):
        return bytes(open_store(output).read(ACKNOWLEDGEMENTS))
    return b""


def active(acknowledgements: Iterable[Acknowledgement], now: datetime) -> list[Acknowledgement]:
    """Return the acknowledgements that hold at a time: the last on each of their subjects.

    Those that were withdrawn or have expired are left out.
    """
    today = now.astimezone(UTC).date()
    last = {(entry.finding, entry.rule, entry.incident): entry for entry in acknowledgements}
    return [
        entry
        for entry in last.values()
        if entry.kind != AcknowledgementKind.WITHDRAWN and not entry.has_expired(today)
    ]


def mark_of(
    acknowledgements: Iterable[Acknowledgement], rule: str, finding: str
) -> Acknowledgement | None:
    """Return what was said about a finding; a mute goes before an acknowledgement.

    Parameters
    ----------
    acknowledgements
        Those that hold; see `active`.
    rule
        The name of the rule job.
    finding
        The ID of the finding; "" for the rule job itself.
    """
    fitting = [
        entry
        for entry in acknowledgements
        if entry.rule == rule or (finding and entry.finding == finding)
    ]
    return min(
        fitting, key=lambda entry: (not entry.is_muted, entry.rule is not None), default=None
    )
