"""Delivery: sends the events of the outbox to one sink, in a separate thread."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Final

from rule_core.clock import SystemClock, jittered, pause_after
from rule_core.failures import attempt
from rule_runner.errors import OutputError, counted
from rule_runner.logs import get_logger
from rule_runner.notify.event import Event
from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.notify.sinks import EventSink, Refused, Sent, SinkError
from rule_runner.results.cursors import Cursor
from rule_runner.results.file_names import DEAD_LETTERS

_log: Final = get_logger(__name__)

DEADLINE_S: Final = 30.0  # for the rest when an evaluation is over
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 30.0
LAST_PAUSE_S: Final = 2.0  # the longest pause while closing
STOP_POLL_S: Final = 0.1
BATCH_SIZE: Final = 100  # events that a sink gets at once


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Events that one sink did not take.

    Attributes
    ----------
    sink
        Its label.
    unsent
        Number of events that stay in the outbox and can be sent again.
    refused
        Number of events that the receiver refused for good.
    reason
        The reason for the last event.
    last_refusal
        The reason of the last refusal, if it differs from `reason`.
    """

    sink: str
    unsent: int
    refused: int
    reason: str
    last_refusal: str = ""

    def sentence(self, folder: str) -> str:
        """Return a message for users; `folder` is the output folder of the evaluation."""
        reason = self.reason.rstrip(".")
        command = f"rule-runner events replay {folder!r} --sink {self.sink!r}"
        if not self.unsent:
            return f"{self.refusal} Send them again with: {command} --refused."
        refused = f" and refused {counted(self.refused, 'event')} for good" if self.refused else ""
        return (
            f"Sink {self.sink!r} did not take {counted(self.unsent, 'event')}{refused}: {reason}. "
            f"Send them with: {command}."
        )

    @property
    def refusal(self) -> str:
        """The message about refused events, without the folder; "" without any."""
        if not self.refused:
            return ""
        return (
            f"Sink {self.sink!r} refused {counted(self.refused, 'event')} for good, stored in "
            f"{DEAD_LETTERS!r}: {(self.last_refusal or self.reason).rstrip('.')}."
        )


class Delivery:
    """Sends the events after its cursor to one sink, in order; starts at once.

    The cursor moves only when the sink has taken an event, so that each is sent at least once.
    After a failure the sink is tried again, after a pause that grows up to `LONGEST_PAUSE_S`.

    Parameters
    ----------
    outbox
        The source of events: those it holds, and those that `notify` reports.
    again
        Whether to send all events, regardless of the cursor.
    random_part
        Returns random numbers from 0 to 1; None: `random.random`.
    """

    def __init__(
        self,
        outbox: Outbox,
        sink: EventSink,
        *,
        again: bool = False,
        random_part: Callable[[], float] | None = None,
    ) -> None:
        self._sink = sink
        self._path = outbox.path
        self._dead_letters = outbox.dead_letters
        self._cursor = Cursor(outbox.folder, sink.name)
        self._position = 0 if again else self._cursor.read()
        self._cursor.write(self._position)  # so that a replay finds this folder
        self._end = outbox.size
        self._random_part = random_part
        self._changed = threading.Condition()
        self._finishing = self._over = False
        self._refused = self.delivered = 0
        self._failure: SinkError | None = None
        self._refusal = ""
        self._thread = threading.Thread(target=self._run, name=f"sink {sink.name}", daemon=True)
        self._thread.start()

    def notify(self, end: int) -> None:
        """Record that events up to byte `end` of the outbox are on disk."""
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def close_input(self) -> None:
        """Record that no more events will come."""
        with self._changed:
            self._finishing = True
            self._changed.notify_all()

    def join(self, seconds: float) -> bool:
        """Wait until all events are sent; return whether they are."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> Undelivered | None:
        """Stop, and return what was not delivered; the cursor no longer moves."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
            position, end = self._position, self._end
        unsent = sum(1 for _ in read_events(self._path, position, end)) if position < end else 0
        if not (unsent or self._refused):
            return None
        failure = str(self._failure or "it did not answer in time")
        reason, last_refusal = (failure, self._refusal) if unsent else (self._refusal, "")
        return Undelivered(self._sink.label, unsent, self._refused, reason, last_refusal)

    def _run(self) -> None:
        """Send until the input is closed and all is sent."""
        failures = 0
        while self._wait(failures):
            failures = 0 if self._deliver() else failures + 1

    def _wait(self, failures: int) -> bool:
        """Wait after failures, then for events; return whether there are any."""
        pause = pause_after(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        with self._changed:
            if failures and self._finishing:
                if self._failure is not None and not self._failure.transient:
                    return False
                last = jittered(min(pause, LAST_PAUSE_S), self._random_part)
                self._changed.wait_for(lambda: self._over, last)
            elif failures:
                pause = jittered(pause, self._random_part)
                self._changed.wait_for(lambda: self._over or self._finishing, pause)
            self._changed.wait_for(
                lambda: self._over or self._finishing or self._position < self._end
            )
            return self._position < self._end and not self._over

    def _deliver(self) -> bool:
        """Send the next events once; return whether the sink took some without a failure."""
        sent = attempt(self._send, _sink_error)  # a sink never changes the verdict
        if isinstance(sent, SinkError):
            self._fail(sent)
            return False
        if sent.failure or not sent.done:
            self._fail(SinkError(sent.failure or "it took no event", transient=True))
            return False
        self._failure = None
        return True

    def _send(self) -> Sent:
        batch = [*islice(read_events(self._path, self._position, self._end), BATCH_SIZE)]
        sent = self._sink.send([event for _, event in batch])
        if sent.done:
            self._move(sent, batch[: sent.done])
        return sent

    def _move(self, sent: Sent, done: Sequence[tuple[int, Event]]) -> None:
        """Move the cursor past events; refused ones become dead letters first.

        Raises
        ------
        OutputError
            If dead letters cannot be written; the cursor does not move then.
        """
        position = done[-1][0]
        with self._changed:
            if self._over:  # another process may own the outbox by now
                return
            self._add_dead_letters(sent.refused, {str(event["id"]): event for _, event in done})
            self._position = position
            self._refused += len(sent.refused)
            self.delivered += sent.done - len(sent.refused)
            try:
                self._cursor.write(position)
            except OutputError as err:  # after a crash they are sent once more
                _log.warning("cursor_not_written", sink=self._sink.name, reason=str(err))

    def _add_dead_letters(self, refused: Sequence[Refused], events: Mapping[str, Event]) -> None:
        for refusal in refused:
            _log.warning("event_refused", sink=self._sink.name, **asdict(refusal))
            self._refusal = refusal.reason
        if refused:
            letters = [(events[refusal.event_id], refusal.reason) for refusal in refused]
            self._dead_letters.add(self._sink.name, letters)

    def _fail(self, failure: SinkError) -> None:
        """Record a failure; log each reason once."""
        if str(self._failure) != str(failure):
            _log.warning("sink_failed", sink=self._sink.name, reason=str(failure))
        self._failure = failure


def _sink_error(err: Exception) -> SinkError:
    """Return the failure of a sink that raised an exception, without its traceback."""
    text = str(err) if isinstance(err, SinkError | OutputError) else repr(err)
    return SinkError(text, transient=isinstance(err, SinkError) and err.transient)


def drain(
    deliveries: Sequence[Delivery],
    seconds: float,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Undelivered]:
    """Close deliveries, and return what was not delivered.

    Parameters
    ----------
    seconds
        Time limit for all of them together.
    stopped
        Returns whether to stop waiting.
    """
    clock = SystemClock()
    end = clock.monotonic() + seconds
    for delivery in deliveries:
        delivery.close_input()
    for delivery in deliveries:
        while not delivery.join(max(0.0, min(STOP_POLL_S, end - clock.monotonic()))):
            if stopped() or clock.monotonic() >= end:
                break
    undelivered = [delivery.close() for delivery in deliveries]
    return [remainder for remainder in undelivered if remainder is not None]
