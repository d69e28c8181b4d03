"""MetricsReaderBase: the base class of readers of system metrics and framework events."""

from rule_core.logger import get_logger as get_logger
from rule_core.profiler.files.constants import PYTHONTIMELINE_SUFFIX as PYTHONTIMELINE_SUFFIX
from rule_core.profiler.files.time_units import (
    TimeUnits as TimeUnits,
    convert_utc_timestamp_to_microseconds as convert_utc_timestamp_to_microseconds,
)
from rule_core.profiler.readers.metrics_reader import MetricsReaderBase as MetricsReaderBase
from rule_core.storage.uri import is_s3 as is_s3
