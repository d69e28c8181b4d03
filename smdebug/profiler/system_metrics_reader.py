"""Readers of system metrics by time range, in a local folder or in S3."""

from rule_core.profiler.readers.metrics_reader import MetricsReaderBase
from rule_core.profiler.readers.system_reader import (
    LocalSystemMetricsReader,
    S3NumpySystemMetricsReader,
    S3SystemMetricsReader,
    SystemMetricsReader,
)
from rule_core.profiler.system.legacy_parser import ProfilerSystemEvents

__all__ = [
    "LocalSystemMetricsReader",
    "MetricsReaderBase",
    "ProfilerSystemEvents",
    "S3NumpySystemMetricsReader",
    "S3SystemMetricsReader",
    "SystemMetricsReader",
]
