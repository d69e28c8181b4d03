"""What every test on damaged files gets: no pauses, and an end to hanging."""

import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from answers import BlockedError

HANGS_S = 100


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


@pytest.fixture(autouse=True)
def _no_hanging() -> Iterator[None]:
    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise BlockedError

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(HANGS_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
