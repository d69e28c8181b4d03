"""SystemProfilerEventParser: parses system metrics into events, one per sample."""

from rule_core.logger import get_logger as get_logger
from rule_core.profiler.files.time_units import (
    TimeUnits as TimeUnits,
    convert_utc_timestamp_to_nanoseconds as convert_utc_timestamp_to_nanoseconds,
)
from rule_core.profiler.system.legacy_parser import (
    ProfilerSystemEvent as ProfilerSystemEvent,
    ProfilerSystemEvents as ProfilerSystemEvents,
    SystemProfilerEventParser as SystemProfilerEventParser,
)
