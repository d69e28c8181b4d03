"""Reader of tables in text: CSV and TSV files of Lightning, Keras, YOLO and others."""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, compress, count
from operator import itemgetter
from typing import Final, NamedTuple

from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.format import SourceFolder
from rule_core.sources.names import NameTable
from rule_core.sources.rows.line_source import LineFormat, LineSource
from rule_core.sources.rows.row_fields import (
    MODE,
    NO_STEP,
    STEP_NAMES,
    TIME,
    brief,
    field_role,
    is_undefined,
    mode_prefix,
    to_number,
    to_step,
    to_time,
)

SUFFIXES: Final = (".csv", ".tsv")
LOG_SUFFIXES: Final = (".log", ".txt")  # Keras users call the file of CSVLogger training.log
DELIMITERS: Final = (",", "\t", ";")
MAX_JOINED: Final = 16  # lines of one quoted cell
_FEWEST_COLUMNS: Final = 2  # a step and a number
_FEWEST_ROWS: Final = 2  # of a table without steps: a single row sums up a run
_DURATIONS: Final = ("time", "seconds", "elapsed", "runtime", "duration")
_NAMES: Final = NameTable()
_UNNAMED: Final = "unnamed: "  # what pandas calls the index that it wrote without a name


class _Cells:
    """Some columns of a table.

    Attributes
    ----------
    names
        Their names, ascending.
    of_row
        Returns their cells of a row, in this order.
    """

    def __init__(self, names: Sequence[str], header: Sequence[str]) -> None:
        positions = {name: position for position, name in enumerate(header)}
        self.names = tuple(sorted(names))
        chosen = [positions[name] for name in self.names]
        self.of_row: Callable[[Sequence[str]], tuple[str, ...]] = (
            itemgetter(*chosen) if len(chosen) > 1 else lambda row: tuple(row[n] for n in chosen)
        )


class _Columns(NamedTuple):
    """What the header says.

    Attributes
    ----------
    header
        Its cells.
    every, numbers
        All columns, and those that may hold numbers.
    steps
        The columns of steps, the preferred first: rank and place. If there are none, the rows are
        the steps.
    time, mode
        The places of these columns; -1 if there are none.
    """

    header: list[str]
    every: _Cells
    numbers: _Cells
    steps: list[tuple[int, int]]
    time: int
    mode: int


class CsvSource(LineSource):
    """Reads one table. See ``docs/sources/csv.md`` for what it accepts."""

    def restart(self) -> None:
        """Forget the header; see `LineSource`."""
        super().restart()
        self._columns: _Columns | None = None
        self._delimiter: str | None = None  # "" if the first line is no header
        self._open: list[str] = []  # lines of a quoted cell
        self._rows_so_far = 0
        self._texts: dict[str, str] = {}  # columns that began with text, and it
        self._number = 0

    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass rows on; see `LineSource`."""
        self._number = first - 1
        records = self._joined(lines, record)
        if self._delimiter is None:
            self._find_header(records, record)
        if self._delimiter:
            self._add_rows(records, self._delimiter, record)

    def add_rest(self, record: SourceRecord) -> None:
        """Pass on the lines of a cell whose quote was never closed; see `LineSource`."""
        if self._open and self._delimiter:
            self._add_rows(self._unquoted(record), self._delimiter, record)

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

    def _add_rows(self, texts: Iterable[str], delimiter: str, record: SourceRecord) -> None:
        rows = csv.reader(texts, delimiter=delimiter)
        while True:
            try:
                for row in rows:
                    if row:
                        self._add_row(row, record)
            except csv.Error as err:
                text = f"It cannot be read: {err}. Such lines are skipped."
                self.report_once(record, "syntax", f"line {self._number}", text)
            else:
                return

    # -- header ------------------------------------------------------------------------------

    def _find_header(self, texts: Iterator[str], record: SourceRecord) -> None:
        """Look for the header in the lines up to it."""
        header = next((text for text in texts if text.strip() and not _is_comment(text)), None)
        if header is None:
            return
        self._delimiter = delimiter_of(header)
        if self._delimiter:
            self._set_header(next(csv.reader([header], delimiter=self._delimiter)), record)
            return
        steps = ", ".join(STEP_NAMES)
        problem = (
            f"Its first line names neither a column of steps ({steps}) nor only metrics such "
            f"as loss and val_loss: {brief(header)}."
        )
        self.report_once(record, "header", "", problem)

    def _set_header(self, cells: list[str], record: SourceRecord) -> None:
        header = _names(cells)
        names: list[str] = []
        for position, cell in enumerate(header, 1):
            name = cell or f"column {position}"
            spellings = chain([name], (f"{name}.{repeated}" for repeated in count(1)))
            unique = next(spelling for spelling in spellings if spelling not in names)
            names.append(unique)
            if unique != name:
                text = f"Several columns are called {name!r}; column {position} is {unique!r}."
                self.report_once(record, f"name {unique}", f"column {unique!r}", text)
        roles = [field_role(name) for name in header]
        time, mode = (roles.index(role) if role in roles else -1 for role in (TIME, MODE))
        numbers = [
            name
            for name, plain, role in zip(names, header, roles, strict=True)
            if plain and role is None
        ]
        self._columns = _Columns(
            cells,
            _Cells(names, names),
            _Cells(numbers, names),
            sorted(dict(reversed(_step_columns(header))).items()),
            time,
            mode,
        )

    # -- rows --------------------------------------------------------------------------------

    def _add_row(self, row: list[str], record: SourceRecord) -> None:
        columns = self._columns
        if columns is None:
            return
        rank, place = columns.steps[0] if columns.steps else (NO_STEP, 0)
        try:
            number = float(row[place]) if columns.steps else self._rows_so_far
        except (IndexError, ValueError):
            number = math.nan
        if (not columns.steps or math.isnan(number)) and self._is_no_row(row, rank, place, record):
            return
        self._rows_so_far += 1
        if len(row) != len(columns.header):
            row = self._fitted(row, len(columns.header), record)
        if not self.delivered.is_new(_digested(columns, row)):
            return
        step: int | None
        if is_step(number):
            step = int(number)
            self.steps.set(rank, step)
        else:
            fields = {rank: row[place] for rank, place in columns.steps if row[place].strip()}
            step = self.step_of(fields, self._number, record)
        if step is not None:
            values = self._values(columns, row, record)
            time = to_time(row[columns.time]) if columns.time >= 0 else 0.0
            record.row(step, values, time)

    def _is_no_row(self, row: list[str], rank: int, place: int, record: SourceRecord) -> bool:
        """Return whether this is a comment, or another header of an appended run."""
        if rank == NO_STEP:
            is_header = self._columns is not None and row == self._columns.header
        else:
            is_header = place < len(row) and field_role(row[place]) == rank
        if is_header:
            self._set_header(row, record)
            self._rows_so_far = 0
        return is_header or _is_comment(row[0])

    def _fitted(self, row: list[str], width: int, record: SourceRecord) -> list[str]:
        if len(row) > width and any(row[width:]):
            text = (
                f"It has {len(row)} cells, more than the {width} of the header. "
                "Those beyond are skipped."
            )
            self.report_once(record, "width", f"line {self._number}", text)
        return row[:width] + [""] * (width - len(row))

    def _values(self, columns: _Columns, row: list[str], record: SourceRecord) -> dict[str, float]:
        cells = zip(columns.numbers.names, columns.numbers.of_row(row), strict=True)
        try:
            values = {name: float(cell) for name, cell in cells if cell}
        except ValueError:
            values = self._checked_values(columns, row, record)
        for name in [name for name in self._texts if name in values]:
            self._report_text(name, self._texts.pop(name), record)
        prefix = mode_prefix(row[columns.mode]) if columns.mode >= 0 else ""
        return {prefix + name: value for name, value in values.items()} if prefix else values

    def _checked_values(
        self, columns: _Columns, row: list[str], record: SourceRecord
    ) -> dict[str, float]:
        values = {}
        for name, cell in zip(columns.numbers.names, columns.numbers.of_row(row), strict=True):
            number = to_number(cell)
            if number is not None:
                values[name] = number
            elif not is_undefined(cell):
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


def delimiter_of(header: str) -> str:
    """Return what separates the cells of a header; "" if it is not that of a table of steps.

    It names a step, or only metrics.

    >>> delimiter_of("epoch,  train/loss"), delimiter_of("loss;step"), delimiter_of("time,price")
    (',', ';', '')
    >>> delimiter_of("loss,val_loss,dice_coef,val_dice_coef"), delimiter_of("model,loss")
    (',', '')
    """
    for delimiter in DELIMITERS:
        with suppress(csv.Error):
            names = _names(next(csv.reader([header], delimiter=delimiter), []))
            if len(names) >= _FEWEST_COLUMNS and (_step_columns(names) or _are_metrics(names)):
                return delimiter
    return ""


def _reason(folder: SourceFolder, name: str) -> str:
    """Return why a file is a table of steps; "" if it is none, or may be any kind of log."""
    is_log = name.lower().endswith(LOG_SUFFIXES)
    if not is_log and not name.lower().endswith(SUFFIXES):
        return ""
    header, *rows = _first_rows(folder.head_text(name)) or [[]]
    names = _names(header)
    has_metrics = any(_NAMES(name).collection in {"losses", "metrics"} for name in names)
    if is_log and (not has_metrics or not rows or len(rows[0]) != len(header)):
        return ""
    steps = _step_columns(names)
    if not steps:
        are_numbers = all(len(row) == len(header) and all(map(_is_cell, row)) for row in rows)
        return "its columns are metrics" if len(rows) == _FEWEST_ROWS and are_numbers else ""
    _, column = min(steps)
    if rows and column < len(rows[0]) and isinstance(to_step("", rows[0][column]), str):
        return ""
    return f"its columns include {names[column]!r}"


def _first_rows(text: str) -> list[list[str]]:
    """Return the header and first rows of the start of a table of steps; [] for other files."""
    lines = [line for line in text.splitlines() if line.strip() and not _is_comment(line)]
    delimiter = delimiter_of(lines[0]) if lines else ""
    try:
        rows = csv.reader(lines[: 1 + _FEWEST_ROWS], delimiter=delimiter) if delimiter else ()
        return list(rows)
    except csv.Error:
        return []


def _step_columns(names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the rank and position of each column whose name is that of a step."""
    roles = enumerate(map(field_role, names))
    return [(role, position) for position, role in roles if isinstance(role, int)]


def _are_metrics(names: Sequence[str]) -> bool:
    """Return whether columns without a step are plainly those of a training log.

    One is a loss. Each other one is something that rule-runner knows, a duration, a time, or has a
    twin that begins with ``val_``. A table of other data, or of results by model, has more.
    """
    plain = {name.lower() for name in names}
    return any(_NAMES(name).collection == "losses" for name in names) and all(
        not name
        or _NAMES(name).collection
        or name.lower().endswith(_DURATIONS)
        or field_role(name) == TIME
        or f"val_{name.lower()}" in plain
        or (name.lower().startswith("val_") and name.lower().removeprefix("val_") in plain)
        for name in names
    )


def _is_cell(cell: str) -> bool:
    """Return whether a cell is a number, or says that there is none."""
    return to_number(cell) is not None or is_undefined(cell)


def _names(cells: Sequence[str]) -> list[str]:
    """Return the names of columns."""
    names = [cell.strip() for cell in cells]
    names = ["" if name.lower().startswith(_UNNAMED) else name for name in names]
    if names:
        names[0] = names[0].removeprefix("#").strip()
    return names


def _is_comment(text: str) -> bool:
    """Return whether a line is neither a header nor a row."""
    return text.startswith("#") and not delimiter_of(text)


def _digested(columns: _Columns, row: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and cells of a row that identify it, whatever columns are added."""
    names, cells = columns.every.names, columns.every.of_row(row)
    if "" in cells:
        return tuple(compress(names, cells)), tuple(filter(None, cells))
    return names, cells


FORMAT: Final = LineFormat("csv", _reason, CsvSource)
