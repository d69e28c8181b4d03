"""The time of a recording, whatever happens to the clock of the machine."""

import time

import pytest

from rule_core.clock import SteadyTime


def test_it_is_the_time_since_the_epoch() -> None:
    before = time.time_ns() // 1000
    now_us = SteadyTime()()
    assert before - 1000 <= now_us <= time.time_ns() // 1000 + 1000


def test_it_does_not_follow_a_clock_that_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    now_us = SteadyTime()
    before = now_us()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert 0 <= now_us() - before < 60_000_000
