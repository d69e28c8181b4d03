"""SystemProfilerEventParser: parses system metrics into events, one per sample."""

from rule_core.logger import get_logger
from rule_core.profiler.files.time_units import TimeUnits, convert_utc_timestamp_to_nanoseconds
from rule_core.profiler.system.legacy_parser import (
    ProfilerSystemEvent,
    ProfilerSystemEvents,
    SystemProfilerEventParser,
)

__all__ = [
    "ProfilerSystemEvent",
    "ProfilerSystemEvents",
    "SystemProfilerEventParser",
    "TimeUnits",
    "convert_utc_timestamp_to_nanoseconds",
    "get_logger",
]
