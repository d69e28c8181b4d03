"""The profiler's files: system metrics, framework timelines and Python profiles of a job."""

from smdebug.profiler.algorithm_metrics_reader import (
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
)
from smdebug.profiler.metrics_reader_base import MetricsReaderBase
from smdebug.profiler.system_metrics_reader import (
    LocalSystemMetricsReader,
    ProfilerSystemEvents,
    S3NumpySystemMetricsReader,
    S3SystemMetricsReader,
)
from smdebug.profiler.system_profiler_file_parser import SystemProfilerEventParser
from smdebug.profiler.tf_profiler_parser import (
    HorovodProfilerEvents,
    SMDataParallelProfilerEvents,
    SMProfilerEvents,
    TensorboardProfilerEvents,
)
from smdebug.profiler.trace_event_file_parser import TraceEvent, TraceEventParser

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
