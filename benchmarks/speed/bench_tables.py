"""The table of benchmarks: as text, as Markdown, and between the marks of a document."""

import platform
import re
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

HEAD = ("what", "compared with", "min", "median", "max", "target", "ours", "theirs")
BEGIN, END = "<!-- benchmarks/speed: begin -->", "<!-- benchmarks/speed: end -->"
WIDE = 3  # significant digits


class Line(NamedTuple):
    """A line: what is compared, the values of all rounds, and what a tensor takes on both sides.

    `unit` is that of the values: "" for ratios.
    """

    what: str
    compared_with: str
    values: Sequence[float]
    target: str = ""
    unit: str = ""
    ours: str = ""
    theirs: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        low, middle, high = min(self.values), statistics.median(self.values), max(self.values)
        numbers = (f"{shown(one)}{self.unit and ' '}{self.unit}" for one in (low, middle, high))
        return (self.what, self.compared_with, *numbers, self.target, self.ours, self.theirs)


def shown(number: float) -> str:
    """Return a number with few digits.

    >>> shown(0.123456), shown(12.3456), shown(1234.56)
    ('0.123', '12.3', '1235')
    """
    return f"{number:.0f}" if number >= 10**WIDE else f"{number:.{WIDE}g}"


def per_tensor(seconds: float, tensors: int) -> str:
    """Return the time that a tensor takes.

    >>> per_tensor(1.5, 10_000)
    '150 us'
    """
    return f"{shown(seconds / tensors * 1e6)} us" if tensors else ""


def text(lines: Iterable[Line]) -> str:
    """Return the table with aligned columns."""
    rows = [HEAD, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def markdown(lines: Iterable[Line]) -> str:
    """Return the table in Markdown."""
    rows = [HEAD, ("---",) * len(HEAD), *(line.cells() for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def circumstances(scale: float, clock: str, pairs: int | None) -> str:
    """Return one sentence on where and how the numbers were measured."""
    processor = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text("utf-8"))
    name = processor[1] if processor else platform.machine()
    cores = len(
        re.findall(r"^processor\s*:", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    )
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with Python {platform.python_version()} on "
        f"{cores} cores ({name}), {clock} time, scale {scale:g}, "
        f"pairs: {pairs or 'as many as is usual'}, files in the page cache."
    )


def write_between(document: Path, content: str) -> None:
    """Replace what stands between the marks of a document.

    Raises
    ------
    ValueError
        If the marks are not there.
    """
    before, begin, rest = document.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        msg = f"The marks {BEGIN!r} and {END!r} are not in {str(document)!r}. Put them in."
        raise ValueError(msg)
    document.write_text(f"{before}{begin}\n{content}\n{end}{after}", "utf-8")
