"""The environment of processes whose coverage is not counted."""

import os
from typing import Final

NAMES: Final = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")


def environment() -> dict[str, str]:
    """Return this process's environment without what would have the lines counted."""
    return {name: text for name, text in os.environ.items() if name not in NAMES}
