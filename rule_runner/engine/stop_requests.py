"""Stop requests: the signals, stop files and time limits that end an evaluation early."""

import math
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import FrameType
from typing import Any, Final, Self

from rule_core.clock import Clock
from rule_runner.errors import EXIT_SIGNAL, EXIT_TEMPORARY, EXIT_TIMEOUT
from rule_runner.loading.private_folders import remove_private_folders
from rule_runner.results.durable_files import Closing

# Platforms kill a container some seconds after they request its end.
SIGNAL_GRACE_S: Final = 6.0
HANDLED: Final = (signal.SIGTERM, signal.SIGINT)
_LONGEST_TIME: Final = 100  # bytes


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why an evaluation stops: a sentence and an exit code."""

    text: str
    exit_code: int


PAUSED: Final = StopReason("Paused: others have their turn.", EXIT_TEMPORARY)


class StopRequests:
    """Decides whether to stop because of a signal, a stop file or a time limit, or to pause.

    Parameters
    ----------
    timeout
        Limit of the whole evaluation in seconds, from now on.
    idle_timeout
        Limit in seconds without progress.
    stop_files
        Files whose existence requests a stop: `stop_grace` seconds after the time in the file
        (whole seconds since the epoch), or at once if it holds anything else.
    pause_file
        A file whose existence requests a pause; None: there is none.

    Attributes
    ----------
    last_progress
        The time of the last progress, in seconds of the monotonic clock.
    """

    def __init__(
        self,
        clock: Clock,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        stop_files: Sequence[Path] = (),
        stop_grace: float = 60.0,
        pause_file: Path | None = None,
    ) -> None:
        self._clock = clock
        self._began = self.last_progress = clock.monotonic()
        self._timeout = timeout
        self._idle_timeout = idle_timeout
        self._stop_files = stop_files
        self._stop_grace = stop_grace
        self._pause_file = pause_file
        self._signal: StopReason | None = None
        self._stopped_at = math.inf

    def record_progress(self) -> None:
        """Record progress: new data of the trial, or a judged step."""
        self.last_progress = self._clock.monotonic()

    def by_signal(self, number: int) -> None:
        """Record a signal."""
        name = signal.Signals(number).name
        self._signal = self._signal or StopReason(
            f"Stopped by signal {name}.", EXIT_SIGNAL + number
        )

    @property
    def signalled(self) -> StopReason | None:
        """The first signal that was received; None if there was none."""
        return self._signal

    def reason(self) -> StopReason | None:
        """Return why to stop now, or None; see `idle` for the idle limit."""
        now = self._clock.monotonic()
        if self._signal is not None:
            return self._signal
        for file in self._stop_files:
            if self._requests_stop(file):
                return StopReason(f"Stopped by stop file '{file}'.", EXIT_TIMEOUT)
        if self._timeout is not None and now - self._began >= self._timeout:
            return StopReason(f"Stopped after {self._timeout:g} s (--timeout).", EXIT_TIMEOUT)
        return None

    @property
    def pauses(self) -> bool:
        """Whether a pause is requested."""
        return self._pause_file is not None and self._pause_file.exists()

    def seconds_left(self) -> float:
        """Return how many seconds waits for storage may take; negative once the stop is past."""
        now = self._clock.monotonic()
        if self.reason() is not None:
            self._stopped_at = min(self._stopped_at, now)
            return self._stopped_at - now
        return math.inf if self._timeout is None else self._began + self._timeout - now

    def idle(self, spare: float = 0.0) -> StopReason | None:
        """Return why to stop waiting for progress, or None; `spare` seconds extend the limit."""
        limit = self._idle_timeout
        if limit is None or self._clock.monotonic() - self.last_progress < limit + spare:
            return None
        text = f"Stopped after {limit:g} s without news of the trial (--idle-timeout)."
        return StopReason(text, EXIT_TIMEOUT)

    def _requests_stop(self, file: Path) -> bool:
        try:
            return self._clock.time() > int(_content(file)) + self._stop_grace
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            return True


def _content(file: Path) -> bytes:
    """Return the beginning of a file, without blocking on a pipe."""
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, _LONGEST_TIME)
    finally:
        os.close(fd)


@contextmanager
def signals_to(receive: Callable[[int], None], numbers: Iterable[int] = HANDLED) -> Iterator[None]:
    """Pass signals, by default SIGTERM and SIGINT, to a function inside the block."""

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        receive(number)

    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Signals(Closing):
    """Handles SIGTERM and SIGINT for a command, inside a ``with`` block.

    Before the evaluation a signal ends the command. During the evaluation it stops the evaluation,
    and afterwards it is only recorded. The process ends `SIGNAL_GRACE_S` after the first signal or
    at the second one, because a hanging rule cannot be interrupted otherwise.

    Attributes
    ----------
    number
        The first signal that was received; 0 if there was none.
    late
        Whether it was received after the evaluation.
    """

    def __init__(self) -> None:
        self.number = 0
        self.late = False
        self._receive: Callable[[int], None] = end_process
        self._end_at_once: Callable[[int], None] = end_process
        self._timer: Timer | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle) for number in HANDLED}
        return self

    def close(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._timer is not None:
            self._timer.cancel()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.receive(number)

    def receive(self, number: int) -> None:
        """Do what a signal does, also outside of a ``with`` block."""
        if self.number:
            self._end(number)
            return
        self.number = number
        self._timer = Timer(SIGNAL_GRACE_S, self._end, (number,))
        self._timer.daemon = True
        self._timer.start()
        self._receive(number)

    def _end(self, number: int) -> None:
        self._end_at_once(number)

    @contextmanager
    def evaluating(self, stops: StopRequests, end_at_once: Callable[[int], None]) -> Iterator[None]:
        """Pass signals to `stops` inside the block; `end_at_once` writes results and exits."""
        self._receive, self._end_at_once = stops.by_signal, end_at_once
        if self.number:  # it arrived after the evaluation before
            stops.by_signal(self.number)
        try:
            yield
        finally:
            self._receive, self._end_at_once = self._record_late, end_process

    def _record_late(self, number: int) -> None:
        del number
        self.late = True


def end_process(number: int) -> None:
    """End the process at once; a restart repeats everything that is not on disk yet."""
    remove_private_folders()
    os._exit(EXIT_SIGNAL + number)
