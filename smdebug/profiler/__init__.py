"""Readers and parsers of profiler data: system metrics, timelines and Python profiles."""

from rule_core.profiler.readers.framework_reader import (
    LocalAlgorithmMetricsReader as LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader as S3AlgorithmMetricsReader,
)
from rule_core.profiler.readers.metrics_reader import MetricsReaderBase as MetricsReaderBase
from rule_core.profiler.readers.system_reader import (
    LocalSystemMetricsReader as LocalSystemMetricsReader,
    S3NumpySystemMetricsReader as S3NumpySystemMetricsReader,
    S3SystemMetricsReader as S3SystemMetricsReader,
)
from rule_core.profiler.system.legacy_parser import (
    ProfilerSystemEvents as ProfilerSystemEvents,
    SystemProfilerEventParser as SystemProfilerEventParser,
)
from rule_core.profiler.traces.event import TraceEvent as TraceEvent
from rule_core.profiler.traces.legacy_parsers import (
    HorovodProfilerEvents as HorovodProfilerEvents,
    SMDataParallelProfilerEvents as SMDataParallelProfilerEvents,
    SMProfilerEvents as SMProfilerEvents,
    TensorboardProfilerEvents as TensorboardProfilerEvents,
    TraceEventParser as TraceEventParser,
)
