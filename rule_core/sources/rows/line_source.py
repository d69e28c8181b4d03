"""LineSource: what the readers of files made of lines have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rule_core.reading.source import Source
from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import FileSource, Recognized, SourceFolder, Unreadable
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.delivered_rows import DeliveredRows, RowsDifferError
from rule_core.sources.rows.line_reader import MAX_LINE_BYTES, LineReader, NewLines
from rule_core.sources.rows.row_reader import RowReader
from rule_core.storage.base import TrialStore


class LineFormat(NamedTuple):
    """A format of files made of lines, recognised by the start of each; see `SourceFormat`.

    Attributes
    ----------
    reason
        Returns why a file of a folder is in this format, as `Recognized` says it; "" if it is not,
        or why it is refused.
    source
        Makes the reader of a file.
    """

    kind: str
    reason: Callable[[SourceFolder, str], str | Unreadable]
    source: Callable[[TrialStore, Recognized, SourceOptions], Source]

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized | Unreadable]:
        """Yield the files in this format; see `SourceFormat`."""
        for name in folder.names:
            reason = self.reason(folder, name)
            if isinstance(reason, Unreadable):
                yield reason
            elif reason:
                yield Recognized(self.kind, folder.key + name, reason)

    def open(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> Source:
        """Return the reader of a file; see `SourceFormat`."""
        return self.source(store, recognized, options)


class LineSource(FileSource, ABC):
    """A `Source` over one file of lines.

    If the file is rewritten, rows that were given and are unchanged are not given again. If one of
    them differs, the file was begun anew: a new segment begins, with all of its rows.

    Attributes
    ----------
    rows
        What gives the rows their steps.
    """

    def __init__(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> None:
        self.options = options
        super().__init__(recognized.kind, f"{recognized.key}: {recognized.reason}")
        self.delivered = DeliveredRows()
        self._key = recognized.key
        self._lines = LineReader(store, recognized.key)
        self._reported: set[str] = set()
        self.begin()

    def read_new(self, record: SourceRecord) -> bool:
        """Pass the new rows on; see `Source`."""
        new = self._lines.read()
        self.written = self._lines.modified
        if new.restarted:
            self.delivered.restart()
            self.restart()
        if not self._pass_on(new, record):
            return True
        if self._lines.problem:
            self.report_once(record, self._lines.problem, "", self._lines.problem)
        if new.skipped:
            problem = f"It has more than {MAX_LINE_BYTES >> 20} MiB. Such lines are skipped."
            self.report_once(record, "length", f"line {new.skipped}", problem)
        return new.has_read

    def finish(self, record: SourceRecord) -> None:
        """Pass on the last line, though it has no end; see `FinishingSource`."""
        while not self._pass_on(self._lines.finish(), record, is_last=True):
            while self.read_new(record):
                pass

    def report_once(self, record: SourceRecord, topic: str, location: str, problem: str) -> None:
        """Report the first problem of a kind.

        Parameters
        ----------
        topic
            The kind of problem.
        location
            The part of the file that has it, such as ``line 3``; "" for the whole file.
        """
        if topic not in self._reported:
            self._reported.add(topic)
            record.problem(problem, f"{self._key}: {location}" if location else None)

    def decisions(self) -> list[str]:
        """Return how the steps were chosen; see `DecidingSource`."""
        return self.rows.steps.decisions()

    def _pass_on(self, new: NewLines, record: SourceRecord, *, is_last: bool = False) -> bool:
        """Pass lines on; return False if the file must be read from its start."""
        try:
            self.add_block(new, record)
            if is_last:
                self.add_rest(record)
        except RowsDifferError:
            self.delivered.clear()
            self.begin()
            self._lines.rewind()
            record.begin_segment()
            return False
        return True

    def begin(self) -> None:
        """Forget the run: the first line of another one follows."""
        self.rows = RowReader(self.options)
        self.restart()

    def restart(self) -> None:
        """Expect the first line of the same run again; by default nothing."""

    def add_block(self, new: NewLines, record: SourceRecord) -> None:
        """Pass the rows of complete lines on; see `add_lines`."""
        self.add_lines(new.lines, new.first, record)

    @abstractmethod
    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass the rows of complete lines on, unless `delivered` has them.

        Parameters
        ----------
        first
            The number of the first line.
        """

    def add_rest(self, record: SourceRecord) -> None:
        """Pass on what waits for later lines, since there are none; by default nothing."""
        del record
