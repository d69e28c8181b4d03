"""Table: rows of cells under a header, whatever separates the cells."""

import csv
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import chain, compress, count
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.model.segments import SEGMENT_STEPS
from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.names import NAMES, VALUE, titled
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.row_fields import (
    MODE,
    TIME,
    MetricStreams,
    brief,
    counts_of,
    field_role,
    is_undefined,
    mode_prefix,
    to_number,
    to_time,
)
from rule_core.sources.rows.row_reader import ROWS_OF_COPIES, RowReader
from rule_core.sources.rows.row_steps import EPOCH, NO_COUNTER, ROW, UNNAMED, Count, counter_rank

PIPE: Final = "|"
BLANKS: Final = " "  # any number of them
_UNNAMED: Final = "unnamed: "  # what pandas calls the index that it wrote without a name
_RUNS: Final = frozenset({"seed", "run", "run_id", "run_name", "run_hash", "trial_id", "fold"})
_WORKERS: Final = frozenset({"pid", "process_id", "rank", "local_rank", "worker", "worker_id"})
_METRICS: Final = frozenset({"metric", "metric_name", "name", "key", "tag"})
_CONFIG: Final = "config/"  # settings that some writers repeat in each row
_RANGES: Final = ("__MIN", "__MAX")  # of a mean, in exports of charts
_PLAIN: Final = re.compile(r"[^a-z0-9]+")
_UNIT: Final = re.compile(r"(?:\s?(?:%|[kKMGT]i?B|[mµn]?s|it/s)|\s[A-Za-z/%]{1,8})$")
_GROUPED: Final = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_COMMENT: Final = re.compile(r"^\s*#\s*")
_NUMERIC: Final = frozenset("0123456789.+-")  # with which a number begins
_FEWEST_ROWS: Final = 16  # that are worth adding at once
Report = Callable[[SourceRecord, str, str, str], None]


class Columns:
    """What a header says.

    Parameters
    ----------
    header
        The names of the columns as written.
    title
        What to call the metric of a table that has one, unless its column says more; see `titled`.
    step_column
        The only column that counts rows; "": as the names say.

    Attributes
    ----------
    title
        As given.
    header
        The names as written.
    names
        The names; "" for none.
    problems
        A sentence for each name that occurs twice, by its unique name.
    counters
        The position, name and rank of each column that counts rows, the preferred one first.
    has_title
        Whether the title is the name of the only metric.
    every, numbers
        The positions of all columns, and of those that may hold numbers, by their sorted names.
    time, mode, run, worker, metric
        The positions of these columns; -1 if absent. A column of metrics says the name of each
        row's value.
    """

    def __init__(self, header: Sequence[str], title: str = "", step_column: str = "") -> None:
        self.title = title
        self.header = [*header]
        self.names = names = _clean(header)
        self.problems: dict[str, str] = {}
        unique = self._unique(names)
        self.counters = _counters(names, step_column)
        plain = [_PLAIN.sub("_", name.lower()).strip("_") for name in names]
        roles = [field_role(name) for name in names]
        self.time, self.mode = (_position(roles, {role}) for role in (TIME, MODE))
        self.run, self.worker = _position(plain, _RUNS), _position(plain, _WORKERS)
        value = _position(plain, {VALUE})
        has_metrics = self.counters and value >= 0
        self.metric = _position(plain, _METRICS) if has_metrics else -1
        special = {self.time, self.mode, self.run, *(position for position, _, _ in self.counters)}
        numbers = {
            name: position
            for name, position in unique.items()
            if names[position] and position not in special and not name.startswith(_CONFIG)
            if not (name.endswith(_RANGES) and name[:-5] in unique)
        }
        self.has_title = False
        if self.metric >= 0:
            numbers = {VALUE: value}
        elif len(numbers) == 1:
            [(name, position)] = numbers.items()
            numbers = {titled(name, title): position}
            self.has_title = name not in numbers
        self.every, self.numbers = (dict(sorted(columns.items())) for columns in (unique, numbers))

    def _unique(self, names: Sequence[str]) -> dict[str, int]:
        positions: dict[str, int] = {}
        for position, cell in enumerate(names):
            name = cell or f"column {position + 1}"
            spellings = chain([name], (f"{name}.{repeated}" for repeated in count(1)))
            unique = next(spelling for spelling in spellings if spelling not in positions)
            positions[unique] = position
            if unique != name:
                problem = (
                    f"Several columns are called {name!r}; column {position + 1} is {unique!r}."
                )
                self.problems[unique] = problem
        return positions

    @property
    def has_counter(self) -> bool:
        """Whether a column with a name counts rows."""
        return any(name for _, name, _ in self.counters)

    @property
    def has_loss(self) -> bool:
        """Whether a column is a loss or a metric that is known."""
        return any(NAMES(name).is_metric for name in self.numbers)


class _NumberRows(NamedTuple):
    """Many rows of plain numbers.

    Attributes
    ----------
    steps
        What the preferred counter says; the number of the row if there is none. Shape (rows,).
    ends
        Where a row does not simply follow the one before.
    cells, has_cell
        The numbers, and where there are any. Shape (rows, columns).
    """

    steps: NDArray[np.float64]
    ends: list[int]
    cells: NDArray[np.float64]
    has_cell: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Columns, lines: Sequence[str], delimiter: str) -> "_NumberRows | None":
        """Return lines as a block; None if some are no rows of plain numbers."""
        if not columns.numbers or {
            columns.mode,
            columns.run,
            columns.worker,
            columns.metric,
        } != {-1}:
            return None
        cells, has_cell = _numbers(lines, delimiter)
        if cells.shape != (len(lines), len(columns.header)):
            return None
        counters = {rank: cells[:, position] for position, _, rank in reversed(columns.counters)}
        if 0 in counters and len(counters.keys() - {EPOCH}) > 1:
            return None
        steps = counters[min(counters)] if counters else np.arange(float(len(lines)))
        if not ((steps >= 0) & (steps < SEGMENT_STEPS) & (steps == np.floor(steps))).all():
            return None
        breaks = np.diff(steps) <= 0
        if EPOCH in counters and len(counters) > 1:
            epochs = counters[EPOCH]
            breaks |= (np.diff(epochs) != 0) & (epochs == np.floor(epochs))[1:]
        return cls(steps, (np.flatnonzero(breaks) + 1).tolist(), cells, has_cell)

    def identities(self, every: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], bytes]]:
        """Yield what identifies each row, as `Table.identity` does."""
        names, positions = tuple(every), [*every.values()]
        cells, has_cell = self.cells[:, positions], self.has_cell[:, positions]
        if has_cell.all():
            data, width = cells.tobytes(), cells[:1].nbytes
            return ((names, data[n : n + width]) for n in range(0, len(data), width))
        return (
            (tuple(compress(names, has)), row[has].tobytes())
            for row, has in zip(cells, has_cell, strict=True)
        )


class Table:
    """Reads the rows of one table, and of those that continue it under other headers.

    Parameters
    ----------
    options
        What the user says about names and steps.
    title
        See `Columns`.
    report
        Called with the record, a topic, a part and a sentence for each problem.

    Attributes
    ----------
    columns
        What the header says; None before the first.
    delimiter
        What separates the cells. If it is a semicolon, 1,234 is a little more than one.
    rows
        What gives the rows their steps.
    """

    def __init__(self, options: SourceOptions, title: str, report: Report) -> None:
        self.columns: Columns | None = None
        self.delimiter = ","
        self.rows = RowReader(options)
        self._options = options
        self._title = title
        self._report = report
        self._count = 0  # of rows
        self._rows_count = False  # whether an epoch with a fraction was seen
        self._run = ""
        self._ended: set[str] = set()  # runs
        self._worker = ""  # that wrote the latest row
        self._workers: dict[str, int] = {}  # the stream of each one
        self._readers: dict[int, RowReader] = {}  # of the streams
        self._progress: tuple[float, ...] = ()  # what the latest row counts
        self._segment = self._before_segment = 0  # the number of rows before the segment
        self._streams = MetricStreams()
        self._texts: dict[str, str] = {}  # columns that began with text, and it

    def set_header(self, cells: Sequence[str], record: SourceRecord) -> None:
        """Read the rows that follow by another header."""
        self.columns = Columns(cells, self._title, self._options.step_column)
        for name, problem in self.columns.problems.items():
            self._report(record, f"name {name}", f"column {name!r}", problem)

    def begin_run(self, record: SourceRecord) -> None:
        """Expect the rows of another run."""
        self.rows = RowReader(self._options)
        self._count = 0
        record.begin_segment()

    def is_header(self, row: Sequence[str]) -> bool:
        """Return whether a row is another header."""
        columns = self.columns
        if columns is None or not columns.has_counter:
            return columns is not None and [*row] == columns.header
        position, _, rank = columns.counters[0]
        cell = row[position].strip() if position < len(row) else ""
        return bool(cell) and cell[0] not in _NUMERIC and counter_rank(cell.lstrip("#% ")) == rank

    def identity(self, row: Sequence[str]) -> tuple[tuple[str, ...], object]:
        """Return the names and cells that identify a row, whatever columns are added."""
        if self.columns is None:
            return (), tuple(row)
        cells = {name: row[position] for name, position in self.columns.every.items()}
        if "" in cells.values():
            cells = {name: cell for name, cell in cells.items() if cell}
        try:
            return tuple(cells), array("d", map(float, cells.values())).tobytes()
        except ValueError:
            return tuple(cells), tuple(cells.values())

    def add(self, row: Sequence[str], line: int, record: SourceRecord) -> None:
        """Pass a row on that has a cell for each column.

        Parameters
        ----------
        line
            The number of its line.
        """
        columns = self.columns
        if columns is None:
            return
        if columns.run >= 0 and not self._is_of_run(row[columns.run].strip(), record):
            return
        counts = counts_of(
            [(name, row[position], rank) for position, name, rank in columns.counters]
        )
        if isinstance(counts, str):
            if columns.has_counter:
                self._report(record, "step", f"line {line}", counts)
                return
            counts = []
        self._rows_count = self._rows_count or not all(is_step(count.value) for count in counts)
        if not columns.has_counter and not counts:
            counts = [Count(ROW, UNNAMED, self._count)]
        self._count += 1
        values = self._values(columns, row, line, record)
        if columns.metric >= 0:
            name = row[columns.metric].strip()
            if not values or not name:
                return
            self._streams.choose(name, record)
            values = {name: values[VALUE]}
        elif columns.worker >= 0:
            self._turn_to(row[columns.worker].strip(), counts, record)
        prefix = mode_prefix(row[columns.mode]) if columns.mode >= 0 else ""
        time = to_time(row[columns.time]) if columns.time >= 0 else 0.0
        self.rows.add(values, counts, record, prefix, time)

    def _is_of_run(self, run: str, record: SourceRecord) -> bool:
        """Return whether a row is read, after beginning a segment if its run is another one."""
        if run in self._ended:
            problem = f"Rows of several runs alternate; those of {brief(run)} are cut."
            self._report(record, "runs", "", problem)
            return False
        if run and run != self._run:
            if self._run:
                self._ended.add(self._run)
                self.begin_run(record)
            self._run = run
        return True

    def _turn_to(self, worker: str, counts: Sequence[Count], record: SourceRecord) -> None:
        """Read a row of a worker, of which each that was there from the start has its own axis.

        Any other one has taken the place of the worker that wrote the row before.
        """
        if record.segment > self._segment:  # all of them begin anew
            self._segment, self._before_segment = record.segment, self._count - 1
            self._workers = {self._worker: record.stream}
            self._readers = {record.stream: self.rows}
        progress = tuple(count.value for count in reversed(counts))
        rows = self._count - self._before_segment
        is_beside = progress <= self._progress and rows <= ROWS_OF_COPIES * len(self._workers)
        self._worker, self._progress = worker, progress
        if worker not in self._workers:
            free = (stream for stream in count() if stream not in self._readers)
            self._workers[worker] = next(free) if is_beside else record.stream
        self._readers.setdefault(record.stream, self.rows)
        record.turn_to(self._workers[worker])
        self.rows = self._readers.setdefault(record.stream, RowReader(self._options))

    def _values(
        self, columns: Columns, row: Sequence[str], line: int, record: SourceRecord
    ) -> dict[str, float]:
        values = {}
        for name, position in columns.numbers.items():
            cell = row[position]
            if not cell:
                continue
            try:
                values[name] = float(cell)
            except ValueError:
                value = cell_number(cell, has_decimal_commas=self.delimiter == ";")
                if value is not None:
                    values[name] = value
                elif not is_undefined(cell):
                    self._texts.setdefault(name, cell)
        for name in [name for name in self._texts if name in values or name in record.columns]:
            problem = (
                f"{brief(self._texts.pop(name))} in line {line} or before is not a number. "
                "Such cells are skipped."
            )
            self._report(record, f"cell {name}", f"column {name!r}", problem)
        return values

    # -- many rows ---------------------------------------------------------------------------

    def add_block(
        self,
        lines: Sequence[str],
        first_line: int,
        record: SourceRecord,
        count_delivered: Callable[[Iterable[object]], int],
    ) -> bool:
        """Pass many rows of plain numbers on, as `add` does one after the other, but faster.

        Parameters
        ----------
        lines
            Their lines.
        first_line
            The number of the first one.
        count_delivered
            Returns how many of the rows were given before, by their identities.

        Returns
        -------
        bool
            Whether they are such rows; nothing was read if they are not.
        """
        columns = self.columns
        if columns is None or self._texts or self._rows_count:
            return False
        block = _NumberRows.of(columns, lines, self.delimiter)
        if block is None:
            return False
        first = count_delivered(block.identities(columns.every))
        if not columns.counters:
            block = block._replace(steps=block.steps + (self._count - first))

        def add_each(rows: range) -> None:
            cells = split(lines[rows.start : rows.stop], self.delimiter)
            for position, row in zip(rows, cells, strict=True):
                self.add(row, first_line + position, record)

        for end in (*block.ends, len(lines)):
            rows = range(first, end)
            first = max(first, end)
            if len(rows) < _FEWEST_ROWS:
                add_each(rows)
                continue
            # The counter grows: the first two rows and the last two show where the others are.
            add_each(rows[:1])
            before = self.rows.steps.last
            add_each(rows[1:2])
            after = self.rows.steps.last
            first_step, second_step = block.steps[rows.start : rows.start + 2].tolist()
            if after - before == second_step - first_step:
                self._add_middle(
                    columns, slice(rows[2], rows[-2]), after - int(second_step), record, block
                )
            else:
                add_each(rows[2:-2])
            add_each(rows[-2:])
        return True

    def _add_middle(
        self, columns: Columns, rows: slice, base: int, record: SourceRecord, block: _NumberRows
    ) -> None:
        """Pass on rows of a block whose steps follow from their counters."""
        names, positions = tuple(columns.numbers), [*columns.numbers.values()]
        cells, chosen = block.cells[rows], block.has_cell[rows][:, positions].ravel()
        steps = block.steps[rows].astype(np.int64) + base
        times = np.zeros(len(steps))
        if columns.time >= 0:
            times = np.array([*map(to_time, cells[:, columns.time].tolist())])
        record.points(
            names,
            np.tile(np.arange(len(names)), len(steps))[chosen],
            np.repeat(steps, len(names))[chosen],
            cells[:, positions].ravel()[chosen],
            np.repeat(times, len(names))[chosen],
        )
        self._count += len(steps)


def split(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of lines.

    Raises
    ------
    csv.Error
        If a cell is too long.
    """
    if delimiter == BLANKS:
        return (_COMMENT.sub("#", line).split() for line in lines)
    if delimiter == PIPE:
        return (line.strip().removeprefix(PIPE).removesuffix(PIPE).split(PIPE) for line in lines)
    return csv.reader(lines, delimiter=delimiter)


def cell_number(cell: str, *, has_decimal_commas: bool = False) -> float | None:
    """Return the number of a cell, perhaps with a unit; None if it is none.

    >>> cell_number("20.4%"), cell_number("9,000 MiB"), cell_number("2,5"), cell_number("1.234,5")
    (20.4, 9000.0, 2.5, 1234.5)
    >>> cell_number("1,234"), cell_number("1,234", has_decimal_commas=True), cell_number("7f")
    (1234.0, 1.234, None)
    """
    cell = cell.strip()
    if cell[:1] in _NUMERIC:
        cell = _UNIT.sub("", cell)
        if _GROUPED.fullmatch(cell) and ("." in cell or not has_decimal_commas):
            cell = cell.replace(",", "")
        elif cell.count(",") == 1:
            cell = cell.replace(".", "").replace(",", ".")
    return to_number(cell)


def _numbers(lines: Sequence[str], delimiter: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of rows, NaN for empty cells, and which are not empty.

    If there is anything else, the shape is that of no rows.
    """
    separator = None if delimiter == BLANKS else delimiter
    try:
        if lines[0].strip():  # of blank lines alone loadtxt warns
            cells = np.loadtxt(lines, delimiter=separator, ndmin=2, comments=None)
            return cells, np.ones(cells.shape, bool)
    except ValueError:
        content = "\n".join(lines)
        if separator and "nan" not in content.lower():
            empty = rf"(?:(?<={separator})|^)(?={separator}|$)"
            filled = re.sub(empty, "nan", content, flags=re.MULTILINE).split("\n")
            with suppress(ValueError):
                cells = np.loadtxt(filled, delimiter=separator, ndmin=2, comments=None)
                return cells, ~np.isnan(cells)
    return np.empty((0, 0)), np.empty((0, 0), bool)


def _clean(header: Sequence[str]) -> list[str]:
    """Return the names of columns; "" for none."""
    names = [cell.strip() for cell in header]
    names = ["" if name.lower().startswith(_UNNAMED) else name for name in names]
    if names:
        names[0] = names[0].lstrip("#% ")
    return names


def _position(values: Sequence[object], names: AbstractSet[object]) -> int:
    """Return the position of the first value that is among some names; -1 if there is none."""
    return next((position for position, value in enumerate(values) if value in names), -1)


def _counters(names: Sequence[str], step_column: str) -> list[tuple[int, str, int]]:
    """Return the columns that count rows: by their whole names, or else by the ends of these."""

    def ranked(rank_of: Callable[[str], int]) -> list[tuple[int, str, int]]:
        ranks = [(position, name, rank_of(name)) for position, name in enumerate(names)]
        return sorted((x for x in ranks if x[2] < NO_COUNTER), key=itemgetter(2))

    if step_column == ROW:
        return []
    if step_column:
        return ranked(lambda name: 0 if name == step_column else NO_COUNTER)
    counters = ranked(counter_rank) or ranked(
        lambda name: counter_rank(name.rpartition("/")[2].removesuffix("_seen"))
    )
    is_index = not counters and bool(names) and not names[0]
    return [(0, "", UNNAMED)] if is_index else counters
