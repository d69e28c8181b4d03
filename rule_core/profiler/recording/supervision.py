"""is_supervised: whether a command samples the system and ends the recording of a process."""

import os
from typing import Final

SUPERVISED: Final = "RULE_RUNNER_PROFILE"  # variable with the folder of the recording


def is_supervised(folder: str) -> bool:
    """Return whether the command that started this process looks after a recording.

    It samples the system, and marks the end when all processes have ended.
    """
    return os.environ.get(SUPERVISED) == folder
