"""parse_trace, TraceEventParser: the events of framework timelines, streamed or all at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from smdebug.core.logger import get_logger
from smdebug.profiler.trace_assembly import Assembler, OpenEvents
from smdebug.profiler.trace_bytes import LIMITS, Limits, TimelineFaultError
from smdebug.profiler.trace_event import Id, Number, ProcessInfo, ThreadInfo, TraceEvent
from smdebug.profiler.trace_records import Record, RecordReader
from smdebug.profiler.utils import (
    TimeUnits,
    convert_utc_datetime_to_microseconds,
    convert_utc_timestamp_to_microseconds,
)

__all__ = ["ProcessInfo", "ThreadInfo", "TraceEvent", "TraceEventParser", "parse_trace"]


def parse_trace(
    stream: Iterable[bytes],
    *,
    node_id: str,
    file_type: str,
    source: str = "",
    start_us: int = 0,
    problems: list[str] | None = None,
    marks: bool = False,
    processes: dict[str, ProcessInfo] | None = None,
    open_events: OpenEvents | None = None,
    limits: Limits = LIMITS,
) -> Iterator[TraceEvent]:
    """Yield the events of one timeline as its text comes: nothing of it is kept.

    Parameters
    ----------
    stream
        The text in pieces: an array of records, or an object with a list ``traceEvents``.
    node_id, file_type
        Of the events; ``11-algo-1`` becomes ``algo-1-11``.
    source
        How messages name the timeline.
    start_us
        Epoch microseconds of the file's zero, where the file itself names none.
    problems
        Takes a sentence for damage that ends the reading, and one for records that are skipped.
    marks
        Whether instant events and counters are yielded too, with duration 0.
    processes, open_events
        Phases by name, and ``B`` events without their ``E``, of the same writer's files so far.
    limits
        How much of the timeline is believed.

    Yields
    ------
    TraceEvent
        In the order of the file; a pair of ``B`` and ``E`` at the place of its ``E``.
    """
    reader = RecordReader(stream, limits)
    assembler = Assembler(
        reader,
        node_id=node_id,
        file_type=file_type,
        start_us=start_us,
        marks=marks,
        processes=processes,
        open_events=open_events,
        limits=limits,
    )
    said = [] if problems is None else problems
    try:
        yield from assembler.events(reader.batches())
    except TimelineFaultError as err:
        said.append(f"Timeline {source!r} {err}.")
    if reader.skipped:
        said.append(
            f"Timeline {source!r} has {reader.skipped} records that are skipped, "
            f"the first because {reader.reason}."
        )
    if assembler.unpaired:
        get_logger("profiler").info(
            "Timeline %r has %d E events that did not begin in it.", source, assembler.unpaired
        )


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
        from smdebug.profiler.trace_files import (  # noqa: PLC0415 - it imports this module
            located,
            timeline_of,
        )

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


def overlapping(
    events: Iterable[TraceEvent], start: Number, end: Number, event_type: str | None = None
) -> Iterator[TraceEvent]:
    """Yield the events that overlap ``[start, end]`` and have a name or a phase."""
    for event in events:
        of_type = event_type is None or event_type in {event.event_name, event.event_phase}
        if of_type and event.start_time <= end and start <= event.end_time:
            yield event


def _converted(data: Iterable[Mapping[str, Any]], reader: RecordReader) -> Sequence[Record]:
    records = []
    for one in data:
        try:
            records.append(msgspec.convert(one, Record))
        except msgspec.ValidationError as err:
            reader.skip(f"it is no record: {err}")
    return records
