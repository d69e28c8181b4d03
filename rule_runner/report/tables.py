"""Tables of results: set with rules on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

Row = tuple[str, ...]


class TextTable(NamedTuple):
    """A heading for each column, and rows of printable text."""

    headings: Row
    rows: Sequence[Row]
    title: str = ""


def aligned(table: TextTable) -> Iterator[str]:
    """Yield a table as a title and lines with columns of equal width."""
    yield f"{table.title}:"
    cells = [table.headings, *table.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {padded}".rstrip()


def print_tables(
    head: Iterable[str],
    tables: Iterable[TextTable],
    plain: Callable[[TextTable], Iterable[str]] = aligned,
) -> None:
    """Print lines, then tables; tables without rows are left out.

    Parameters
    ----------
    plain
        Returns the lines of a table when stdout is not a terminal.
    """
    filled = [table for table in tables if table.rows]
    if not sys.stdout.isatty():
        print("\n".join([*head, *(line for table in filled for line in plain(table))]))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for line in head:
        console.print(line, markup=False, highlight=False)
    for table in filled:
        grid = Table(title=Text(table.title) if table.title else None, title_justify="left")
        for heading in table.headings:
            grid.add_column(heading, overflow="fold")
        for row in table.rows:
            grid.add_row(*map(Text, row))
        console.print(grid)
