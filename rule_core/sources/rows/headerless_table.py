"""Reader of numbers without a header, in files whose names say what they are."""

import csv
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice, pairwise
from typing import Final

from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.format import SourceFolder
from rule_core.sources.names import NAMES, title_of
from rule_core.sources.rows import csv_table
from rule_core.sources.rows.line_source import LineFormat
from rule_core.sources.rows.row_fields import first_count, to_number
from rule_core.sources.rows.table import cell_number, split
from rule_core.sources.text.compressed_file import plain_name

_ENDS: Final = ",; \t"  # of a line


class HeaderlessSource(csv_table.CsvSource):
    """Reads one table whose columns are called after its file."""

    def find_header(self, line: str, record: SourceRecord) -> None:
        """Look at a line that may be the first row; see `CsvSource`."""
        title = title_of(self._key)
        delimiter, header = header_by_title(line, title)
        if not delimiter:
            super().find_header(line, record)
            return
        self.delimiter = self.table.delimiter = delimiter
        self.table.set_header(header, record)
        if line.strip() != "0" or NAMES(title).collection != "losses":  # which pandas calls "0"
            self.add_row(next(split([line], delimiter)), record)


def header_by_title(line: str, title: str) -> tuple[str, list[str]]:
    """Return what separates the numbers of a line, and a header for them; "" and [] for none.

    A single number is the metric that the title says. Of several ones the first counts, and the
    next is the metric; it has no name if the title says only a log of a set. If commas separate
    more, a header was forgotten that would say which column is which.

    >>> header_by_title("0.5", "val_loss"), header_by_title("0 0.5 0.25", "train_log")
    ((',', ['val_loss']), (' ', ['', 'column 2', 'column 3']))
    >>> header_by_title("0,0.5", "train")
    ('', [])
    """
    has_metric = NAMES(title).is_metric
    for delimiter in csv_table.DELIMITERS if _is_telling(title) else ():
        with suppress(csv.Error):
            cells = next(split([line.rstrip(_ENDS)], delimiter), [])
            if not cells or None in map(cell_number, cells):
                continue
            if len(cells) == 1:
                is_whole = to_number(cells[0]) is not None or "," not in cells[0]
                return (delimiter, [title]) if is_whole else ("", [])
            count = first_count("step", cells[0])
            is_unsure = has_metric and delimiter == "," and len(cells) > csv_table.MIN_COLUMNS
            if count and is_step(count.value) and cells[1:] and not is_unsure:
                names = ["", *(f"column {position}" for position in range(2, len(cells) + 1))]
                return delimiter, ["", title, *names[2:]] if has_metric else names
            if len(cells) == csv_table.MIN_COLUMNS and "." in cells[0]:  # two metrics
                return delimiter, [title if has_metric else "column 1", "column 2"]
            break
    return "", []


def _is_telling(title: str) -> bool:
    """Return whether the name of a file says a metric, or a log of a set."""
    meaning = NAMES(title)
    return meaning.is_metric or (
        meaning.says_mode and csv_table.LOG_TITLE.fullmatch(title) is not None
    )


def _reason(folder: SourceFolder, name: str) -> str:
    if not plain_name(name).lower().endswith((*csv_table.SUFFIXES, *csv_table.LOG_SUFFIXES)):
        return ""
    title = title_of(folder.key + name)
    if not _is_telling(title):
        return ""
    complete = folder.head_text(name).rpartition("\n")[0].splitlines()
    content = (x.rstrip(_ENDS) for x in complete if x.strip() and not csv_table.is_note(x))
    lines = [*islice(content, csv_table.MAX_ROWS)]
    delimiter, names = header_by_title(lines[0], title) if lines else ("", [])
    with suppress(csv.Error):
        rows = [*split(lines, delimiter)] if delimiter else []
        if rows and all(len(row) == len(names) for row in rows) and _are_series(rows, names):
            return f"its name says that its numbers are {names[-1]!r}"
    return ""


def _are_series(rows: Sequence[Sequence[str]], names: Sequence[str]) -> bool:
    """Return whether rows of numbers are those of a run: a first column without a name counts."""
    firsts = [value for row in rows if (value := cell_number(row[0])) is not None]
    if names[0]:
        counts = len(names) == 1 or all("." in row[0] for row in rows)
    else:
        counts = all((y > x or y <= firsts[0]) and y.is_integer() for x, y in pairwise(firsts))
    is_curve = csv_table.is_curve([row[:2][-1] for row in rows])
    return len(firsts) == len(rows) and counts and (is_curve or "rew" in names[-1].lower())


FORMAT: Final = LineFormat("headerless", _reason, HeaderlessSource)
