"""TraceEventParser: parses timelines into events."""

from rule_core.logger import get_logger as get_logger
from rule_core.profiler.files.time_units import (
    TimeUnits as TimeUnits,
    convert_utc_datetime_to_microseconds as convert_utc_datetime_to_microseconds,
    convert_utc_timestamp_to_microseconds as convert_utc_timestamp_to_microseconds,
)
from rule_core.profiler.traces.event import (
    ProcessInfo as ProcessInfo,
    ThreadInfo as ThreadInfo,
    TraceEvent as TraceEvent,
)
from rule_core.profiler.traces.legacy_parsers import TraceEventParser as TraceEventParser
