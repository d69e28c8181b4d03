"""What ends an evaluation early: signals, stop files, time limits."""

import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from evaluating import WoundClock

from rule_runner.engine.stop_requests import Signals, StopReason, StopRequests

NOW = 1_700_000_000


def requests(**more: Any) -> tuple[WoundClock, StopRequests]:
    clock = WoundClock(NOW)
    return clock, StopRequests(clock, **more)


def test_nothing_asks_to_stop() -> None:
    clock, stops = requests()
    clock.now += 1e9
    assert stops.reason() is None
    assert stops.idle() is None


def test_timeout_counts_from_the_beginning() -> None:
    clock, stops = requests(timeout=2.5)
    clock.now += 2.4
    stops.record_progress()
    assert stops.reason() is None
    clock.now += 0.2
    assert stops.reason() == StopReason("Stopped after 2.5 s (--timeout).", 124)


def test_idle_timeout_counts_from_the_last_news_and_only_while_waiting() -> None:
    clock, stops = requests(idle_timeout=60)
    clock.now += 59
    stops.record_progress()
    clock.now += 59
    assert stops.idle() is None
    clock.now += 1
    assert stops.reason() is None
    assert stops.idle(spare=1) is None
    text = "Stopped after 60 s without news of the trial (--idle-timeout)."
    assert stops.idle() == StopReason(text, 124)


@pytest.mark.parametrize(
    ("content", "stop"),
    [
        pytest.param(str(NOW), False, id="now"),
        pytest.param(str(NOW - 60), False, id="grace-not-quite-over"),
        pytest.param(str(NOW - 61), True, id="grace-over"),
        pytest.param(f" {NOW - 61}\n", True, id="blanks"),
        pytest.param(str(NOW + 100), False, id="later"),
        pytest.param("soon", True, id="garbage"),
        pytest.param("", True, id="empty"),
        pytest.param("1.5", True, id="fraction"),
        pytest.param("\udcff", True, id="no-text"),
        pytest.param("9" * 5000, False, id="much-later"),
    ],
)
def test_stop_file(tmp_path: Path, content: str, stop: bool) -> None:
    file = tmp_path / "stop"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    _, stops = requests(stop_files=[tmp_path / "other", file])
    expected = StopReason(f"Stopped by stop file '{file}'.", 124) if stop else None
    assert stops.reason() == expected


def test_stop_file_that_does_not_exist_asks_nothing_until_it_is(tmp_path: Path) -> None:
    file = tmp_path / "signals" / "stop"
    _, stops = requests(stop_files=[file], stop_grace=0)
    assert stops.reason() is None
    file.parent.mkdir()
    file.write_text(str(NOW - 1))
    assert stops.reason() is not None


def test_stop_file_that_cannot_be_read_asks_to_stop_now(tmp_path: Path) -> None:
    _, stops = requests(stop_files=[tmp_path])  # a folder
    assert stops.reason() == StopReason(f"Stopped by stop file '{tmp_path}'.", 124)


def test_stop_file_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    _, stops = requests(stop_files=[tmp_path / "file" / "stop"])
    assert stops.reason() is None


def test_pipe_as_stop_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stop")
    _, stops = requests(stop_files=[tmp_path / "stop"])
    assert stops.reason() is not None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_goes_before_all_else_and_the_first_one_counts(number: int, code: int) -> None:
    clock, stops = requests(timeout=1)
    clock.now += 5
    stops.by_signal(number)
    stops.by_signal(signal.SIGTERM)
    text = f"Stopped by signal {signal.Signals(number).name}."
    assert stops.reason() == StopReason(text, code)


class FakeTimer:
    """A timer that a test lets ring."""

    made: list["FakeTimer"]

    def __init__(self, seconds: float, call: Any, arguments: tuple[int]) -> None:
        self.seconds, self.call, self.arguments = seconds, call, arguments
        self.daemon = False
        self.state = "made"
        self.made.append(self)

    def start(self) -> None:
        self.state = "running"

    def cancel(self) -> None:
        self.state = "cancelled"


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[FakeTimer]:
    FakeTimer.made = []
    monkeypatch.setattr("rule_runner.engine.stop_requests.Timer", FakeTimer)
    return FakeTimer.made


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_first_signal_is_noted_and_gives_some_seconds(number: int, timers: list[FakeTimer]) -> None:
    before = signal.getsignal(number)
    _, stops = requests()
    last: list[int] = []
    with Signals() as handlers, handlers.evaluating(stops, last.append):
        assert stops.reason() is None
        signal.raise_signal(number)
        assert stops.reason() is not None
        (timer,) = timers
        assert (timer.state, timer.seconds, timer.daemon, last) == ("running", 6.0, True, [])
        timer.call(*timer.arguments)
        assert last == [number]
    assert timer.state == "cancelled"
    assert signal.getsignal(number) is before


def test_second_signal_ends_at_once(timers: list[FakeTimer]) -> None:
    _, stops = requests()
    last: list[int] = []
    with Signals() as handlers, handlers.evaluating(stops, last.append):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert last == [signal.SIGTERM]
    assert len(timers) == 1


@pytest.mark.usefixtures("timers")
def test_signal_between_two_evaluations_stops_the_second() -> None:
    stops = [requests()[1], requests()[1]]
    with Signals() as handlers:
        with handlers.evaluating(stops[0], lambda _: None):
            pass
        signal.raise_signal(signal.SIGINT)
        with handlers.evaluating(stops[1], lambda _: None):
            reason = stops[1].reason()
    assert (stops[0].reason(), reason) == (None, StopReason("Stopped by signal SIGINT.", 130))


def test_handlers_are_put_back_after_an_exception() -> None:
    before = signal.getsignal(signal.SIGTERM)
    _, stops = requests()
    handlers = Signals()
    with pytest.raises(KeyError), handlers, handlers.evaluating(stops, lambda _: None):
        raise KeyError
    assert signal.getsignal(signal.SIGTERM) is before


def test_time_left_for_storage_ends_with_the_timeout_or_a_signal() -> None:
    clock = WoundClock(0.0)
    assert StopRequests(clock).seconds_left() == math.inf
    stops = StopRequests(clock, timeout=10.0)
    clock.now = 4.0
    assert stops.seconds_left() == 6.0
    stops.by_signal(signal.SIGTERM)
    assert stops.seconds_left() == 0.0
    clock.now = 7.0
    assert stops.seconds_left() == -3.0
