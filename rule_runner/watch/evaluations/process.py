"""The log of the process of an evaluation."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rule_runner.escape import printable

_LONGEST_LOG: Final = 1 << 20  # bytes
_READ: Final = 1 << 14  # bytes at the end of a log
_LONGEST_LINE: Final = 500  # characters


@contextmanager
def new_log(log: Path) -> Iterator[int]:
    """Open a new log for the errors of an evaluation."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(log, flags, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def limit_log(log: Path) -> None:
    """Empty a log that a rule fills."""
    with suppress(OSError):
        if log.stat().st_size > _LONGEST_LOG:
            os.truncate(log, 0)


def last_line(log: Path) -> str:
    """Return the last line of a log; "" if there is none."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _READ))
            lines = stream.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    line = next((text for text in map(str.strip, reversed(lines)) if text), "")
    return printable(line.removeprefix("Error: "))[:_LONGEST_LINE]
