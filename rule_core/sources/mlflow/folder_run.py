"""FolderRun: a run of MLflow in a folder ``mlruns``."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import HEAD_BYTES
from rule_core.sources.mlflow.run import MergedRun, MetricPoint, Series, point_of
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.growing_file import GrowingFile
from rule_core.storage.publish import publish
from rule_core.storage.uri import open_output

META: Final = "meta.yaml"
METRICS: Final = "metrics/"
PENDING_BYTES: Final = 8 << 20  # of all metric files of a run, read at once
LINE_BYTES: Final = 1 << 12

_FINISHED: Final = {"3", "4", "5"}  # FINISHED, FAILED, KILLED
_STATUS: Final = re.compile(rb"(?m)^status: *(\d+) *$")


class _MetricFile(Series):
    """The file of one metric."""

    def __init__(self, store: TrialStore, key: str, name: str) -> None:
        super().__init__(name)
        self.file = GrowingFile(store, key)
        self._partial = b""
        self._skips_line = False

    def read(self, limit: int, record: SourceRecord) -> bool:
        """Read at most `limit` bytes; return whether there were any."""
        data, restarted = self.file.read(limit)
        if restarted:
            self._partial, self._skips_line = b"", False
            self.restart()
        self.has_more = len(data) >= limit
        if not data:
            return restarted
        *lines, self._partial = (self._partial + bytes(data)).split(b"\n")
        for line in lines:
            self._add_line(line, record)
        if len(self._partial) > LINE_BYTES:
            self._skips_line = True
            self._partial = b""
        return True

    def _add_line(self, line: bytes, record: SourceRecord) -> None:
        point = None if self._skips_line or len(line) > LINE_BYTES else _point(line)
        self._skips_line = False
        if point is not None:
            self.add(point)
        elif line.strip():
            record.problem(
                "It has lines other than 'TIMESTAMP VALUE STEP'; skipped.", self.file.key
            )


class FolderRun(MergedRun[_MetricFile]):
    """A run in a folder ``mlruns/EXPERIMENT/RUN``: a file for each metric.

    A line of a metric file is ``MILLISECONDS VALUE STEP``. Names with slashes are files in folders.
    """

    def __init__(self, store: TrialStore, key: str) -> None:
        super().__init__(f"MLflow run in {'/'.join(filter(None, (store.uri, key)))}")
        self._store = store
        self._key = key

    def find_series(self) -> bool:
        """Add new metric files; see `MergedRun`."""
        root = self._key + METRICS
        for key in self._store.list_keys(root):
            if key not in self.series and not key.rpartition("/")[2].startswith("."):
                self.series[key] = _MetricFile(self._store, key, key.removeprefix(root))
        return bool(self.has_ended())

    def read_series(self, series: _MetricFile, record: SourceRecord) -> bool:
        """Read the new lines of a metric file; see `MergedRun`."""
        try:
            return series.read(max(LINE_BYTES, PENDING_BYTES // len(self.series)), record)
        except ObjectNotFoundError:  # removed: the metric was, or the whole run
            record.problem("The file was removed while it was read.", series.file.key)
            return False

    def has_ended(self) -> bool | None:
        """Return True if the run says so; see `MlflowRun`."""
        key = self._key + META
        try:
            meta = bytes(self._store.read(key, ByteRange(0, HEAD_BYTES)))
            self.written = self._store.status(key).modified
        except (ObjectNotFoundError, StorageUnavailableError):  # being rewritten
            return None
        status = _STATUS.search(meta)
        return True if status and status[1].decode() in _FINISHED else None

    def last_write(self) -> float:
        """See `Source`."""
        return max([self.written, *(metric.file.modified for metric in self.series.values())])

    def tag(self, name: str) -> str:
        """Return a tag of the run; "" if it has none of this name."""
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return bytes(self._store.read(f"{self._key}tags/{name}")).decode(errors="replace")
        return ""

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags of the run.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        output = open_output(self._store.uri)
        for name, value in tags.items():
            publish(output, f"{self._key}tags/{name}", value.encode())


def _point(line: bytes) -> MetricPoint | None:
    """Return the number of a line; None if it holds none.

    >>> _point(b"1700000000000 inf 3"), _point(b"x")
    (MetricPoint(time=1700000000000, step=3, value=inf), None)
    """
    fields = line.split()
    return point_of(fields[0], fields[2] if fields[2:] else 0, fields[1]) if fields[1:] else None
