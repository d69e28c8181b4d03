"""Validates the names of rule jobs, which are also folder names."""

import unicodedata
from typing import Final

from rule_runner.errors import UsageError

NAME_LIMIT: Final = 255  # bytes of a file name


def safe_name(name: str) -> str:
    """Return `name` if it can name a folder inside the output folder.

    Raises
    ------
    UsageError
        If it is empty, longer than 255 bytes, begins with a dot, or holds a slash, a control
        character or a lone surrogate.
    """
    odd = any(char == "/" or unicodedata.category(char) in {"Cc", "Cs"} for char in name)
    if not name or name.startswith(".") or odd or len(name.encode()) > NAME_LIMIT:
        msg = (
            "Name of a rule job must be 1 to 255 bytes, without '/' and control characters and "
            f"not beginning with '.', got {name!r}."
        )
        raise UsageError(msg)
    return name
