"""MetricValue: one value of the system; and how files of the kernel are read."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


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


def text_of(path: Path) -> str:
    """Return the text of a file of the kernel; "" if it cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return ""


def number_in(path: Path) -> int | None:
    """Return the number that is a file's whole text; None if there is none."""
    text = text_of(path).strip()
    return int(text) if text.isascii() and text.isdigit() else None


def numbers_in(path: Path) -> dict[str, int]:
    """Return the numbers in a file with a name and a number on each line, by name."""
    fields = (line.replace(":", " ").split() for line in text_of(path).splitlines())
    return {name: int(value) for name, value, *_ in filter(_is_number, fields)}


def _is_number(fields: list[str]) -> bool:
    return len(fields) > 1 and fields[1].isascii() and fields[1].isdigit()
