"""Readers of system metrics by time range, in a local folder or in S3."""

from rule_core.profiler.readers.metrics_reader import MetricsReaderBase as MetricsReaderBase
from rule_core.profiler.readers.system_reader import (
    LocalSystemMetricsReader as LocalSystemMetricsReader,
    S3NumpySystemMetricsReader as S3NumpySystemMetricsReader,
    S3SystemMetricsReader as S3SystemMetricsReader,
    SystemMetricsReader as SystemMetricsReader,
)
from rule_core.profiler.system.legacy_parser import ProfilerSystemEvents as ProfilerSystemEvents
