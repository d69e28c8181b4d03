"""TraceEventParser: the events of all framework timelines that it is given."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from smdebug.core.logger import get_logger
from smdebug.profiler.trace_assembly import Assembler, OpenEvents
from smdebug.profiler.trace_event import Id, ProcessInfo, ThreadInfo, TraceEvent, overlapping
from smdebug.profiler.trace_files import located, timeline_of
from smdebug.profiler.trace_records import Record, RecordReader
from smdebug.profiler.utils import (
    TimeUnits,
    convert_utc_datetime_to_microseconds,
    convert_utc_timestamp_to_microseconds,
)

__all__ = ["ProcessInfo", "ThreadInfo", "TraceEvent", "TraceEventParser"]


class TraceEventParser:
    """The events of the timelines that it was given, in the order of the files.

    Parameters
    ----------
    type
        What the events have as their `file_type`.

    Attributes
    ----------
    problems
        A sentence for each damage that was met.
    """

    def __init__(self, type: str = "") -> None:  # noqa: A002 - the documented name
        self.type = type
        self.problems: list[str] = []
        self._trace_events: list[TraceEvent] = []
        self._by_name: dict[str, ProcessInfo] = {}
        self._open: dict[str, OpenEvents] = {}

    def read_events_from_file(self, tracefile: str) -> None:
        """Read all events of a file, a path or an S3 address; damage is logged."""
        known = len(self.problems)
        self._trace_events.extend(self.stream(tracefile))
        for problem in self.problems[known:]:
            get_logger("profiler").error(problem)

    def stream(self, tracefile: str) -> Iterator[TraceEvent]:
        """Yield the events of a file without keeping them."""
        store, key = located(tracefile)
        timeline = timeline_of(store, key, self.type)
        return timeline.events(
            self.problems,
            processes=self._by_name,
            open_events=self._open.setdefault(timeline.node_id, {}),
        )

    def read_events_from_json_data(
        self, trace_json_data: Iterable[Mapping[str, Any]], node_id: str
    ) -> None:
        """Read events from records that were decoded already; what is none is logged."""
        reader = RecordReader(())
        assembler = Assembler(
            reader,
            node_id=node_id or "",
            file_type=self.type,
            processes=self._by_name,
            open_events=self._open.setdefault(node_id or "", {}),
        )
        self._trace_events.extend(assembler.events([_converted(trace_json_data, reader)]))
        if reader.skipped:
            problem = f"{reader.skipped} records are skipped, the first because {reader.reason}."
            self.problems.append(problem)
            get_logger("profiler").error(problem)

    def get_all_events(self) -> list[TraceEvent]:
        """Return the events in the order of the files."""
        return self._trace_events

    def get_events_start_time_sorted(self) -> list[TraceEvent]:
        """Return the events by their start."""
        return sorted(self._trace_events, key=lambda event: event.start_time)

    def get_events_end_time_sorted(self) -> list[TraceEvent]:
        """Return the events by their end."""
        return sorted(self._trace_events, key=lambda event: event.end_time)

    def get_events_within_time_range(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
    ) -> list[TraceEvent]:
        """Return the events that overlap ``[start, end]``; touching counts.

        Parameters
        ----------
        start_time, end_time
            Since the epoch, in `unit`.
        event_type
            A name or a phase that the events must have; None is any.
        """
        start = convert_utc_timestamp_to_microseconds(start_time, unit)
        end = convert_utc_timestamp_to_microseconds(end_time, unit)
        return list(overlapping(self._trace_events, start, end, event_type))

    def get_events_within_range(self, start_time: datetime, end_time: datetime) -> list[TraceEvent]:
        """Return the events that overlap the time between two moments."""
        return self.get_events_within_time_range(
            convert_utc_datetime_to_microseconds(start_time),
            convert_utc_datetime_to_microseconds(end_time),
        )

    def get_processes(self) -> dict[Id, ProcessInfo]:
        """Return the phases that were seen, by the number under which each was first seen."""
        return {process.id: process for process in self._by_name.values()}

    def get_process_info(self, process_id: Id) -> ProcessInfo:
        """Return a phase by its number; `KeyError` if there is none."""
        return self.get_processes()[process_id]

    def clear_events(self) -> None:
        """Forget the events, and what was open at the end of the files."""
        self._trace_events = []
        self._open = {}


def _converted(data: Iterable[Mapping[str, Any]], reader: RecordReader) -> Sequence[Record]:
    records = []
    for one in data:
        try:
            records.append(msgspec.convert(one, Record))
        except msgspec.ValidationError as err:
            reader.skip(f"it is no record: {err}")
    return records
