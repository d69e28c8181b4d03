"""A controller for the tests of this folder."""

from pathlib import Path
from typing import Any

import pytest
from watched import Watch


@pytest.fixture
def watch(tmp_path: Path, clock: Any) -> Watch:
    (tmp_path / "runs").mkdir()
    return Watch(tmp_path, clock)
