"""Readers of framework events by time range or step, in a local folder or in S3."""

from rule_core.profiler.readers.framework_reader import (
    AlgorithmMetricsReader as AlgorithmMetricsReader,
    LocalAlgorithmMetricsReader as LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader as S3AlgorithmMetricsReader,
)
from rule_core.profiler.readers.metrics_reader import MetricsReaderBase as MetricsReaderBase
