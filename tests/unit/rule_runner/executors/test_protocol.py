import threading

import pytest

from rule_runner.executors import protocol
from rule_runner.executors.protocol import on_stop, watched


def test_cancelled_call_is_told_once() -> None:
    stopped = threading.Event()
    with watched(lambda: True):
        on_stop(stopped.set)
        assert stopped.wait(60)


def test_call_that_is_not_cancelled_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_PAUSE_S", 0.001)
    asked = threading.Event()

    def ask() -> bool:
        asked.set()
        return False

    stops: list[int] = []
    with watched(ask):
        on_stop(lambda: stops.append(0))
        assert asked.wait(60)
    assert stops == []


def test_outside_of_such_an_executor_nothing_is_kept() -> None:
    on_stop(lambda: None)
