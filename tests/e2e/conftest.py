"""What every test of the whole gets: logging put back, for commands configure it."""

import evaluating
import pytest


@pytest.fixture(autouse=True)
def _logging_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluating.restore_logging(monkeypatch)
