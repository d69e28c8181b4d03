"""DocumentSource: the readers of files that are written as a whole, such as a history in JSON."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, takewhile

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import FileSource, Recognized
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.row_fields import is_counter
from rule_core.sources.rows.row_reader import RowReader
from rule_core.storage.base import FileStatus, StorageUnavailableError, TrialStore
from rule_core.storage.size_limit import check_file_size

Field = tuple[str, object]
Row = tuple[Field, ...]
Rows = Iterable[Row]


class DocumentError(Exception):
    """A file that cannot be read; the text says why, as the end of a sentence."""


class IncompleteDocumentError(DocumentError):
    """A file that may still be written; it is reported when the run has ended."""


class DocumentSource(FileSource, ABC):
    """A `Source` over one file, or a series of them, each read whole whenever it has changed.

    Values that were given and are unchanged are not given again. If one of them differs, the file
    holds another run: a new segment begins, with all of its rows.

    Attributes
    ----------
    holds_back
        Whether the last row of a file is given when the run has ended, since it may still grow.
    """

    holds_back = False

    def __init__(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> None:
        super().__init__(recognized.kind, f"{recognized.key}: {recognized.reason}")
        self.options = options
        self.store = store
        self.key = recognized.key
        self._statuses: dict[str, FileStatus] = {}
        self._documents: dict[str, Rows] = {}  # the rows of each file
        self._delivered: dict[
            str, tuple[int, int]
        ] = {}  # the count and digest of each name's values
        self._rows = RowReader(options)
        self._incomplete: dict[str, str] = {}

    def read_new(self, record: SourceRecord) -> bool:
        """Pass the new values on; see `Source`."""
        statuses = {key: self.store.status(key) for key in self.keys()}
        changed = [key for key, status in statuses.items() if self._statuses.get(key) != status]
        self._statuses = statuses
        self.written = max(status.modified for status in statuses.values())
        for key in changed:
            self._read(key, record)
        if changed:
            self._deliver(record)
        return bool(changed)

    def finish(self, record: SourceRecord) -> None:
        """Report the files that are still incomplete, and read what was held back.

        The start of a file that was complete before says nothing new. See `FinishingSource`.
        """
        for key in self._statuses:
            if key in self._incomplete:
                record.problem(self._incomplete[key], key)
            if not self._delivered if key in self._incomplete else self.holds_back:
                self._read(key, record, is_last=True)
        self._deliver(record)

    def decisions(self) -> list[str]:
        """Return how the steps were chosen; see `DecidingSource`."""
        return self._rows.steps.decisions()

    def keys(self) -> Sequence[str]:
        """Return the files that hold the run now, in their order."""
        return [self.key]

    @abstractmethod
    def rows(self, data: bytes, key: str, *, is_last: bool) -> Rows:
        """Yield the rows of a file, in the order written; each field has its name as written.

        Parameters
        ----------
        is_last
            Whether the run has ended, so that the start of an incomplete file is all there is.

        Raises
        ------
        DocumentError
            If it holds something else, or damage.
        IncompleteDocumentError
            If it may still be written.
        """

    def _read(self, key: str, record: SourceRecord, *, is_last: bool = False) -> None:
        try:
            check_file_size(key, self._statuses[key].size)
            data = bytes(self.store.read(key))
            self._documents[key] = [*self.rows(data, key, is_last=is_last)]
            if not is_last:
                self._incomplete.pop(key, None)
        except IncompleteDocumentError as err:
            self._incomplete[key] = f"It is not read: {err}."
        except DocumentError as err:
            self._documents[key] = ()
            record.problem(f"It is not read: {err}.", key)
        except StorageUnavailableError as err:
            if err.transient:
                del self._statuses[key]
                raise
            self._documents[key] = ()
            record.problem(str(err), key)

    def _deliver(self, record: SourceRecord) -> None:
        """Pass on what was not given, up to the first file that is still incomplete."""
        complete = takewhile(self._documents.__contains__, self._statuses)
        rows = [row for key in complete for row in self._documents[key]]
        values: dict[str, list[object]] = {}
        for name, value in chain.from_iterable(rows):
            values.setdefault(name, []).append(value)
        delivered = self._delivered
        if any(_digest(values.get(x, [])[:n]) != digest for x, (n, digest) in delivered.items()):
            delivered = {}
            self._rows = RowReader(self.options)
            record.begin_segment()
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(name for name, _ in row)
            new = {name for name, _ in row if counts[name] > delivered.get(name, (0, 0))[0]}
            if new:
                fields = [(name, x) for name, x in row if name in new or is_counter(name)]
                self._rows.add_fields(fields, record)
        self._delivered = {name: (len(column), _digest(column)) for name, column in values.items()}


def _digest(values: Sequence[object]) -> int:
    return hash(repr(values))  # NaN does not equal itself
