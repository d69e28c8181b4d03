"""Fixtures for tests of the PyTorch hook: no wait for files after the end mark."""

import pytest


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
