"""TrainingJob: a SageMaker training job, and readers of its profiler data."""

from rule_core.analysis.charts.training_job import TrainingJob as TrainingJob
from rule_core.profiler.files.time_units import (
    us_since_epoch_to_human_readable_time as us_since_epoch_to_human_readable_time,
)
from rule_core.profiler.readers.framework_reader import (
    S3AlgorithmMetricsReader as S3AlgorithmMetricsReader,
)
from rule_core.profiler.readers.system_reader import S3SystemMetricsReader as S3SystemMetricsReader
