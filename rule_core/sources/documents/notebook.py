"""Reader of Jupyter notebooks: what the cells of a training printed, and the tables they showed."""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
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
_ANY_TAG: Final = re.compile(r"<[^<>]*>")
_LONGEST: Final = 64 << 20  # bytes of a notebook
_Text = str | list[str]


class _Data(msgspec.Struct):
    """An output in several types, the richest of which is shown; images are passed over unread."""

    html: _Text = msgspec.field(default="", name="text/html")
    plain: _Text = msgspec.field(default="", name="text/plain")


class _Output(msgspec.Struct):
    """What a cell printed to a stream, or showed."""

    output_type: str = ""
    name: str = ""
    text: _Text = ""
    data: _Data = msgspec.field(default_factory=_Data)


class _Cell(msgspec.Struct):
    """A cell; what it says is not read, only what came of it."""

    cell_type: str = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    """A notebook of format 4."""

    cells: list[_Cell] = []


_decoder: Final = msgspec.json.Decoder(_Notebook)


class _Part(NamedTuple):
    """A line of text, or a row of a table.

    Attributes
    ----------
    text
        The line; "" for a row.
    table
        The number of the table in the notebook; 0 for a line.
    header, row
        The cells.
    """

    text: str = ""
    table: int = 0
    header: tuple[str, ...] = ()
    row: tuple[str, ...] = ()


class NotebookSource(DocumentSource):
    """Reads one notebook. See ``docs/sources/README.md`` for what it accepts."""

    def __init__(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> None:
        super().__init__(store, recognized, options)
        self._delivered = DeliveredRows()
        self._parts: list[_Part] = []
        self._begin()

    def _begin(self) -> None:
        self._lines = TextLines(self.options)
        self._table: Table | None = None
        self._number = 0  # of the table

    def decisions(self) -> list[str]:
        """Return how the steps were chosen; see `DecidingSource`."""
        self._rows = self._lines.rows if self._table is None else self._table.rows
        return super().decisions()

    def rows(self, data: bytes) -> Rows:
        """Keep the parts of a notebook, which are no rows yet."""
        self._parts = [*parts(data)]
        return ()

    def _give(self, record: SourceRecord) -> None:
        self._delivered.restart()
        found = self._parts
        try:
            self._add(found, record)
        except RowsDifferError:
            self._delivered.clear()
            self._begin()
            record.begin_segment()
            self._add(found, record)
        self._lines.end(record)

    def _add(self, found: Sequence[_Part], record: SourceRecord) -> None:
        for part in found:
            if not self._delivered.is_new(part):
                continue
            if part.text:
                self._lines.add_line(part.text, record)
                continue
            if self._table is None or part.table != self._number:
                self._number = part.table
                self._table = Table(self.options, "", _ignore)
                self._table.set_header(part.header, record)
                record.begin_segment()
            self._table.add(part.row, 0, record)


def _ignore(record: SourceRecord, topic: str, part: str, text: str) -> None:
    """Report nothing: cells such as a duration are no damage."""


def parts(data: bytes) -> Iterator[_Part]:
    """Yield the lines and rows of the outputs of a notebook, in the order shown.

    Raises
    ------
    DocumentError
        If it is no notebook.
    """
    try:
        notebook = _decoder.decode(data)
    except (ValueError, RecursionError) as err:
        msg = f"it is no notebook: {err}"
        raise DocumentError(msg) from None
    tables = 0
    for cell in notebook.cells:
        streams: dict[str, str] = {}  # the starts of lines that another output may end
        for output in cell.outputs if cell.cell_type == "code" else ():
            shown = _joined(output.data.html)
            text = _joined(output.text) or ("" if shown else _joined(output.data.plain) + "\n")
            *lines, streams[output.name] = (streams.get(output.name, "") + text).split("\n")
            yield from (_Part(line) for line in lines if line)
            for header, *rows in tables_of(shown):
                tables += 1
                yield from (_Part("", tables, header, row) for row in rows)
        yield from (_Part(line) for line in streams.values() if line)


def _joined(text: _Text) -> str:
    return text if isinstance(text, str) else "".join(text)


def tables_of(text: str) -> Iterator[list[tuple[str, ...]]]:
    """Yield the tables of a training in an HTML text: the header and the rows.

    Those with an index without a name are left out: they show a data frame again.

    >>> list(tables_of("<table><tr><th>step<th>loss</tr><tr><td>1<td><b>2</b></tr></table>"))
    [[('step', 'loss'), ('1', '2')]]
    """
    rows: list[tuple[str, ...]] = []
    row: list[str] = []
    start = -1  # of the cell
    for match in _TAG.finditer(text):
        end, name = match[1], match[2].lower()
        if start >= 0:
            cell = _ANY_TAG.sub("", text[start : match.start()][:MAX_CELL])
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
    found: list[_Part] = []
    with suppress(DocumentError):
        found += parts(content)
    if any(part.table for part in found):
        return "its cells show the table of a training"
    return what_counts("\n".join(part.text for part in found))


FORMAT: Final = LineFormat("notebook", _reason, NotebookSource)
