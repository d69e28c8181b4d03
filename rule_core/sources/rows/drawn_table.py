"""DrawnTable: the rows of tables and boxes that are drawn with characters."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rule_core.sources.rows.row_fields import is_undefined, to_number

Cells = list[tuple[str, object]]

_LINES: Final = str.maketrans("║│┃", "|||")
_RULER: Final = re.compile(r"[\s|+\-=_*#~╔╗╚╝╠╣╦╩╬═║─│┌┐└┘├┤┬┴┼━┏┓┗┛┡┩:]{4,}")
# What loggers write before a line: when, who and how serious it is.
_LOGGED: Final = re.compile(
    r"\s*\[?\d{2,4}[-/]\d\d[-/]\d{2,4}[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?"
    r"(?:[ :-]+\[?(?:[A-Za-z_.]{1,40}[ :-]+)?(?:INFO|DEBUG|WARNING)\]?)?[ :-]*"
)
_BETWEEN_CELLS: Final = re.compile(r"\s{2,}|\t|\s*\|\s*")
_ALIGNED: Final = re.compile(r"\S+(?: \S+)*")  # a cell between several blanks
_UNIT: Final = re.compile(r"(?<=[\d.])\s?(?:%|[kKMG]i?B?|s|ms|m|it/s)$")
_BAR: Final = re.compile(r"\d{1,3}%\s?(?:\|[^|]*\||[━╸╺─]+)\s*(\d+)/(\d+)\s")
_NAME: Final = re.compile(r"(?:[^\W\d]|[#%])[^:=,;\d]{0,40}(?:\d[\w-]*)?[^:=,;]{0,8}")
_LIST: Final = re.compile(r"\[[^\[\]]*\]")
_FEWEST_CELLS: Final = 3
_BOX_CELLS: Final = 2  # a name and a value


class DrawnTable:
    """Reads the lines of tables, one below its header, and of boxes, one number a line."""

    def __init__(self) -> None:
        self._header: list[str] = []
        self._columns: list[tuple[int, int]] = []  # where the cells of the header are
        self._has_rows = False  # whether a row followed the header
        self._box: Cells | None = None  # None: the log may begin within one
        self._group = ""  # of the numbers in a box

    def read(self, content: str) -> Cells | None:
        """Return the row that a line ends or holds; None if it is not of a table.

        A row is empty if the line is a header, a ruler or one of a box.
        """
        if not content.isascii():
            content = content.translate(_LINES)
        if is_ruler(content):
            return self.end()
        bar = _BAR.search(content) if self._header or "  " in content else None
        line = content[: bar.start()] if bar else content
        if (logged := _LOGGED.match(line)) and ("\t" in line or "  " in line):
            line = line[logged.end() :]
        content = line.strip().removesuffix(":")
        if content[:1] == "|" == content[-1:]:
            cells = [cell.strip() for cell in content[1:-1].split("|")]
            if len(cells) == _BOX_CELLS:
                return self._add_to_box(*cells)
        elif "  " not in content and "\t" not in content:
            return None
        else:
            cells = _BETWEEN_CELLS.split(content.removeprefix("#").strip())
        if not any(map(_is_cell, cells)):
            return [] if self._set_header(cells, line) else None
        # Wide cells may touch, and cells may lack.
        row = self._row(cells) or self._row(content.split()) or self._row(self._aligned(line))
        return row if bar is None or row is None or bar[1] == bar[2] else []

    def end(self) -> Cells:
        """Return what the box held that ends; another one may begin."""
        box, self._box, self._group = self._box or [], [], ""
        return box

    def _set_header(self, cells: list[str], line: str) -> bool:
        """Take cells as the names of columns, or as their second line; return whether they are."""
        if "" in cells and len(cells) == len(self._header) and not self._has_rows:
            lines = zip(self._header, cells, strict=True)
            self._header = [f"{upper} {lower}".strip() for upper, lower in lines]
            return True
        is_header = len(cells) >= _FEWEST_CELLS and all(map(_NAME.fullmatch, cells))
        if is_header:
            self._header, self._has_rows = cells, False
            self._columns = [match.span() for match in _ALIGNED.finditer(line)]
        return is_header

    def _row(self, cells: list[str]) -> Cells | None:
        """Return the cells with the names of their columns; None if they are no row."""
        header = self._header
        if len(cells) == len(header) and any(map(_LIST.fullmatch, cells)):
            columns = [*_columns_of_lists(header, cells)]
            header, cells = ([*column] for column in zip(*columns, strict=True))
        if len(cells) != len(header):
            header = " ".join(header).split()
        if not cells or len(cells) != len(header) or 2 * sum(map(_is_cell, cells)) < len(cells):
            return None
        self._has_rows = True
        return [*zip(header, map(_plain, cells), strict=True)]

    def _aligned(self, line: str) -> list[str]:
        """Return the cell below each name; [] if they are not aligned."""
        cells = [""] * len(self._columns)
        for match in _ALIGNED.finditer(line):
            below = [
                position
                for position, (start, end) in enumerate(self._columns)
                if start < match.end() and match.start() < end
            ]
            if len(below) != 1 or cells[below[0]]:
                return []
            cells[below[0]] = match[0]
        return cells

    def _add_to_box(self, name: str, value: str) -> Cells | None:
        """Keep a name and a value until the box ends."""
        if not name:
            return None
        if self._box is not None:
            if not value and name.endswith("/"):
                self._group = name
            elif to_number(value) is not None:
                self._box.append((self._group + name, value))
        return []


def _columns_of_lists(names: Sequence[str], cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names and cells, a list as several cells of which the later ones are numbered."""
    for name, cell in zip(names, cells, strict=True):
        inner_cells = cell[1:-1].split(",") if _LIST.fullmatch(cell) else [cell]
        for position, inner_cell in enumerate(inner_cells):
            yield (f"{name}.{position}" if position else name), inner_cell.strip() or "-"


def is_ruler(content: str) -> bool:
    """Return whether a line separates the parts of a table."""
    return _RULER.fullmatch(content) is not None


def _plain(cell: str) -> str:
    """Return a cell without brackets, unit and thousands separators."""
    return _UNIT.sub("", cell.strip("[]")).replace(",", "")


def _is_cell(cell: str) -> bool:
    """Return whether a cell is a number, perhaps with a unit or a total, or says there is none."""
    is_number = to_number(_plain(cell)) is not None
    return is_number or (cell != "" and is_undefined(cell)) or bool(re.fullmatch(r"\d+/\d+", cell))
