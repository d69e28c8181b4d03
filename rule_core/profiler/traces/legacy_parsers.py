"""TraceEventParser, and the parsers of each type of timeline, under the names of smdebug."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from rule_core.logger import get_logger
from rule_core.profiler.files import constants, time_units
from rule_core.profiler.files.time_units import TimeUnits, node_id_of
from rule_core.profiler.traces.assembler import Assembler, OpenEvents
from rule_core.profiler.traces.event import Id, ProcessInfo, TraceEvent, overlapping
from rule_core.profiler.traces.files import FILE_TYPES, TENSORFLOW, events_of, locate
from rule_core.profiler.traces.records import Record, RecordReader

_MARKED: Final = ("ForwardPass", "ComputeGradient", "ApplyGradient")


class TraceEventParser:
    """Collects the events of timelines, in the order of the files.

    Parameters
    ----------
    type
        The `file_type` of the events.

    Attributes
    ----------
    problems
        A sentence for each file problem.
    """

    def __init__(self, type: str = "") -> None:  # noqa: A002 - the documented name
        self.type = type
        self.problems: list[str] = []
        self._trace_events: list[TraceEvent] = []
        self._by_name: dict[str, ProcessInfo] = {}
        self._open: dict[str, OpenEvents] = {}

    def read_events_from_file(self, tracefile: str) -> None:
        """Read all events of a file, given by path or S3 address; problems are logged."""
        start = len(self.problems)
        self._trace_events.extend(self.stream(tracefile))
        for problem in self.problems[start:]:
            get_logger("profiler").error(problem)

    def stream(self, tracefile: str) -> Iterator[TraceEvent]:
        """Stream the events of a file without keeping them."""
        store, key = locate(tracefile)
        return events_of(
            store,
            key,
            self.problems,
            file_type=self.type,
            processes=self._by_name,
            open_events=self._open.setdefault(node_id_of(key), {}),
        )

    def read_events_from_json_data(
        self, trace_json_data: Iterable[Mapping[str, Any]], node_id: str
    ) -> None:
        """Read events from decoded records; invalid records are logged."""
        reader = RecordReader(())
        assembler = Assembler(
            reader,
            node_id=node_id or "",
            file_type=self.type,
            processes=self._by_name,
            open_events=self._open.setdefault(node_id or "", {}),
        )
        self._trace_events.extend(assembler.events([_convert(trace_json_data, reader)]))
        if reader.skipped:
            problem = f"{reader.skipped} records are skipped, the first because {reader.reason}."
            self.problems.append(problem)
            get_logger("profiler").error(problem)

    def get_all_events(self) -> list[TraceEvent]:
        """Return the events in the order of the files."""
        return self._trace_events

    def get_events_start_time_sorted(self) -> list[TraceEvent]:
        """Return the events sorted by start."""
        return sorted(self._trace_events, key=lambda event: event.start_time)

    def get_events_end_time_sorted(self) -> list[TraceEvent]:
        """Return the events sorted by end."""
        return sorted(self._trace_events, key=lambda event: event.end_time)

    def get_events_within_time_range(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
    ) -> list[TraceEvent]:
        """Return the events that overlap or touch ``[start, end]``.

        Parameters
        ----------
        start_time, end_time
            Since the epoch, in `unit`.
        event_type
            Name or phase of the events; None matches any.
        """
        start = time_units.convert_utc_timestamp_to_microseconds(start_time, unit)
        end = time_units.convert_utc_timestamp_to_microseconds(end_time, unit)
        return list(overlapping(self._trace_events, start, end, event_type))

    def get_events_within_range(self, start_time: datetime, end_time: datetime) -> list[TraceEvent]:
        """Return the events that overlap the time between two moments."""
        return self.get_events_within_time_range(
            time_units.convert_utc_datetime_to_microseconds(start_time),
            time_units.convert_utc_datetime_to_microseconds(end_time),
        )

    def get_processes(self) -> dict[Id, ProcessInfo]:
        """Return the phases by the number of their first appearance."""
        return {process.id: process for process in self._by_name.values()}

    def get_process_info(self, process_id: Id) -> ProcessInfo:
        """Return a phase by its number; raise `KeyError` if it does not exist."""
        return self.get_processes()[process_id]

    def clear_events(self) -> None:
        """Remove all events, including those still open at the end of files."""
        self._trace_events = []
        self._open = {}


def _convert(data: Iterable[Mapping[str, Any]], reader: RecordReader) -> Sequence[Record]:
    records = []
    for item in data:
        try:
            records.append(msgspec.convert(item, Record))
        except msgspec.ValidationError as err:
            reader.skip(f"it is no record: {err}")
    return records


class SMProfilerEvents(TraceEventParser):
    """Timelines written by smdebug itself: of Python or a framework."""

    def __init__(
        self,
        type: str = FILE_TYPES[constants.PYTHONTIMELINE_SUFFIX],  # noqa: A002 - the documented name
    ) -> None:
        super().__init__(type)


class TensorboardProfilerEvents(TraceEventParser):
    """Detailed profiles of TensorFlow: gzip, with their start in the name of a metadata file."""

    def __init__(self) -> None:
        super().__init__(TENSORFLOW)

    def get_complete_op_events(self, tracefile: str) -> list[tuple[TraceEvent, str]]:
        """Read a profile and return the events marked with a phase, with the phase."""
        self.read_events_from_file(tracefile)
        marked = ((event, _marked_phase(event)) for event in self.get_all_events())
        return [(event, phase) for event, phase in marked if phase is not None]

    def get_training_info(self, tracefile: str) -> dict[str, list[list[str | float]]]:
        """Read a profile and return ``[name, start, duration]`` (microseconds) of each phase."""
        phases: dict[str, list[list[str | float]]] = {phase: [] for phase in _MARKED}
        for event, phase in self.get_complete_op_events(tracefile):
            phases[phase].append([event.event_name, event.start_time, event.duration])
        return phases


class HorovodProfilerEvents(TraceEventParser):
    """Timelines of Horovod, raw or rewritten by smdebug."""

    def __init__(self) -> None:
        super().__init__(FILE_TYPES[constants.HOROVODTIMELINE_SUFFIX])


class SMDataParallelProfilerEvents(TraceEventParser):
    """Timelines of SageMaker's library for data-parallel training."""

    def __init__(self) -> None:
        super().__init__(FILE_TYPES[constants.SMDATAPARALLELTIMELINE_SUFFIX])


def _marked_phase(event: TraceEvent) -> str | None:
    """Return the phase between the marker and the first slash of an event's name."""
    if event.event_args is None or not event.event_name.startswith(constants.TF_METRICS_PREFIX):
        return None
    phase = event.event_name.partition("/")[0].removeprefix(constants.TF_METRICS_PREFIX)
    return phase if phase in _MARKED else None
