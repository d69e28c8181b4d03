"""Tables of results: set with rules on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

Row = tuple[str, ...]


class TextTable(NamedTuple):
    """A heading for each column, or none, and rows of printable text."""

    headings: Row
    rows: Sequence[Row]
    title: str = ""


def aligned(table: TextTable) -> Iterator[str]:
    """Yield a table as lines with columns of equal width, indented below its title if any."""
    if table.title:
        yield f"{table.title}:"
    cells = [*filter(None, [table.headings]), *table.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"{'  ' * bool(table.title)}{padded}".rstrip()


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
    from rich.text import Text

    console = Console()
    for line in head:
        console.print(line, markup=False, highlight=False)
    for table in filled:
        title = Text(table.title) if table.title else None
        rows = (map(Text, row) for row in table.rows)
        console.print(grid(table.headings, rows, title=title, title_justify="left"))


def grid(headings: Row, rows: "Iterable[Iterable[Text]]", **options: Any) -> "Table":
    """Return a table for a terminal, with options of `rich.table.Table`."""
    from rich.table import Table

    table = Table(**options)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
