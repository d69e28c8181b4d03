"""The process of an evaluation: its environment, and its log."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from rule_runner.escape import printable

_PACKAGES: Final = Path(__file__).parents[3]
_LONGEST_LOG: Final = 1 << 20  # bytes
_READ: Final = 1 << 14  # bytes at the end of a log
_LONGEST_LINE: Final = 500  # characters


@contextmanager
def process_options(log: Path) -> Iterator[dict[str, Any]]:
    """Return options of `subprocess.Popen`: a session of its own, whose errors go to `log`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(log, flags, 0o600)
    try:
        yield {
            "stdout": subprocess.DEVNULL,
            "stderr": fd,
            "env": _environment(),
            # Signals of the terminal are for the controller.
            "start_new_session": True,
        }
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


def _environment() -> Mapping[str, str]:
    """Return the environment of evaluations, in which this program is found."""
    paths = [str(_PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
