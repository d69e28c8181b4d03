"""What tests of the PyTorch hook get besides: no wait for files that come after the end mark."""

import pytest


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
