"""MetricValue: one value of the system; and how files of the kernel are read."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol


class MetricValue(NamedTuple):
    """A value at a moment, by the names of the files.

    Attributes
    ----------
    type, name, dimension
        Such as ``cpu``, ``cpu0`` and ``CPUUtilization``.
    value
        In the unit of the dimension.
    """

    type: str
    name: str
    dimension: str
    value: float


class Meter(Protocol):
    """A source of readings."""

    def readings(self, elapsed_s: float) -> list[MetricValue]:
        """Return the values now; rates are over the seconds since the last call."""
        ...


def text_of(path: Path) -> str:
    """Return the text of a file of the kernel; "" if it cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return ""


def number_in(path: Path) -> int | None:
    """Return the number that is a file's whole text; None if there is none."""
    text = text_of(path).strip()
    return int(text) if text.isascii() and text.isdigit() else None
