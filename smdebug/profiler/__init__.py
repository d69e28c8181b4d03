"""Readers and parsers of profiler data: system metrics, timelines and Python profiles."""

from rule_core.profiler.readers.framework_reader import (
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
)
from rule_core.profiler.readers.metrics_reader import MetricsReaderBase
from rule_core.profiler.readers.system_reader import (
    LocalSystemMetricsReader,
    S3NumpySystemMetricsReader,
    S3SystemMetricsReader,
)
from rule_core.profiler.system.legacy_parser import ProfilerSystemEvents, SystemProfilerEventParser
from rule_core.profiler.traces.event import TraceEvent
from rule_core.profiler.traces.legacy_parser import TraceEventParser
from rule_core.profiler.traces.legacy_parsers import (
    HorovodProfilerEvents,
    SMDataParallelProfilerEvents,
    SMProfilerEvents,
    TensorboardProfilerEvents,
)

__all__ = [
    "HorovodProfilerEvents",
    "LocalAlgorithmMetricsReader",
    "LocalSystemMetricsReader",
    "MetricsReaderBase",
    "ProfilerSystemEvents",
    "S3AlgorithmMetricsReader",
    "S3NumpySystemMetricsReader",
    "S3SystemMetricsReader",
    "SMDataParallelProfilerEvents",
    "SMProfilerEvents",
    "SystemProfilerEventParser",
    "TensorboardProfilerEvents",
    "TraceEvent",
    "TraceEventParser",
]
