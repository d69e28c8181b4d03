"""Reader of tables in text: CSV and TSV files of Lightning, Keras, YOLO and others."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import SourceFolder, Unreadable
from rule_core.sources.names import NAMES, title_of
from rule_core.sources.rows.line_source import LineFormat, LineSource
from rule_core.sources.rows.row_fields import TIME, brief, field_role, first_count, is_undefined
from rule_core.sources.rows.table import BLANKS, PIPE, Columns, Table, cell_number, split
from rule_core.sources.text.compressed_file import plain_name

SUFFIXES: Final = (".csv", ".tsv")
LOG_SUFFIXES: Final = (".log", ".txt", ".dat", ".report")  # training.log of Keras users
MODEL_CARD: Final = "readme.md"
DELIMITERS: Final = (",", "\t", ";", PIPE, BLANKS)
MAX_JOINED: Final = 16  # lines of one quoted cell
ROWS_AT_ONCE: Final = 2048
MIN_COLUMNS: Final = 2  # a step and a number
_FEWEST_ROWS: Final = 2  # of a table without steps: a single row sums up a run
_FEWEST_CURVES: Final = 2  # columns of unknown names whose numbers change
MAX_ROWS: Final = 100  # that are looked at
_SHOWN: Final = 4  # names in a reason
_DURATIONS: Final = ("time", "seconds", "elapsed", "runtime", "duration")
_SAMPLES: Final = re.compile(
    r"y|y_(true|pred|prob|hat)|labels?|targets?|pred(s|iction|ictions|icted)?|prob(ability)?"
)
_SETTING: Final = re.compile(r"(?i)(config|params|hparams|hyperparameters)[/._]")
LOG_TITLE: Final = re.compile(r"(?i)(.*[/ _-])?(logs?|hist|history|progress|curves?)([/ _-].*)?")
_UNITS: Final = re.compile(r"\s*\[[^\[\]]{0,20}\]\s*")


class CsvSource(LineSource):
    """Reads one table. See ``docs/sources/README.md`` for what it accepts.

    Attributes
    ----------
    table
        Reads its rows.
    delimiter
        What separates the cells; None before the header, "" if there is none.
    """

    def begin(self) -> None:
        """Forget the rows; see `LineSource`."""
        self.table = Table(self.options, title_of(self._key), self.report_once)
        super().begin()

    def restart(self) -> None:
        """Forget the header; see `LineSource`."""
        self.table.columns = None
        self.delimiter: str | None = None
        self._has_notes = False
        self._open: list[str] = []  # lines of a quoted cell
        self._number = 0
        self._is_card = self._key.lower().endswith(MODEL_CARD)

    def decisions(self) -> list[str]:
        """Return how the steps were chosen; see `DecidingSource`."""
        self.rows = self.table.rows
        return super().decisions()

    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass rows on; see `LineSource`."""
        self._number = first - 1
        while block := [*islice(lines, ROWS_AT_ONCE)]:
            if self._add_block(block, record):
                self._number += len(block)
            else:
                self._add_rows(self._joined(block, record), record)

    def add_rest(self, record: SourceRecord) -> None:
        """Pass on the lines of a cell whose quote was never closed; see `LineSource`."""
        if self._open:
            self._add_rows(self._unquoted(record), record)

    # -- lines to rows -----------------------------------------------------------------------

    def _joined(self, lines: Iterable[str], record: SourceRecord) -> Iterator[str]:
        """Yield the text of each row; a quoted cell may contain ends of lines."""
        for line in lines:
            self._number += 1
            if '"' not in line and not self._open:
                yield line
                continue
            self._open.append(line)
            if sum(opened.count('"') for opened in self._open) % 2 == 0:
                yield "\n".join(self._open)
                self._open.clear()
            elif len(self._open) >= MAX_JOINED:
                yield from self._unquoted(record)

    def _unquoted(self, record: SourceRecord) -> list[str]:
        start = f"line {self._number - len(self._open) + 1}"
        self.report_once(record, "quote", start, "Its quote is not closed.")
        lines = []
        for line in self._open:
            complete, _, cell = line.rpartition('"')
            is_text = line.count('"') % 2 > 0 and (self.delimiter or DELIMITERS[0]) in cell
            lines.append(complete if is_text else line.replace('"', ""))
        self._open.clear()
        return lines

    def _add_block(self, lines: Sequence[str], record: SourceRecord) -> bool:
        """Pass many rows on at once; return whether they are rows of plain numbers."""
        if not self.delimiter or self._open or self.delimiter == PIPE:
            return False
        return self.table.add_block(lines, self._number + 1, record, self.delivered.count_delivered)

    def _add_rows(self, lines: Iterable[str], record: SourceRecord) -> None:
        for line in lines:
            if self.delimiter == PIPE and self._is_card and PIPE not in line:
                self.delimiter = None  # the table ends
            if self.delimiter is None:
                self.find_header(line, record)
            elif self.delimiter:
                try:
                    for row in split([line], self.delimiter):
                        self.add_row(row, record)
                except csv.Error as err:
                    problem = f"It cannot be read: {err}. Such lines are skipped."
                    self.report_once(record, "syntax", f"line {self._number}", problem)

    def find_header(self, line: str, record: SourceRecord) -> None:
        """Look at a line that may be the header."""
        if not line.strip() or is_note(line):
            self._has_notes = self._has_notes or "{" in line
            return
        title, column = title_of(self._key), self.options.step_column
        delimiter = delimiter_of(line, title, column, has_notes=self._has_notes)
        if self._is_card and delimiter != PIPE:
            return
        self.delimiter = delimiter
        if delimiter:
            self.table.delimiter = delimiter
            self.table.set_header(next(split([line], delimiter)), record)
        else:
            problem = (
                "Its first line names neither a column of steps, such as step or epoch, nor only "
                f"metrics, such as loss and val_loss: {brief(line)}."
            )
            self.report_once(record, "header", "", problem)

    def add_row(self, row: list[str], record: SourceRecord) -> None:
        """Pass a row on, unless it was given before or is no row."""
        table, columns = self.table, self.table.columns
        if columns is None or not row:
            return
        if table.is_header(row):
            table.set_header(row, record)
            if self.delivered.is_new(tuple(row)) and not columns.has_counter:
                table.begin_run(record)
            return
        if row[0].startswith("#") or _is_rule(row, self.delimiter or ""):
            return
        width = len(columns.header)
        if len(row) > width and any(row[width:]):
            problem = (
                f"It has {len(row)} cells, more than the {width} of the header. "
                "Those beyond are skipped."
            )
            self.report_once(record, "width", f"line {self._number}", problem)
        row = row[:width] + [""] * (width - len(row))
        if self.delivered.is_new(table.identity(row)):
            table.add(row, self._number, record)


def delimiter_of(header: str, title: str, step_column: str = "", *, has_notes: bool = False) -> str:
    """Return what separates the cells of a header; "" if it is not that of a table of steps.

    It names a step, or only metrics.

    Parameters
    ----------
    title
        What the name of the file says; see `title_of`.
    step_column
        The name of the column of steps, if the user says it.
    has_notes
        Whether a line of JSON precedes it, so that the names may be any.

    >>> [delimiter_of(line, "") for line in ("epoch,  train/loss", "loss;step", "time,price")]
    [',', ';', '']
    >>> [delimiter_of(line, "") for line in ("loss,val_loss,dice_coef,val_dice_coef", "model,loss")]
    [',', '']
    >>> [delimiter_of(line, "") for line in ("# epoch  loss", "|Epoch|Loss|", "epoch 1 loss")]
    [' ', '|', '']
    """
    for delimiter in DELIMITERS:
        with suppress(csv.Error):
            columns = Columns(next(split([header], delimiter), []), title)
            has_step = columns.has_counter or step_column in filter(None, columns.names)
            if len(columns.names) < MIN_COLUMNS:
                continue
            if delimiter == BLANKS:
                is_plain = not any(character in header for character in ":=,;|")
                has_numbers = any(cell_number(name) is not None for name in columns.names)
                if is_plain and not has_numbers and has_step and columns.has_loss:
                    return delimiter
            elif has_step or _are_metrics(columns) or has_notes:
                return delimiter
    is_one = NAMES(title).is_metric and not any(map(header.__contains__, DELIMITERS[:-1]))
    return DELIMITERS[0] if is_one and Columns([header]).has_loss else ""


def _reason(folder: SourceFolder, name: str) -> str | Unreadable:
    """Return why a file is a table of steps, or why it is none; "" if it may be any kind of log."""
    plain = plain_name(name).lower()
    is_log = plain.endswith((*LOG_SUFFIXES, MODEL_CARD))
    if not is_log and not plain.endswith(SUFFIXES):
        return ""
    title = title_of(folder.key + name)
    header, rows, has_notes = _head(folder.head_text(name), title, is_card=plain == MODEL_CARD)
    column = folder.options.step_column
    columns = Columns(header, title, column if column in map(str.strip, header) else "")
    if is_log and not (columns.has_loss and rows and len(rows[0]) == len(header)):
        return ""
    reason = _reading(columns, rows, has_notes=has_notes)
    if reason or is_log or len(header) < MIN_COLUMNS:
        return reason
    doubt = _doubt(columns, rows)
    return Unreadable(folder.key + name, doubt) if doubt else ""


def _head(head: str, title: str, *, is_card: bool) -> tuple[list[str], list[list[str]], bool]:
    """Return the header and first rows at the start of a file, and whether JSON precedes them."""
    lines = [line for line in head.splitlines() if line.strip()]
    has_notes, delimiter = False, ""
    for start, line in enumerate(lines):
        is_header = not is_note(line)
        has_notes = has_notes or ("{" in line and not is_header)
        delimiter = delimiter_of(line, title, has_notes=has_notes) if is_header else ""
        if delimiter == PIPE if is_card else is_header:
            lines = lines[start:]
            break
    else:
        return [], [], has_notes
    body = [line for line in lines[:MAX_ROWS] if not is_note(line)]
    if len(body) > _FEWEST_ROWS and not head.endswith("\n") and len(body) >= len(lines):
        body.pop()
    if "\0" not in body[0]:
        with suppress(csv.Error):
            delimiter = delimiter or next((d for d in DELIMITERS[:-1] if d in body[0]), "")
            header, *rows = [*split(body, delimiter)] if delimiter else [[]]
            rows = [row for row in rows if len(header) == 1 or any(row[1:])]  # without prose
            return header, [row for row in rows if not _is_rule(row, delimiter)], has_notes
    return [], [], has_notes


def _is_rule(row: Sequence[str], delimiter: str) -> bool:
    """Return whether a row is between a header and its rows, as in Markdown, or holds units."""
    return all(map(_UNITS.fullmatch, row)) or (delimiter == PIPE and {*"".join(row)} <= {*":- "})


def _reading(columns: Columns, rows: Sequence[Sequence[str]], *, has_notes: bool) -> str:
    """Return why a table is the log of a training; "" if it is not surely one."""
    full = [row for row in rows if len(row) == len(columns.header)]
    if not columns.has_counter:
        is_log = has_notes or _are_metrics(columns)
        are_numbers = all(all(map(_is_cell, row)) for row in rows[:_FEWEST_ROWS])
        is_whole = full[:_FEWEST_ROWS] == rows[:_FEWEST_ROWS] and len(full) >= _FEWEST_ROWS
        return "its columns are metrics" if is_log and are_numbers and is_whole else ""
    if _wrong_count(columns, rows):
        return ""
    is_known = (
        columns.has_title
        or columns.metric >= 0
        or any(NAMES(name).collection for name in columns.numbers)
    )
    if not is_known:
        cells = [[row[position] for row in full] for position in columns.numbers.values()]
        if sum(map(is_curve, cells)) < _FEWEST_CURVES or _sample_column(columns):
            return ""
    return f"its columns include {columns.counters[0][1]!r}"


def _doubt(columns: Columns, rows: Sequence[Sequence[str]]) -> str:
    """Return why a table is not read; "" if it may become one that is."""
    if all(_is_cell(cell) for cell in columns.header) and any(columns.names):
        return (
            "its first line holds numbers, not the names of columns: "
            "add a header such as step,loss,val_loss"
        )
    if not rows:
        return ""
    if wrong := _wrong_count(columns, rows):
        return wrong
    setting = next(filter(_SETTING.match, columns.names), "")
    if not columns.has_counter and setting:
        return f"each row is a training of its own, with settings such as {setting!r}"
    if sample := _sample_column(columns):
        return f"its rows are samples of a data set, with the column {sample!r}, and hold no loss"
    names = ", ".join(filter(None, columns.names[:_SHOWN]))
    lack = (
        "no loss or metric that is known"
        if columns.has_counter
        else "nothing that counts rows, such as step, epoch or what --step-column names"
    )
    return f"its columns ({names}) include {lack}: the rows may be samples of a data set"


def _wrong_count(columns: Columns, rows: Sequence[Sequence[str]]) -> str:
    """Return a reason if the first cell of the preferred counter is no count."""
    for position, name, rank in columns.counters[:1]:
        cell = rows[0][position] if rows and position < len(rows[0]) else ""
        if not is_undefined(cell) and name and first_count(name, cell, rank) is None:
            return f"its column {name!r} holds {brief(cell)}, which is no count"
    return ""


def is_curve(cells: Sequence[str]) -> bool:
    """Return whether a column holds fractions that change."""
    values = {value for value in map(cell_number, cells) if value is not None}
    return len(values) > 1 and any(not value.is_integer() for value in values)


def _sample_column(columns: Columns) -> str:
    """Return the name of a column that tables of samples have; "" for none."""
    if columns.has_loss:
        return ""
    return next((name for name in columns.names if _SAMPLES.fullmatch(name.lower())), "")


def _are_metrics(columns: Columns) -> bool:
    """Return whether columns without a step are plainly those of a training log.

    One is a loss or a metric in a file that is called a log. So it is in one that is called after
    a metric, if it is the only one or pandas has numbered the rows. Otherwise, one is a loss, and
    each other one is something that rule-runner knows, a duration, a time, or has a twin that
    begins with ``val_``. A table of other data, or of results by model, has more.
    """
    is_numbered = len(columns.numbers) == 1 or bool(columns.counters)
    is_metric = NAMES(columns.title).is_metric and is_numbered
    if (is_metric or LOG_TITLE.fullmatch(columns.title)) and columns.has_loss:
        return True
    names, plain = columns.names, [name.lower() for name in columns.names]
    twins = {f"val_{name}" for name in plain}.intersection(plain)
    return any(NAMES(name).collection == "losses" for name in names) and all(
        not name
        or NAMES(name).collection
        or name.lower().endswith(_DURATIONS)
        or field_role(name) == TIME
        or not twins.isdisjoint({name.lower(), f"val_{name.lower()}"})
        for name in names
    )


def _is_cell(cell: str) -> bool:
    """Return whether a cell is a number, or says that there is none."""
    return cell_number(cell) is not None or is_undefined(cell)


def is_note(line: str) -> bool:
    """Return whether a line is neither a header nor a row, such as a comment."""
    if line.startswith("#"):
        return not delimiter_of(line, "")
    return line.lower().startswith(("{", "sep="))


FORMAT: Final = LineFormat("csv", _reason, CsvSource)
