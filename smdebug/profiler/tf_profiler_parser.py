"""Parsers of timelines by the tool that wrote them."""

from rule_core.profiler.files.constants import TF_METRICS_PREFIX as TF_METRICS_PREFIX
from rule_core.profiler.traces.legacy_parsers import (
    HorovodProfilerEvents as HorovodProfilerEvents,
    SMDataParallelProfilerEvents as SMDataParallelProfilerEvents,
    SMProfilerEvents as SMProfilerEvents,
    TensorboardProfilerEvents as TensorboardProfilerEvents,
    TraceEventParser as TraceEventParser,
)
