"""Rows of frames as numbers: samples and events, collected small, made into frames at once."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.analysis.extras import import_pandas
from smdebug.profiler.system_columns import SystemColumns
from smdebug.profiler.system_samples import SeriesKey
from smdebug.profiler.trace_event import TraceEvent

if TYPE_CHECKING:
    import pandas as pd

Time = str | datetime
Mask = NDArray[np.bool_] | slice
ALL: Final = slice(None)
SYSTEM_COLUMNS: Final = (
    *("timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type"),
)
_TEXTS: Final = frozenset({"framework_metric", "pin_memory", "process", "nodeID", "node_id"})
# Beside each of these stands its text, before all others.
_STAMPS: Final = {"start_time_us": "start_time", "end_time_us": "end_time"}
_FORMAT: Final = "%Y-%m-%dT%H:%M:%S:%f"
_LIMIT: Final = 1 << 63


def whole(value: Any) -> int:
    """Return a whole number of 64 bits; -1 for what is none.

    >>> whole("12"), whole(3.0), whole(None), whole("x"), whole(1 << 70)
    (12, 3, -1, -1, -1)
    """
    if value is None:
        return -1
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return -1
    return found if -_LIMIT <= found < _LIMIT else -1


class Texts(dict[str | None, int]):
    """Texts and their numbers, which are given as they come."""

    def __missing__(self, text: str | None) -> int:
        number = self[text] = len(self)
        return number


class EventColumns(NamedTuple):
    """What of an event goes into a frame.

    Attributes
    ----------
    names
        Of the columns.
    row
        Returns the numbers of an event in these; of texts their numbers.
    """

    names: tuple[str, ...]
    row: Callable[[TraceEvent, Texts], tuple[int, ...]]


def _framework_row(event: TraceEvent, texts: Texts) -> tuple[int, ...]:
    args = event.event_args or {}
    return (
        int(event.start_time),
        int(event.end_time),
        whole(event.tid),
        whole(event.pid),
        texts[_metric(event, args)],
        whole(args.get("step_num")),
        whole(args.get("bytes_fetched")),
        texts[event.event_phase],
        texts[event.node_id],
    )


def _dataloader_row(event: TraceEvent, texts: Texts) -> tuple[int, ...]:
    args = event.event_args or {}
    return (
        int(event.start_time),
        int(event.end_time),
        int(event.duration),
        whole(event.pid),
        texts[_metric(event, args)],
        whole(args.get("step_num")),
        whole(args.get("worker_id")),
        whole(args.get("num_workers")),
        texts[str(args["pin_memory"] is True) if "pin_memory" in args else "NA"],
        texts[event.event_phase],
        texts[event.node_id],
    )


def _metric(event: TraceEvent, args: Mapping[str, Any]) -> str:
    return str(args.get("layer_name", args.get("name", event.event_name)))


FRAMEWORK_COLUMNS: Final = EventColumns(
    (
        *("start_time_us", "end_time_us", "tid", "pid", "framework_metric", "step", "bytes"),
        *("process", "nodeID"),
    ),
    _framework_row,
)
DATALOADER_COLUMNS: Final = EventColumns(
    (
        *("start_time_us", "end_time_us", "duration_us", "pid", "framework_metric", "step"),
        *("worker_id", "num_workers", "pin_memory", "process", "node_id"),
    ),
    _dataloader_row,
)


class SampleRows:
    """Samples of system metrics as columns of numbers: 20 bytes each."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]] = []

    def extend(self, found: SystemColumns, chosen: Mask = ALL) -> None:
        """Add samples of one file."""
        time_us = (found.time_s[chosen] * 1_000_000).astype(np.int64)
        if len(time_us):
            self._parts.append((time_us, found.value[chosen], found.series[chosen]))

    def frame(self, start_time: int, keys: Sequence[SeriesKey]) -> "pd.DataFrame":
        """Return a frame of all rows, without those that equal one before; labels keep the gaps.

        Parameters
        ----------
        start_time
            Epoch microseconds from which ``timestamp_us`` counts.
        keys
            The series by their numbers.
        """
        if not self._parts:
            return _empty(SYSTEM_COLUMNS)
        rows = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        kept = _first_of_equal(rows)
        time_us, value, series = (column[kept] for column in rows)
        self._parts = [(time_us, value, series)]
        texts = (np.array(column, dtype=object) for column in zip(*keys, strict=True))
        node, kind, dimension, name = (column[series] for column in texts)
        columns = time_texts(time_us), time_us - start_time, value, name, dimension, node, kind
        return _made(dict(zip(SYSTEM_COLUMNS, columns, strict=True)), kept)


class EventRows:
    """Events as rows of 64-bit numbers, which for texts are those of a table.

    Parameters
    ----------
    columns
        What of an event goes into the frame.
    """

    def __init__(self, columns: EventColumns) -> None:
        self._columns = columns
        self._numbers = array("q")
        self._texts = Texts()

    def extend(self, events: Iterable[TraceEvent]) -> None:
        """Add events."""
        row, texts, add = self._columns.row, self._texts, self._numbers.extend
        for event in events:
            add(row(event, texts))

    def frame(self, start_time: int) -> "pd.DataFrame":
        """Return a frame of all rows, without those that equal one before; labels keep the gaps.

        Parameters
        ----------
        start_time
            Epoch microseconds from which ``start_time_us`` and ``end_time_us`` count.
        """
        if not self._numbers:
            return _empty([*_STAMPS.values(), *self._columns.names])
        rows = np.array(self._numbers).reshape(-1, len(self._columns.names))
        kept = _first_of_equal(rows.T)
        if len(kept) < len(rows):
            rows = rows[kept]
            self._numbers = array("q", rows.tobytes())
        columns: dict[str, NDArray[Any]] = dict(zip(self._columns.names, rows.T, strict=True))
        texts = np.array([*self._texts], dtype=object)
        for name in _TEXTS & columns.keys():
            columns[name] = texts[columns[name]]
        stamps = {text: time_texts(columns[name]) for name, text in _STAMPS.items()}
        for name in _STAMPS:
            columns[name] -= start_time
        return _made(stamps | columns, kept)


def time_texts(time_us: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return times in UTC as texts; equal times share one.

    Parameters
    ----------
    time_us
        Microseconds since the epoch, of shape ``(n,)``.

    >>> time_texts(np.array([1591160699457089]))
    array(['2020-06-03T05:04:59:457089'], dtype=object)
    """
    times, at = np.unique(time_us, return_inverse=True)
    texts = np.datetime_as_string(times.astype("M8[us]"), unit="us")
    found: NDArray[np.object_] = np.char.replace(texts, ".", ":").astype(object)[at]
    return found


def epoch_us(time: Time) -> int:
    """Return epoch microseconds, exactly; a time without a zone is UTC.

    Raises
    ------
    ValueError
        If it is no time.

    >>> epoch_us("2020-06-03T05:04:59:457089")
    1591160699457089
    """
    try:
        found = import_pandas().to_datetime(time, format=_FORMAT, utc=True)
    except ValueError as err:
        msg = f"Times are written as '2020-06-03T05:04:59:457089', got {time!r}."
        raise ValueError(msg) from err
    return int(found.value) // 1000


def _first_of_equal(columns: Iterable[NDArray[Any]]) -> NDArray[np.intp]:
    """Return the numbers of the rows that equal none before them."""
    again = import_pandas().DataFrame(dict(enumerate(columns))).duplicated()
    return np.flatnonzero(~again.to_numpy())


def _made(columns: Mapping[str, NDArray[Any]], labels: NDArray[np.intp]) -> "pd.DataFrame":
    frame: pd.DataFrame = import_pandas().DataFrame(dict(columns), index=labels)
    return frame


def _empty(columns: Iterable[str]) -> "pd.DataFrame":
    frame: pd.DataFrame = import_pandas().DataFrame(columns=[*columns], dtype=object)
    return frame
