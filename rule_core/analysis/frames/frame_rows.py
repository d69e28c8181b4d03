"""Rows of frames as numbers: samples and events in compact form, converted to frames at once."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.optional_imports import data_frame, import_pandas
from rule_core.profiler.system.columns import SystemColumns
from rule_core.profiler.system.samples import SeriesKey
from rule_core.profiler.traces.event import TraceEvent

if TYPE_CHECKING:
    import pandas as pd

Time = str | datetime
Mask = NDArray[np.bool_] | slice
ALL: Final = slice(None)
SYSTEM_COLUMNS: Final = (
    *("timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type"),
)
_TEXTS: Final = frozenset({"framework_metric", "pin_memory", "process", "nodeID", "node_id"})
# Each of these columns also has a text column, before all others.
_STAMPS: Final = {"start_time_us": "start_time", "end_time_us": "end_time"}
_FORMAT: Final = "%Y-%m-%dT%H:%M:%S:%f"
_LIMIT: Final = 1 << 63


def whole(value: Any) -> int:
    """Convert a value to a 64-bit integer; -1 if that is impossible.

    >>> whole("12"), whole(3.0), whole(None), whole("x"), whole(1 << 70)
    (12, 3, -1, -1, -1)
    """
    if value is None:
        return -1
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if -_LIMIT <= number < _LIMIT else -1


class Texts(dict[str | None, int]):
    """Texts with numbers in order of appearance."""

    def __missing__(self, text: str | None) -> int:
        number = self[text] = len(self)
        return number


class EventColumns(NamedTuple):
    """The columns of a frame of events.

    Attributes
    ----------
    names
        Names of the columns.
    row
        Returns the numbers of an event for these columns; texts are replaced by their numbers.
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
    """Samples of system metrics as columns, with 20 bytes per sample."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]] = []

    def extend(self, samples: SystemColumns, chosen: Mask = ALL) -> None:
        """Add samples of one file."""
        time_us = (samples.time_s[chosen] * 1_000_000).astype(np.int64)
        if len(time_us):
            self._parts.append((time_us, samples.value[chosen], samples.series[chosen]))

    def frame(self, start_time: int, keys: Sequence[SeriesKey]) -> "pd.DataFrame":
        """Return a frame without duplicate rows; its index keeps the original row numbers.

        Parameters
        ----------
        start_time
            Epoch microseconds from which ``timestamp_us`` counts.
        keys
            The series, by number.
        """
        if not self._parts:
            return data_frame(columns=[*SYSTEM_COLUMNS], dtype=object)
        rows = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        unique = _unique_rows(rows)
        time_us, value, series = (column[unique] for column in rows)
        self._parts = [(time_us, value, series)]
        texts = (np.array(column, dtype=object) for column in zip(*keys, strict=True))
        node, kind, dimension, name = (column[series] for column in texts)
        columns = time_texts(time_us), time_us - start_time, value, name, dimension, node, kind
        return data_frame(dict(zip(SYSTEM_COLUMNS, columns, strict=True)), index=unique)


class EventRows:
    """Events as rows of 64-bit numbers; texts are replaced by numbers.

    Parameters
    ----------
    columns
        The columns of the frame.
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
        """Return a frame without duplicate rows; its index keeps the original row numbers.

        Parameters
        ----------
        start_time
            Epoch microseconds from which ``start_time_us`` and ``end_time_us`` count.
        """
        if not self._numbers:
            return data_frame(columns=[*_STAMPS.values(), *self._columns.names], dtype=object)
        rows = np.array(self._numbers).reshape(-1, len(self._columns.names))
        unique = _unique_rows(rows.T)
        if len(unique) < len(rows):
            rows = rows[unique]
            self._numbers = array("q", rows.tobytes())
        columns: dict[str, NDArray[Any]] = dict(zip(self._columns.names, rows.T, strict=True))
        texts = np.array([*self._texts], dtype=object)
        for name in _TEXTS & columns.keys():
            columns[name] = texts[columns[name]]
        stamps = {text: time_texts(columns[name]) for name, text in _STAMPS.items()}
        for name in _STAMPS:
            columns[name] -= start_time
        return data_frame(stamps | columns, index=unique)


def time_texts(time_us: NDArray[np.int64]) -> NDArray[np.object_]:
    """Format times in UTC; equal times share one string.

    Parameters
    ----------
    time_us
        Microseconds since the epoch; shape ``(n,)``.

    >>> time_texts(np.array([1591160699457089]))
    array(['2020-06-03T05:04:59:457089'], dtype=object)
    """
    times, indexes = np.unique(time_us, return_inverse=True)
    texts = np.datetime_as_string(times.astype("M8[us]"), unit="us")
    result: NDArray[np.object_] = np.char.replace(texts, ".", ":").astype(object)[indexes]
    return result


def epoch_us(time: Time) -> int:
    """Convert a time to epoch microseconds, exactly; a time without a zone is UTC.

    Raises
    ------
    ValueError
        If it is not a time.

    >>> epoch_us("2020-06-03T05:04:59:457089")
    1591160699457089
    """
    try:
        timestamp = import_pandas().to_datetime(time, format=_FORMAT, utc=True)
    except ValueError as err:
        raise ValueError(
            f"Times are written as '2020-06-03T05:04:59:457089', got {time!r}."
        ) from err
    return int(timestamp.value) // 1000


def _unique_rows(columns: Iterable[NDArray[Any]]) -> NDArray[np.intp]:
    """Return the numbers of the rows that do not repeat an earlier row."""
    repeated = data_frame(dict(enumerate(columns))).duplicated()
    return np.flatnonzero(~repeated.to_numpy())
