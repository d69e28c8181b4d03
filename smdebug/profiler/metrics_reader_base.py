"""MetricsReaderBase: the base class of readers of system metrics and framework events."""

from rule_core.logger import get_logger
from rule_core.profiler.files.constants import PYTHONTIMELINE_SUFFIX
from rule_core.profiler.files.time_units import TimeUnits, convert_utc_timestamp_to_microseconds
from rule_core.profiler.readers.metrics_reader import MetricsReaderBase
from rule_core.storage.uri import is_s3

__all__ = [
    "PYTHONTIMELINE_SUFFIX",
    "MetricsReaderBase",
    "TimeUnits",
    "convert_utc_timestamp_to_microseconds",
    "get_logger",
    "is_s3",
]
