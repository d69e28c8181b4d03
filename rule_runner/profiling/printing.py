"""Prints what was found in profiler data: tables on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """One kind of thing: a name, a heading for each column, and a row for each thing."""

    name: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


def show(head: Iterable[str], tables: Iterable[Table]) -> None:
    """Print lines, then tables; those without rows are left out. Every text is harmless."""
    found = [one for one in tables if one.rows]
    if sys.stdout.isatty():
        _on_terminal(head, found)
    else:
        say("\n".join([*head, *lines(found)]))


def say(text: str) -> None:
    """Print a result."""
    print(text)  # noqa: T201 - stdout carries results


def lines(tables: Iterable[Table]) -> Iterator[str]:
    """Yield tables as plain text with columns of equal width."""
    for table in tables:
        yield f"{table.name}:"
        cells = [table.headings, *table.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            yield f"  {_padded(row, widths)}"


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _on_terminal(head: Iterable[str], tables: Iterable[Table]) -> None:
    from rich.console import Console  # noqa: PLC0415 - a terminal only
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    for line in head:
        console.print(line, markup=False, highlight=False)
    for table in tables:
        shown = RichTable(title=Text(table.name), title_justify="left")
        for heading in table.headings:
            shown.add_column(heading, overflow="fold")
        for row in table.rows:
            shown.add_row(*map(Text, row))
        console.print(shown)
