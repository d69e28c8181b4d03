"""StopRequests: everything that ends an evaluation before its trial does."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import FrameType
from typing import Final

from rule_runner.errors import EXIT_SIGNAL, EXIT_TIMEOUT
from smdebug.core.clock import Clock

# A platform ends a container some seconds after it has asked it to stop.
SIGNAL_GRACE_S: Final = 6.0
_LONGEST_TIME: Final = 100  # bytes


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why an evaluation stops: a sentence, and the exit code that says so."""

    text: str
    exit_code: int


class StopRequests:
    """Tells whether to stop: by a signal, a stop file or a time limit.

    Parameters
    ----------
    clock
        Tells the time.
    timeout
        Seconds from now on.
    idle_timeout
        Seconds without news.
    stop_files
        Files whose being there asks to stop, `stop_grace` seconds after the time (whole seconds
        since the epoch) that they hold; at once if they hold anything else.
    """

    def __init__(
        self,
        clock: Clock,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        stop_files: Sequence[Path] = (),
        stop_grace: float = 60.0,
    ) -> None:
        self._clock = clock
        self._began = self._news_at = clock.monotonic()
        self._timeout = timeout
        self._idle_timeout = idle_timeout
        self._stop_files = stop_files
        self._stop_grace = stop_grace
        self._signal: StopReason | None = None

    def news(self) -> None:
        """Take note that the trial brought something new."""
        self._news_at = self._clock.monotonic()

    def by_signal(self, number: int) -> None:
        """Take note of a signal."""
        name = signal.Signals(number).name
        self._signal = self._signal or StopReason(
            f"Stopped by signal {name}.", EXIT_SIGNAL + number
        )

    @property
    def signalled(self) -> StopReason | None:
        """The signal that came, if one did."""
        return self._signal

    def reason(self, *, waiting: bool = False) -> StopReason | None:
        """Return why to stop now, or None; idleness counts only while `waiting`."""
        now = self._clock.monotonic()
        if self._signal is not None:
            return self._signal
        for file in self._stop_files:
            if self._asks(file):
                return StopReason(f"Stopped by stop file '{file}'.", EXIT_TIMEOUT)
        if self._timeout is not None and now - self._began >= self._timeout:
            return StopReason(f"Stopped after {self._timeout:g} s (--timeout).", EXIT_TIMEOUT)
        idle = self._idle_timeout
        if waiting and idle is not None and now - self._news_at >= idle:
            text = f"Stopped after {idle:g} s without news of the trial (--idle-timeout)."
            return StopReason(text, EXIT_TIMEOUT)
        return None

    def _asks(self, file: Path) -> bool:
        try:
            return self._clock.time() > int(_content(file)) + self._stop_grace
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            return True


def _content(file: Path) -> bytes:
    """Return the beginning of a file, without waiting for anybody to write into a pipe."""
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, _LONGEST_TIME)
    finally:
        os.close(fd)


@contextmanager
def signals(stops: StopRequests, at_last: Callable[[int], None]) -> Iterator[None]:
    """Hand SIGTERM and SIGINT to `stops` inside the block.

    `at_last` is called with the signal's number if the block has not ended `SIGNAL_GRACE_S`
    after a signal, or when a second one comes: a rule that hangs cannot be interrupted otherwise.
    """
    timers: list[Timer] = []

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if timers:
            at_last(number)
            return
        stops.by_signal(number)
        timer = Timer(SIGNAL_GRACE_S, at_last, (number,))
        timer.daemon = True
        timers.append(timer)
        timer.start()

    before = {one: signal.signal(one, handle) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for timer in timers:
            timer.cancel()
