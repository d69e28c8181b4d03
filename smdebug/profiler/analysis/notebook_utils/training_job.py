"""TrainingJob: a SageMaker training job, and readers of its profiler data."""

from rule_core.analysis.charts.training_job import TrainingJob
from rule_core.profiler.framework_reader import S3AlgorithmMetricsReader
from rule_core.profiler.system.reader import S3SystemMetricsReader
from rule_core.profiler.time_units import us_since_epoch_to_human_readable_time

__all__ = [
    "S3AlgorithmMetricsReader",
    "S3SystemMetricsReader",
    "TrainingJob",
    "us_since_epoch_to_human_readable_time",
]
