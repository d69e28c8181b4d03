"""WaitBudget: waits that end with an evaluation."""

import threading

import pytest
from clocks import PatientClock

from rule_core.clock import SystemClock
from rule_core.storage import wait_budget as module
from rule_core.storage.wait_budget import WaitBudget, WaitEndedError


@pytest.mark.parametrize(("left", "slept"), [(5.0, 2.0), (0.7, 0.7), (0.0, 0.0), (-9.0, 0.0)])
def test_pause_ends_with_the_time(left: float, slept: float) -> None:
    clock = PatientClock()
    patience = WaitBudget(clock, lambda: left - clock.now)
    patience.sleep(2.0)
    assert clock.now == pytest.approx(slept, abs=0.02)
    assert (patience.monotonic(), patience.time()) == (clock.now, clock.now)


@pytest.mark.parametrize("left", [9.0, 0.0, -1.0])
def test_call_gives_what_it_returns_or_raises(left: float) -> None:
    patience = WaitBudget(SystemClock(), lambda: left)

    def times_out() -> None:
        raise TimeoutError

    assert patience.call(lambda: 7) == 7
    with pytest.raises(TimeoutError):
        patience.call(times_out)


def test_call_that_hangs_is_left_alone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.2)
    clock, ends = SystemClock(), threading.Event()
    end = clock.monotonic() + 0.1
    patience = WaitBudget(clock, lambda: end - clock.monotonic())
    with pytest.raises(WaitEndedError, match="ended before its storage responded"):
        patience.call(ends.wait)
    assert patience.remaining_s() <= -0.2
    ends.set()
