"""Calls that executors run in their workers, which import them from here."""

import os
import signal
import threading
import time
from pathlib import Path

from rule_core.clock import SystemClock
from rule_runner.executors.protocol import on_stop


def doubled(number: int) -> int:
    return 2 * number


def raise_key_error(name: str) -> None:
    raise KeyError(name)


def lose_worker(log: Path, survivor: int) -> int:
    """Kill the worker, except in the attempt with this number; return the number of attempts."""
    with log.open("a", encoding="utf-8") as file:
        file.write("attempt\n")
    attempts = len(log.read_text(encoding="utf-8").splitlines())
    if attempts < survivor:
        os.kill(os.getpid(), signal.SIGKILL)
    return attempts


def process_id() -> int:
    return os.getpid()


def work(started: Path, seconds: float) -> str:
    """Work until SIGTERM or the end of the time; return which."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    started.write_text(str(os.getpid()), encoding="utf-8")
    end = time.monotonic() + seconds
    while not stopped and time.monotonic() < end:
        SystemClock().sleep(0.01)
    return "stopped" if stopped else "ended"


def hang(started: Path) -> None:
    """Ignore SIGTERM for a minute."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    started.write_text(str(os.getpid()), encoding="utf-8")
    SystemClock().sleep(60)


def stoppable(started: Path, ended: Path) -> None:
    """Run until a signal, or the executor where that sends none, stops the call."""
    stops: list[int] = []
    on_stop(lambda: stops.append(0))
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: stops.append(received))
    started.touch()
    end = time.monotonic() + 60
    while not stops and time.monotonic() < end:
        SystemClock().sleep(0.01)
    ended.write_text("stopped" if stops else "ended", encoding="utf-8")
