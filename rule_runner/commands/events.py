"""events: prints the events of an evaluation, or sends them again to sinks."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rule_runner.errors import EXIT_CLIENT, OutputError, UsageError, shortened
from rule_runner.escape import printable
from rule_runner.notify.delivery import Delivery, drain
from rule_runner.notify.event import Event, statuses
from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.notify.sinks import EventSink
from rule_runner.notify.sinks.spec import SINKS, parse_sinks, sinks_in
from rule_runner.results.cursors import Cursor, feeds_sinks
from rule_runner.results.durable_files import FolderLock
from rule_runner.results.file_names import EVENTS
from rule_runner.results.json_text import dump_json


def replay(folder: Path, texts: Sequence[str], *, again: bool, seconds: float) -> int:
    """Send events to the sinks that have not taken them; return the exit code.

    Parameters
    ----------
    folder
        The output folder of an evaluation of one rule or of several.
    texts
        Sinks as for `parse_sinks`; by default those of the environment.
    again
        Whether to send all events.
    seconds
        Time limit.

    Raises
    ------
    UsageError
        If no sink is given.
    OutputError
        If the folder has no events, or is in use by an evaluation.
    """
    sinks = _sinks(texts)
    with _locked_outbox(folder) as outbox:
        deliveries = [Delivery(outbox, sink, again=again) for sink in sinks]
        undelivered = drain(deliveries, seconds)
    for sink, delivery in zip(sinks, deliveries, strict=True):
        _print_message(f"Sink {sink.label!r} took {delivery.delivered} events.")
    for problem in undelivered:
        _print_message(problem.sentence(str(folder)))
    return EXIT_CLIENT if undelivered else 0


def _sinks(texts: Sequence[str]) -> list[EventSink]:
    names = texts or sinks_in(os.environ)
    if not names:
        raise UsageError(
            f"No sink was given: give --sink as for the evaluation, or set {SINKS} in the "
            "environment."
        )
    return parse_sinks(names, sys.stdout)


def replay_refused(folder: Path, texts: Sequence[str], *, seconds: float) -> int:
    """Send events to the sinks that refused them; return the exit code; see `replay`.

    Events that a sink takes are removed from its dead letters.
    """
    sinks = _sinks(texts)
    code = 0
    with _locked_outbox(folder) as outbox:
        letters = outbox.dead_letters
        for sink in sinks:
            events = [letter.event for letter in letters.read() if letter.sink == sink.name]
            ids, reason = _resend(sink, events, seconds)
            letters.keep(sink.name, ids)
            _print_message(f"Sink {sink.label!r} took {len(events) - len(ids)} events.")
            if ids:
                code = EXIT_CLIENT
                path = str(letters.path)
                _print_message(
                    f"Sink {sink.label!r} did not take {len(ids)}, kept in {path!r}: {reason}."
                )
    return code


def _resend(sink: EventSink, events: Sequence[Event], seconds: float) -> tuple[set[object], str]:
    """Send events; return the ids of events that were not taken, and the reason."""
    with TemporaryDirectory(prefix="rule-runner-") as scratch, Outbox(Path(scratch)) as outbox:
        for event in events:
            outbox.publish(event)
        undelivered = drain([Delivery(outbox, sink)], seconds)
        waiting = read_events(outbox.path, Cursor(outbox.folder, sink.name).read())
        ids = {event["id"] for _, event in waiting}
        ids |= {letter.event["id"] for letter in outbox.dead_letters.read()}
    return ids, undelivered[0].reason.rstrip(".") if undelivered else ""


@contextmanager
def _locked_outbox(folder: Path) -> Iterator[Outbox]:
    """Open the events of an evaluation that has ended."""
    holder = outbox_of(folder)
    with FolderLock(holder), Outbox(holder) as outbox:
        yield outbox


def _print_message(text: str) -> None:
    print(printable(text), file=sys.stderr)


def outbox_of(folder: Path) -> Path:
    """Return the folder whose events go to sinks: `folder`, or one inside.

    In an evaluation of version 0.1.0, every rule's folder has all events, except that a crash may
    lose the last one in the others.

    Raises
    ------
    OutputError
        If the folder has no events.
    """
    if (folder / EVENTS).is_file():
        return folder
    folders = sorted(path.parent for path in folder.glob(f"*/{EVENTS}") if path.is_file())
    if not folders:
        raise OutputError(
            f"Folder {str(folder)!r} has no events. Give the output folder of an evaluation."
        )
    return max(folders, key=lambda path: (feeds_sinks(path), (path / EVENTS).stat().st_size))


def show_events(folder: Path, form: str) -> None:
    """Print the events of an evaluation, one line each, as text or as JSON."""
    for _, event in read_events(outbox_of(folder) / EVENTS):
        for line in [dump_json(event)] if form == "json" else _lines(event):
            print(line)


def _lines(event: Event) -> Iterator[str]:
    """Yield the lines for an event."""
    detail: Any = event["detail"]
    rules = statuses(detail)
    by_name = {rule["RuleConfigurationName"]: rule["RuleEvaluationStatus"] for rule in rules}
    names = detail.get("ChangedRules", [*by_name])
    changed = [f"{name} {by_name[name]}" for name in names if name in by_name]
    change = shortened(changed) or f"training {detail['TrainingJobStatus']}"
    yield printable(f"{detail['EventSequence']:>4}  {event['time']}  {change}")
