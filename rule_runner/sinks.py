"""Sinks: where events go from the outbox; a failing one is logged and changes no verdict."""

import sys
from typing import Final, Protocol, TextIO

import structlog

from rule_runner.events import Event
from rule_runner.results import dump_json

_log: Final = structlog.get_logger()


class EventSink(Protocol):
    """A receiver of events.

    An event comes at least once, in order; after a crash some come again, with the same ``id``.
    """

    @property
    def name(self) -> str:
        """Name of the sink, unique in one evaluation and fit for a file name."""
        ...

    def send(self, event: Event) -> None:
        """Deliver `event`, or raise: then it and those after it are sent again later.

        What the receiver will never take is logged by the sink and not raised, lest it hold
        up all that comes after it.
        """
        ...


class StdoutSink:
    """One JSON line per event on a text stream."""

    name: str = "stdout"

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def send(self, event: Event) -> None:
        """Write `event`; the stream of the moment is standard output unless another was given."""
        stream = self._stream or sys.stdout
        stream.write(dump_json(event) + "\n")
        stream.flush()


def send_safely(sink: EventSink, event: Event) -> bool:
    """Return whether `sink` took `event`; a failure is logged, never raised."""
    try:
        sink.send(event)
    except Exception as err:  # noqa: BLE001 - a sink never changes the verdict
        _log.warning("sink_failed", sink=sink.name, event_id=event["id"], reason=repr(err))
        return False
    return True
