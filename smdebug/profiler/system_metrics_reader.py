"""Readers of system metrics by time range, in a local folder or in S3."""

from rule_core.profiler.metrics_reader import MetricsReaderBase
from rule_core.profiler.system.legacy_parser import ProfilerSystemEvents
from rule_core.profiler.system.reader import (
    LocalSystemMetricsReader,
    S3NumpySystemMetricsReader,
    S3SystemMetricsReader,
    SystemMetricsReader,
)

__all__ = [
    "LocalSystemMetricsReader",
    "MetricsReaderBase",
    "ProfilerSystemEvents",
    "S3NumpySystemMetricsReader",
    "S3SystemMetricsReader",
    "SystemMetricsReader",
]
