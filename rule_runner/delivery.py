"""Delivery: sends one sink what the outbox holds, on a thread of its own."""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import structlog

from rule_runner.errors import OutputError
from rule_runner.outbox import Cursor, Outbox, read_events
from rule_runner.sinks import EventSink, Sent, SinkError
from smdebug.core.clock import Clock, SystemClock

_log: Final = structlog.get_logger()

DEADLINE_S: Final = 30.0  # for what is left when an evaluation is over
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 30.0
LAST_PAUSE_S: Final = 2.0  # the longest while the end is waited for
STOP_LOOK_S: Final = 0.1
TOGETHER: Final = 100  # events that a sink is shown at once


@dataclass(frozen=True, slots=True)
class Undelivered:
    """What one sink was not brought to take.

    Attributes
    ----------
    sink
        Its label.
    left
        Number of events that stay in the outbox and can be sent again.
    refused
        Number of events that its receiver will never take.
    reason
        Why, of the last one.
    """

    sink: str
    left: int
    refused: int
    reason: str

    def sentence(self, folder: str) -> str:
        """Say it; `folder` is the output folder of the evaluation."""
        reason = self.reason.rstrip(".")
        if not self.left:
            return f"Sink {self.sink!r} refused {_events(self.refused)} for good: {reason}."
        refused = f" and refused {_events(self.refused)} for good" if self.refused else ""
        return (
            f"Sink {self.sink!r} was not sent {_events(self.left)}{refused}: {reason}. Send them "
            f"with: rule-runner events replay {folder!r} --sink {self.sink!r}."
        )


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


class Delivery:
    """Sends one sink the events behind its cursor, in order; begins at once.

    The cursor moves only when the sink has taken an event, so that each is sent at least once.
    A sink that fails is tried again after a pause that grows up to `LONGEST_PAUSE_S`.

    Parameters
    ----------
    outbox
        Whose events are sent: those that are there, and those of which `wake` tells.
    again
        Whether all are sent, whatever the cursor says.
    random_part
        Gives numbers from 0 to 1.
    """

    def __init__(
        self,
        outbox: Outbox,
        sink: EventSink,
        *,
        again: bool = False,
        random_part: Callable[[], float] = random.random,
    ) -> None:
        self._sink = sink
        self._path = outbox.path
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

    def wake(self, end: int) -> None:
        """Take note that events up to byte `end` of the outbox are on disk."""
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def finish(self) -> None:
        """Take note that no more events will come."""
        with self._changed:
            self._finishing = True
            self._changed.notify_all()

    def join(self, seconds: float) -> bool:
        """Wait until all that can be sent has been sent; say whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> Undelivered | None:
        """Stop, and return what was not delivered; the cursor stays where it is from now on."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
            position, end = self._position, self._end
        left = sum(1 for _ in read_events(self._path, position, end)) if position < end else 0
        if not (left or self._refused):
            return None
        failure = str(self._failure or "it did not answer in time")
        reason = failure if left else self._refusal
        return Undelivered(self._sink.label, left, self._refused, reason)

    def _run(self) -> None:
        """Send until all is sent and no more will come."""
        pause = 0.0
        while self._wait(pause):
            pause = 0.0 if self._deliver() else min(2 * pause or FIRST_PAUSE_S, LONGEST_PAUSE_S)

    def _wait(self, pause: float) -> bool:
        """Wait for the end of a pause, then for something to send; say whether there is any."""
        drawn = 0.5 + self._random_part() / 2
        with self._changed:
            if pause and self._finishing:
                if self._failure is not None and not self._failure.transient:
                    return False
                self._changed.wait_for(lambda: self._over, min(pause, LAST_PAUSE_S) * drawn)
            elif pause:
                self._changed.wait_for(lambda: self._over or self._finishing, pause * drawn)
            self._changed.wait_for(
                lambda: self._over or self._finishing or self._position < self._end
            )
            return self._position < self._end and not self._over

    def _deliver(self) -> bool:
        """Send the next events once; say whether the sink did all it can at once."""
        try:
            found = [*islice(read_events(self._path, self._position, self._end), TOGETHER)]
            sent = self._sink.send([event for _, event in found])
        except Exception as err:  # noqa: BLE001 - a sink never changes the verdict
            text = str(err) if isinstance(err, SinkError | OutputError) else repr(err)
            self._fail(text, transient=isinstance(err, SinkError) and err.transient)
            return False
        if sent.done:
            self._move(sent, found[sent.done - 1][0])
        if sent.failure or not sent.done:
            self._fail(sent.failure or "it took nothing", transient=True)
            return False
        self._failure = None
        return True

    def _move(self, sent: Sent, position: int) -> None:
        """Take note that events need not be sent again."""
        for one in sent.refused:
            _log.warning(
                "event_refused", sink=self._sink.name, event_id=one.event_id, reason=one.reason
            )
            self._refusal = one.reason
        with self._changed:
            if self._over:  # the outbox may be another's by now
                return
            self._position = position
            self._refused += len(sent.refused)
            self.delivered += sent.done - len(sent.refused)
            try:
                self._cursor.write(position)
            except OutputError as err:  # after a crash they are sent once more
                _log.warning("cursor_not_written", sink=self._sink.name, reason=str(err))

    def _fail(self, reason: str, *, transient: bool) -> None:
        """Take note of a failure; say so once for each reason."""
        if str(self._failure) != reason:
            _log.warning("sink_failed", sink=self._sink.name, reason=reason)
        self._failure = SinkError(reason, transient=transient)


def drain(
    deliveries: Sequence[Delivery],
    seconds: float,
    *,
    stopped: Callable[[], bool] = lambda: False,
    clock: Clock | None = None,
) -> list[Undelivered]:
    """Let deliveries end, and return what was not delivered.

    Parameters
    ----------
    seconds
        How long to wait for all of them together.
    stopped
        Whether to wait no longer.
    """
    clock = clock or SystemClock()
    end = clock.monotonic() + seconds
    for one in deliveries:
        one.finish()
    for one in deliveries:
        while not one.join(max(0.0, min(STOP_LOOK_S, end - clock.monotonic()))):
            if stopped() or clock.monotonic() >= end:
                break
    return [found for one in deliveries if (found := one.close()) is not None]
