"""Replay: the events of an evaluation that is over, shown, or sent to sinks that lack them."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from rule_runner.delivery import Delivery, drain
from rule_runner.errors import EXIT_CLIENT, OutputError, UsageError
from rule_runner.events import Event, statuses
from rule_runner.outbox import EVENTS, Outbox, feeds_sinks, read_events
from rule_runner.results import dump_json
from rule_runner.show import printable
from rule_runner.sinks.parsing import SINKS, parse_sinks, sinks_of

_NAMES_SHOWN: Final = 5


def replay(folder: Path, texts: Sequence[str], *, again: bool, seconds: float) -> int:
    """Send sinks the events that they have not taken, and return the exit code.

    Parameters
    ----------
    folder
        The output folder of an evaluation of one rule or of several.
    texts
        Sinks as `parse_sinks` takes them; if there are none, those of the environment.
    again
        Whether they are sent all events.
    seconds
        How long that may take.

    Raises
    ------
    UsageError
        If there is no sink.
    OutputError
        If there are no events, or an evaluation is running there.
    """
    given = texts or sinks_of(os.environ)
    if not given:
        msg = (
            f"No sink was given: give --sink as for the evaluation, or set {SINKS} in the "
            "environment."
        )
        raise UsageError(msg)
    sinks = parse_sinks(given, sys.stdout)
    with closing(Outbox(outbox_of(folder))) as outbox:
        deliveries = [Delivery(outbox, sink, again=again) for sink in sinks]
        undelivered = drain(deliveries, seconds)
    for sink, delivery in zip(sinks, deliveries, strict=True):
        _say(f"Sink {sink.label!r} took {delivery.delivered} events.")
    for one in undelivered:
        _say(one.sentence(str(folder)))
    return EXIT_CLIENT if undelivered else 0


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)  # noqa: T201 - stdout may be a sink


def outbox_of(folder: Path) -> Path:
    """Return the folder, in `folder` or itself, whose events are those that go to sinks.

    Of several rules every folder has all events; a crash may cost the others the last one.

    Raises
    ------
    OutputError
        If there are no events.
    """
    if (folder / EVENTS).is_file():
        return folder
    found = sorted(path.parent for path in folder.glob(f"*/{EVENTS}") if path.is_file())
    if not found:
        msg = f"Folder {str(folder)!r} has no events. Give the output folder of an evaluation."
        raise OutputError(msg)
    return max(found, key=lambda one: (feeds_sinks(one), (one / EVENTS).stat().st_size))


def show_events(folder: Path, form: str) -> None:
    """Print the events of an evaluation, a line each, for people or as JSON."""
    for _, event in read_events(outbox_of(folder) / EVENTS):
        for line in [dump_json(event)] if form == "json" else _lines(event):
            print(line)  # noqa: T201 - stdout carries results


def _lines(event: Event) -> Iterator[str]:
    """Yield what people want to know of an event."""
    detail: Any = event["detail"]
    rules = statuses(detail)
    told = {rule["RuleConfigurationName"]: rule for rule in rules}
    names = detail.get("ChangedRules", [*told])
    changed = [f"{name} {told[name]['RuleEvaluationStatus']}" for name in names if name in told]
    more = len(changed) - _NAMES_SHOWN
    shown = ", ".join(changed[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    what = shown or f"training {detail['TrainingJobStatus']}"
    yield printable(f"{detail['EventSequence']:>4}  {event['time']}  {what}")
