"""Reader of Jupyter notebooks: what the cells of a training printed, and the tables they showed."""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

import msgspec

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.documents.document_source import DocumentError, DocumentSource, Rows
from rule_core.sources.format import HEAD_BYTES, Recognized, SourceFolder
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.delivered_rows import DeliveredRows, RowsDifferError
from rule_core.sources.rows.line_source import LineFormat
from rule_core.sources.rows.table import Columns, Table
from rule_core.sources.rows.text_log import TextLines, what_counts
from rule_core.storage.base import TrialStore

SUFFIX: Final = ".ipynb"
MAX_CELL: Final = 1000  # characters of a table's cell
_TAG: Final = re.compile(r"<(/?)(table|tr|t[hd])\b[^<>]*>", re.IGNORECASE)
_BAR: Final = re.compile(r"\s*\d+/\d+ \[")  # drawn anew, after another stream has interrupted it
_ANY_TAG: Final = re.compile(r"<[^<>]*>")
_LONGEST: Final = 64 << 20  # bytes of a notebook
_Text = str | list[str]


class _RichOutput(msgspec.Struct):
    """An output in several types, the richest of which is shown; images are passed over unread."""

    html: _Text = msgspec.field(default="", name="text/html")
    plain: _Text = msgspec.field(default="", name="text/plain")


class _CellOutput(msgspec.Struct):
    """What a cell printed to a stream, or showed."""

    name: str = ""
    text: _Text = ""
    data: _RichOutput = msgspec.field(default_factory=_RichOutput)


class _NotebookCell(msgspec.Struct):
    """A cell; what it says is not read, only what came of it."""

    cell_type: str = ""
    outputs: list[_CellOutput] = []


class _Notebook(msgspec.Struct):
    """A notebook of format 4."""

    cells: list[_NotebookCell] = []


_decoder: Final = msgspec.json.Decoder(_Notebook)


class OutputRow(NamedTuple):
    """A row of a table in a notebook; `table` is the number of the table."""

    table: int
    header: tuple[str, ...]
    cells: tuple[str, ...]


class NotebookSource(DocumentSource):
    """Reads one notebook. See ``docs/sources/README.md`` for what it accepts."""

    def __init__(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> None:
        super().__init__(store, recognized, options)
        self._delivered_rows = DeliveredRows()
        self._outputs: list[str | OutputRow] = []
        self._begin()

    def _begin(self) -> None:
        self._lines = TextLines(self.options)
        self._table: Table | None = None
        self._number = 0  # of the table

    def decisions(self) -> list[str]:
        """Return how the steps were chosen; see `DecidingSource`."""
        self._rows = (self._table or self._lines).rows
        return super().decisions()

    def rows(self, data: bytes, key: str, *, is_last: bool) -> Rows:
        """Keep the lines and rows of a notebook, which have no fields yet."""
        del key, is_last
        self._outputs = [*outputs(data)]
        return ()

    def _deliver(self, record: SourceRecord) -> None:
        self._delivered_rows.restart()
        try:
            self._add(record)
        except RowsDifferError:
            self._delivered_rows.clear()
            self._begin()
            record.begin_segment()
            self._add(record)
        self._lines.end(record)

    def _add(self, record: SourceRecord) -> None:
        for output in self._outputs:
            if not self._delivered_rows.is_new(output):
                continue
            if isinstance(output, str):
                self._lines.add_line(output, record)
                continue
            if self._table is None or output.table != self._number:
                self._number = output.table
                self._table = Table(self.options, "", _ignore)
                self._table.set_header(output.header, record)
                record.begin_segment()
            self._table.add(output.cells, 0, record)


def _ignore(*_: object) -> None:
    """Report nothing: cells such as a duration are no damage."""


def outputs(data: bytes) -> Iterator[str | OutputRow]:
    """Yield the lines and rows of the outputs of a notebook, in the order shown.

    Raises
    ------
    DocumentError
        If it is no notebook.
    """
    try:
        notebook = _decoder.decode(data)
    except (ValueError, RecursionError) as err:
        raise DocumentError(f"it is no notebook: {err}") from None
    tables = count(1)
    for cell in notebook.cells:
        streams: dict[str, str] = {}  # the starts of lines that another output may end
        for output in cell.outputs if cell.cell_type == "code" else ():
            shown_html = "".join(output.data.html)
            plain = "".join(output.data.plain)
            is_shown = shown_html or plain.startswith("<")  # <Figure size 640x480 with 1 Axes>
            printed = "".join(output.text) or ("" if is_shown else plain + "\n")
            start = streams.get(output.name, "")
            again = "\r" if start and _BAR.match(printed) else ""
            *lines, streams[output.name] = (start + again + printed).split("\n")
            yield from filter(None, lines)
            for header, *rows in tables_of(shown_html):
                table = next(tables)
                yield from (OutputRow(table, header, row) for row in rows)
        yield from filter(None, streams.values())


def tables_of(document: str) -> Iterator[list[tuple[str, ...]]]:
    """Yield the tables of a training in an HTML text: the header and the rows.

    Those with an index without a name are left out: they show a data frame again.

    >>> list(tables_of("<table><tr><th>step<th>loss</tr><tr><td>1<td><b>2</b></tr></table>"))
    [[('step', 'loss'), ('1', '2')]]
    """
    rows: list[tuple[str, ...]] = []
    row: list[str] = []
    start = -1  # of the cell
    for match in _TAG.finditer(document):
        end, name = match[1], match[2].lower()
        if start >= 0:
            cell = _ANY_TAG.sub("", document[start : match.start()][:MAX_CELL])
            row.append(html.unescape(cell).strip())
        start = match.end() if name in {"th", "td"} and not end else -1
        if name in {"tr", "table"} and row:
            rows.append(tuple(row))
            row = []
        if name == "table":
            yield from _trained(rows)
            rows = []
    yield from _trained(rows)


def _trained(rows: Sequence[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the rows of a table if it is that of a training."""
    if rows and all(rows[0]):
        columns = Columns(rows[0])
        if columns.has_counter and columns.has_loss:
            yield [row for row in rows if len(row) == len(rows[0])]


def _reason(folder: SourceFolder, name: str) -> str:
    if not name.endswith(SUFFIX):
        return ""
    content = folder.head(name)
    if len(content) >= HEAD_BYTES:
        content = folder.head(name, _LONGEST)
    shown: list[str | OutputRow] = []
    with suppress(DocumentError):
        shown += outputs(content)
    if any(isinstance(output, OutputRow) for output in shown):
        return "its cells show the table of a training"
    return what_counts("\n".join(output for output in shown if isinstance(output, str)))


FORMAT: Final = LineFormat("notebook", _reason, NotebookSource)
