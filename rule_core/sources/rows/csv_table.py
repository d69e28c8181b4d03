"""Reader of tables in text: CSV and TSV files of Lightning, Keras, YOLO and others."""

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from operator import itemgetter
from typing import Final, NamedTuple

from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.line_source import LineSource
from rule_core.sources.rows.row_fields import (
    MODE,
    STEP_NAMES,
    TIME,
    RowSteps,
    brief,
    field_role,
    mode_prefix,
    to_number,
    to_time,
)
from rule_core.storage.base import TrialStore

KIND: Final = "csv"
SUFFIXES: Final = (".csv", ".tsv")
DELIMITERS: Final = (",", "\t", ";")
MAX_JOINED: Final = 16  # lines of one quoted cell
NOT_LOGGED: Final = frozenset({"", "-", "n/a", "na", "none", "null"})  # "NA" is that of Keras
_FEWEST_COLUMNS: Final = 2  # a step and a number


class _Columns(NamedTuple):
    """What the header says.

    Attributes
    ----------
    header
        Its cells.
    names, every
        The names of all columns, ascending; and what returns their cells of a row.
    number_names, numbers
        Likewise, of columns that may hold numbers.
    steps
        The columns of steps, the preferred first: rank and place.
    time, mode
        The places of these columns; -1 if there are none.
    """

    header: list[str]
    names: tuple[str, ...]
    every: Callable[[Sequence[str]], tuple[str, ...]]
    number_names: tuple[str, ...]
    numbers: Callable[[Sequence[str]], tuple[str, ...]]
    steps: list[tuple[int, int]]
    time: int
    mode: int


class CsvSource(LineSource):
    """Reads one table. See ``docs/sources/csv.md`` for what it accepts."""

    def __init__(self, store: TrialStore, recognized: Recognized) -> None:
        super().__init__(store, recognized)
        self.restart()

    def restart(self) -> None:
        """Forget the header; see `LineSource`."""
        self._columns: _Columns | None = None
        self._delimiter = ""
        self._is_unusable = False
        self._open: list[str] = []  # lines of a quoted cell
        self._steps = RowSteps()
        self._texts: dict[str, str] = {}  # columns that began with text, and it
        self._number = 0

    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass rows on; see `LineSource`."""
        self._number = first - 1
        records = self._joined(lines, record)
        if not self._delimiter and not self._find_header(records, record):
            return
        for row in self._rows(records, record):
            if row:
                self._add_row(row, record)

    def add_rest(self, record: SourceRecord) -> None:
        """Pass on the lines of a cell whose quote was never closed; see `LineSource`."""
        if self._open and self._delimiter:
            for row in self._rows(iter(self._unquoted(record)), record):
                if row:
                    self._add_row(row, record)

    # -- lines to rows -----------------------------------------------------------------------

    def _joined(self, lines: Iterator[str], record: SourceRecord) -> Iterator[str]:
        """Yield the text of each row; a quoted cell may contain ends of lines."""
        for line in lines:
            self._number += 1
            if '"' not in line and not self._open:
                yield line
                continue
            self._open.append(line)
            if sum(text.count('"') for text in self._open) % 2 == 0:
                yield "\n".join(self._open)
                self._open.clear()
            elif len(self._open) >= MAX_JOINED:
                yield from self._unquoted(record)

    def _unquoted(self, record: SourceRecord) -> list[str]:
        part = f"line {self._number - len(self._open) + 1}"
        self.report_once(record, "quote", part, "Its quote is not closed.")
        texts = [line.replace('"', "") for line in self._open]
        self._open.clear()
        return texts

    def _rows(self, records: Iterator[str], record: SourceRecord) -> Iterator[list[str]]:
        reader = csv.reader(records, delimiter=self._delimiter)
        while True:
            try:
                yield from reader
            except csv.Error as err:
                text = f"It cannot be read: {err}. Such lines are skipped."
                self.report_once(record, "syntax", f"line {self._number}", text)
            else:
                return

    # -- header ------------------------------------------------------------------------------

    def _find_header(self, records: Iterator[str], record: SourceRecord) -> bool:
        """Read the header; return whether rows follow that can be read."""
        if self._is_unusable:
            return False
        for text in records:
            if not text.strip() or _is_comment(text):
                continue
            self._delimiter = delimiter_of(text)
            if self._delimiter:
                self._set_header(next(csv.reader([text], delimiter=self._delimiter)), record)
                return True
            self._is_unusable = True
            steps = ", ".join(STEP_NAMES)
            problem = f"Its first line names no column of steps ({steps}): {brief(text)}."
            self.report_once(record, "header", "", problem)
            return False
        return False

    def _set_header(self, cells: list[str], record: SourceRecord) -> None:
        header = _names(cells)
        names = [name or f"column {place + 1}" for place, name in enumerate(header)]
        for place, name in enumerate(names):
            unique, count = name, 0
            while unique in names[:place]:
                count += 1
                unique = f"{name}.{count}"
            if count:
                names[place] = unique
                text = f"Several columns are called {name!r}; column {place + 1} is {unique!r}."
                self.report_once(record, f"name {unique}", f"column {unique!r}", text)
        roles = [field_role(name) for name in header]
        steps = {
            role: place for place, role in reversed(list(enumerate(roles))) if isinstance(role, int)
        }
        time, mode = (roles.index(role) if role in roles else -1 for role in (TIME, MODE))
        numbers = [
            name
            for name, plain, role in zip(names, header, roles, strict=True)
            if plain and role is None
        ]
        places = {name: place for place, name in enumerate(names)}
        number_names, every_name = tuple(sorted(numbers)), tuple(sorted(names))
        self._columns = _Columns(
            cells,
            every_name,
            _picker([places[name] for name in every_name]),
            number_names,
            _picker([places[name] for name in number_names]),
            sorted(steps.items()),
            time,
            mode,
        )

    # -- rows --------------------------------------------------------------------------------

    def _add_row(self, row: list[str], record: SourceRecord) -> None:
        columns = self._columns
        if columns is None:
            return
        rank, place = columns.steps[0]
        try:
            number = float(row[place])
        except (IndexError, ValueError):
            number = math.nan
            if self._is_no_row(row, rank, place, record):
                return
        if len(row) != len(columns.header):
            row = self._fitted(row, len(columns.header), record)
        if not self.delivered.is_new(_digested(columns, row)):
            return
        step: int | None
        if is_step(number):
            step = int(number)
            self._steps.set(rank, step)
        else:
            step = self._step(columns, row, record)
        if step is not None:
            values = self._values(columns, row, record)
            time = to_time(row[columns.time]) if columns.time >= 0 else 0.0
            record.row(step, values, time)

    def _is_no_row(self, row: list[str], rank: int, place: int, record: SourceRecord) -> bool:
        """Return whether this is a comment, or another header of an appended run."""
        if place < len(row) and field_role(row[place]) == rank:
            self._set_header(row, record)
            return True
        return _is_comment(row[0])

    def _fitted(self, row: list[str], width: int, record: SourceRecord) -> list[str]:
        if len(row) > width and any(row[width:]):
            text = (
                f"It has {len(row)} cells, more than the {width} of the header. "
                "Those beyond are skipped."
            )
            self.report_once(record, "width", f"line {self._number}", text)
        return row[:width] + [""] * (width - len(row))

    def _step(self, columns: _Columns, row: list[str], record: SourceRecord) -> int | None:
        fields = {rank: row[place] for rank, place in columns.steps if row[place].strip()}
        step = self._steps.step_of(fields)
        if isinstance(step, int):
            return step
        self.report_once(record, "step", f"line {self._number}", step)
        return None

    def _values(self, columns: _Columns, row: list[str], record: SourceRecord) -> dict[str, float]:
        cells = zip(columns.number_names, columns.numbers(row), strict=True)
        try:
            values = {name: float(cell) for name, cell in cells if cell}
        except ValueError:
            values = self._checked_values(columns, row, record)
        if self._texts and not self._texts.keys().isdisjoint(values):
            for name in self._texts.keys() & values.keys():
                self._report_text(name, self._texts.pop(name), record)
        prefix = mode_prefix(row[columns.mode]) if columns.mode >= 0 else ""
        return {prefix + name: value for name, value in values.items()} if prefix else values

    def _checked_values(
        self, columns: _Columns, row: list[str], record: SourceRecord
    ) -> dict[str, float]:
        values = {}
        for name, cell in zip(columns.number_names, columns.numbers(row), strict=True):
            number = to_number(cell)
            if number is not None:
                values[name] = number
            elif cell.strip().lower() not in NOT_LOGGED:
                if name in record.columns:
                    self._report_text(name, cell, record)
                else:
                    self._texts.setdefault(name, cell)
        return values

    def _report_text(self, name: str, cell: str, record: SourceRecord) -> None:
        text = (
            f"{brief(cell)} in line {self._number} or before is not a number. "
            "Such cells are skipped."
        )
        self.report_once(record, f"cell {name}", f"column {name!r}", text)


class _CsvFormat:
    """Recognises ``*.csv`` and ``*.tsv`` with a column of steps."""

    kind: Final = KIND

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield tables; see `SourceFormat`."""
        for name in folder.names:
            if name.lower().endswith(SUFFIXES):
                reason = _reason(folder.head(name))
                if reason:
                    yield Recognized(KIND, folder.key + name, reason)

    def open(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> CsvSource:
        """Return the reader of a table; see `SourceFormat`."""
        del options
        return CsvSource(store, recognized)


def delimiter_of(header: str) -> str:
    """Return what separates the cells of a header with a column of steps; "" if it has none.

    >>> delimiter_of("epoch,  train/loss"), delimiter_of("loss;step"), delimiter_of("time,loss")
    (',', ';', '')
    """
    for delimiter in DELIMITERS:
        try:
            cells = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:
            continue
        roles = [field_role(name) for name in _names(cells)]
        if len(cells) >= _FEWEST_COLUMNS and any(isinstance(role, int) for role in roles):
            return delimiter
    return ""


def _reason(head: bytes) -> str:
    """Return why a file is a table of steps; "" if it is none."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in text.splitlines() if line.strip() and not _is_comment(line)]
    try:
        delimiter = delimiter_of(lines[0]) if lines else ""
        rows = list(csv.reader(lines[:2], delimiter=delimiter)) if delimiter else []
    except csv.Error:
        return ""
    if not rows:
        return ""
    names = _names(rows[0])
    place = min(
        (role, place) for place, role in enumerate(map(field_role, names)) if isinstance(role, int)
    )[1]
    if len(rows) > 1 and place < len(rows[1]):
        number = to_number(rows[1][place])
        if number is None or not is_step(number):
            return ""
    return f"its columns include {names[place]!r}"


def _names(cells: Sequence[str]) -> list[str]:
    """Return the names of columns."""
    names = [cell.strip() for cell in cells]
    if names:
        names[0] = names[0].removeprefix("#").strip()
    return names


def _is_comment(text: str) -> bool:
    """Return whether a line is neither a header nor a row."""
    return text.startswith("#") and not delimiter_of(text)


def _digested(columns: _Columns, row: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and cells of a row that identify it, whatever columns are added."""
    cells = columns.every(row)
    if "" in cells:
        return tuple(compress(columns.names, cells)), tuple(filter(None, cells))
    return columns.names, cells


def _picker(places: Sequence[int]) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return a function that returns the cells at some places."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda row: tuple(row[place] for place in places)


FORMAT: Final = _CsvFormat()
