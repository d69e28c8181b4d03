"""TraceEventParser: parses timelines into events."""

from rule_core.logger import get_logger
from rule_core.profiler.files.time_units import (
    TimeUnits,
    convert_utc_datetime_to_microseconds,
    convert_utc_timestamp_to_microseconds,
)
from rule_core.profiler.traces.event import ProcessInfo, ThreadInfo, TraceEvent
from rule_core.profiler.traces.legacy_parser import TraceEventParser

__all__ = [
    "ProcessInfo",
    "ThreadInfo",
    "TimeUnits",
    "TraceEvent",
    "TraceEventParser",
    "convert_utc_datetime_to_microseconds",
    "convert_utc_timestamp_to_microseconds",
    "get_logger",
]
