"""DocumentSource: the readers of files that are written as a whole, such as a history in JSON."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import FileSource, Recognized
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.delivered_rows import DeliveredRows, RowsDifferError
from rule_core.sources.rows.row_reader import RowReader
from rule_core.storage.base import FileStatus, TrialStore
from rule_core.storage.size_limit import check_file_size

Field = tuple[str, object]
Rows = Iterable[tuple[Field, ...]]


class DocumentError(Exception):
    """A file that cannot be read; the text says why, as a sentence."""


class IncompleteDocumentError(DocumentError):
    """A file that may still be written; it is reported when the run has ended."""


class DocumentSource(FileSource, ABC):
    """A `Source` over one file that is read whole whenever it has changed.

    Rows that were given and are unchanged are not given again. If one of them differs, the file
    holds another run: a new segment begins, with all of its rows.
    """

    def __init__(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> None:
        super().__init__(recognized.kind, f"{recognized.key}: {recognized.reason}")
        self.options = options
        self._store = store
        self._key = recognized.key
        self._status: FileStatus | None = None
        self._delivered = DeliveredRows()
        self._rows = RowReader(options)
        self._incomplete = ""

    def read_new(self, record: SourceRecord) -> bool:
        """Pass the new rows on; see `Source`."""
        status = self._store.status(self._key)
        if status == self._status:
            return False
        self._status, self._incomplete = status, ""
        self.written = status.modified
        check_file_size(self._key, status.size)
        try:
            self._give(bytes(self._store.read(self._key)), record)
        except IncompleteDocumentError as err:
            self._incomplete = str(err)
        except DocumentError as err:
            record.problem(str(err), self._key)
        return True

    def finish(self, record: SourceRecord) -> None:
        """Report a file that is still incomplete; see `FinishingSource`."""
        if self._incomplete:
            record.problem(self._incomplete, self._key)

    def decisions(self) -> list[str]:
        """Return how the steps were chosen; see `DecidingSource`."""
        return [sentence for sentence in (self._rows.steps.decision(),) if sentence]

    @abstractmethod
    def rows(self, data: bytes) -> Rows:
        """Yield the rows of a file, in the order written; each field has its name as written.

        Raises
        ------
        DocumentError
            If it holds something else, or damage.
        IncompleteDocumentError
            If it may still be written.
        """

    def _give(self, data: bytes, record: SourceRecord) -> None:
        self._delivered.restart()
        rows = [*self.rows(data)]
        try:
            for row in rows:
                if self._delivered.is_new(row):
                    self._rows.add_fields(row, record)
        except RowsDifferError:
            self._delivered.clear()
            self._rows = RowReader(self.options)
            record.begin_segment()
            for row in rows:
                if self._delivered.is_new(row):
                    self._rows.add_fields(row, record)
