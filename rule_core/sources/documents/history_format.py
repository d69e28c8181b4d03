"""HistoryFormat: formats of files that hold a history, whatever its shape; see `document_rows`."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from rule_core.sources.documents.document_rows import history, row_of
from rule_core.sources.documents.document_source import (
    DocumentError,
    DocumentSource,
    IncompleteDocumentError,
    Row,
    Rows,
)
from rule_core.sources.format import Recognized, SourceFolder, Unreadable
from rule_core.sources.names import title_of
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.row_fields import is_counter, to_time
from rule_core.storage.base import StorageUnavailableError, TrialStore

_DIGITS: Final = re.compile(r"\d+")
_SERIES: Final = re.compile(r"(?P<start>.*?(?P<word>[a-z]+)[ _=-]?)(?P<count>\d{1,12})(?P<end>\D*)")


class HistoryFormat(NamedTuple):
    """A format of whole files; see `SourceFormat`.

    Files whose names differ in a counter only, such as ``metrics_epoch_3.json``, are the rows of
    one run.

    Attributes
    ----------
    names
        Matches the names of files that may be in this format, in any case.
    decode
        Returns what the bytes of a file hold: objects, lists, numbers and texts. If the flag is
        set, the start of an incomplete file counts. It raises `DocumentError`.
    look
        Returns as much as the start or end of a file in a folder says; None if it is in another
        format. It raises `DocumentError`.
    holds_back
        Whether `decode` leaves out the last row unless the flag is set.
    """

    kind: str
    names: str
    decode: Callable[[bytes, bool], object]
    look: Callable[[SourceFolder, str], object]
    holds_back: bool = False

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized | Unreadable]:
        """Yield the histories in this format; see `SourceFormat`.

        Files whose names differ in digits only are skipped after one that is no history, since a
        data set may have thousands of them.
        """
        skipped: set[str] = set()
        for name in filter(re.compile(self.names, re.IGNORECASE).fullmatch, folder.names):
            series = _series(name)
            alike = series["start"] + series["end"] if series else _DIGITS.sub("0", name)
            if alike in skipped:
                continue
            rows: Sequence[Row] = ()
            try:
                document = self.look(folder, name)
                rows = () if document is None else rows_of(document, name)
            except IncompleteDocumentError:
                pass
            except (DocumentError, StorageUnavailableError) as err:
                yield Unreadable(folder.key + name, getattr(err, "reason", str(err)))
            if rows:
                fields = ", ".join(field for field, _ in rows[0][:3])
                yield Recognized(self.kind, folder.key + name, f"its rows hold {fields}")
            if series or not rows:
                skipped.add(alike)

    def open(
        self, store: TrialStore, recognized: Recognized, options: SourceOptions
    ) -> "HistorySource":
        """Return the reader of a file; see `SourceFormat`."""
        return HistorySource(store, recognized, options, self)


class HistorySource(DocumentSource):
    """Reads one file, or one file a row."""

    def __init__(
        self,
        store: TrialStore,
        recognized: Recognized,
        options: SourceOptions,
        history_format: HistoryFormat,
    ) -> None:
        super().__init__(store, recognized, options)
        self.holds_back = history_format.holds_back
        self._decode = history_format.decode
        self._name = recognized.key.rpartition("/")[2]

    def keys(self) -> Sequence[str]:
        """Return the files that hold the run now; see `DocumentSource`."""
        series = _series(self._name)
        if series is None:
            return [self.key]
        folder = self.key.removesuffix(self._name)
        counts = {}
        for key in self.store.list_keys(folder + series["start"]):
            match = _series(key.removeprefix(folder))
            if match and match.group("start", "end") == series.group("start", "end"):
                counts[key] = int(match["count"])
        return sorted(counts, key=counts.__getitem__) or [self.key]

    def rows(self, data: bytes, key: str, *, is_last: bool) -> Rows:
        """Return the rows of a file, which may be one of a series; see `DocumentSource`."""
        return rows_of(self._decode(data, is_last), key.rpartition("/")[2])


def rows_of(document: object, name: str) -> Sequence[Row]:
    """Return the rows in a document, or the row that it is if its file is one of a series.

    >>> rows_of({"loss": 0.5}, "metrics_epoch_3.json")
    [(('epoch', 3), ('loss', 0.5))]
    >>> rows_of([[1.7e9, 5, 0.5]], "run-a-tag-loss.json")  # a chart of TensorBoard
    [(('timestamp', 1700000000.0), ('step', 5), ('a/loss', 0.5))]
    >>> rows_of([0.5, 0.25], "val_loss.json")
    [(('step', 0), ('val_loss', 0.5)), (('step', 1), ('val_loss', 0.25))]

    Raises
    ------
    DocumentError
        If there are none.
    """
    match document:
        case [float(), *_]:
            document = {title_of(name): document}
        case [[time, _, _], *_] if to_time(time):
            names = ("timestamp", "step", title_of(name))
            points = (point for point in document if isinstance(point, list))
            document = [dict(zip(names, point, strict=False)) for point in points]
    try:
        return history(document)
    except DocumentError:
        if series := _series(name):
            return row_of(document, series["word"], int(series["count"]))
        raise


def _series(name: str) -> re.Match[str] | None:
    match = _SERIES.fullmatch(name)
    return match if match and is_counter(match["word"]) else None
