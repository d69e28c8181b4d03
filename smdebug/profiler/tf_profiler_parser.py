"""Parsers of timelines by the tool that wrote them."""

from rule_core.profiler.files.constants import TF_METRICS_PREFIX
from rule_core.profiler.traces.legacy_parser import TraceEventParser
from rule_core.profiler.traces.legacy_parsers import (
    HorovodProfilerEvents,
    SMDataParallelProfilerEvents,
    SMProfilerEvents,
    TensorboardProfilerEvents,
)

__all__ = [
    "TF_METRICS_PREFIX",
    "HorovodProfilerEvents",
    "SMDataParallelProfilerEvents",
    "SMProfilerEvents",
    "TensorboardProfilerEvents",
    "TraceEventParser",
]
