"""System metrics as events, one per sample, and their parser."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rule_core.logger import get_logger
from rule_core.profiler.files.time_units import TimeUnits, convert_utc_timestamp_to_nanoseconds
from rule_core.profiler.system.columns import SystemColumns, parse_system_metrics, pieces_of
from rule_core.profiler.system.samples import SeriesKey, SeriesTable
from rule_core.storage.local import LocalStore


@dataclass(slots=True)
class ProfilerSystemEvent:
    """A sample of one system metric.

    Attributes
    ----------
    type
        Such as ``cpu`` or ``gpu``.
    name
        Such as ``cpu0``; None if missing.
    dimension, value
        The measured quantity and its value.
    node_id
        The node.
    timestamp
        Seconds since the epoch.
    """

    type: str
    name: str | None
    dimension: str
    value: float
    node_id: str
    timestamp: float


def events_of_samples(
    samples: SystemColumns, keys: tuple[SeriesKey, ...]
) -> Iterator[ProfilerSystemEvent]:
    """Yield samples in columns as events."""
    columns = samples.time_s.tolist(), samples.value.tolist(), samples.series.tolist()
    for time, value, number in zip(*columns, strict=True):
        key = keys[number]
        yield ProfilerSystemEvent(key.type, key.name, key.dimension, value, key.node, time)


class SystemProfilerEventParser:
    """The events of system metrics read so far, in the order of files and lines."""

    def __init__(self) -> None:
        self._events: list[ProfilerSystemEvent] = []
        self.logger = get_logger()

    def read_events_from_file(self, eventfile: str) -> None:
        """Read a local file; invalid lines are skipped and logged.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the file cannot be read.
        """
        path = Path(eventfile)
        series = SeriesTable()
        samples = parse_system_metrics(pieces_of(LocalStore(path.parent), path.name), series)
        if samples.problem():
            self.logger.warning("File %r of system metrics: %s", eventfile, samples.problem())
        self._events.extend(events_of_samples(samples, series.keys))

    def read_events_from_json_data(self, system_profiler_json_data: Iterable[Any]) -> None:
        """Add decoded lines; see `read_event_from_dict`."""
        for event in system_profiler_json_data:
            self.read_event_from_dict(event)

    def read_event_from_dict(self, event: Mapping[str, Any]) -> None:
        """Add one decoded line.

        Raises
        ------
        KeyError
            If a key other than ``Name`` is missing.
        """
        kind, name, dimension = event["Type"], event.get("Name"), event["Dimension"]
        value, node_id, time_s = event["Value"], event["NodeId"], event["Timestamp"]
        sample = ProfilerSystemEvent(kind, name, dimension, value, node_id, time_s)
        self._events.append(sample)

    def get_events_within_time_range(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
    ) -> list[ProfilerSystemEvent]:
        """Return the events of ``start_time <= time <= end_time``, of one type or of all."""
        start = convert_utc_timestamp_to_nanoseconds(start_time, unit)
        end = convert_utc_timestamp_to_nanoseconds(end_time, unit)
        return [
            event
            for event in self._events
            if event_type in {None, event.type}
            and start
            <= convert_utc_timestamp_to_nanoseconds(event.timestamp, TimeUnits.SECONDS)
            <= end
        ]

    def get_all_events(self) -> list[ProfilerSystemEvent]:
        """Return all events."""
        return self._events

    def clear_events(self) -> None:
        """Remove all events."""
        self._events = []


class ProfilerSystemEvents(SystemProfilerEventParser):
    """An alias under the name that readers use."""
