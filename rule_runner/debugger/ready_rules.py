"""Rules that are ready to use: the default profiling rule, and the job that processes profiles."""

from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from rule_runner.debugger.profiler import INSTANCE_TYPE, VOLUME_SIZE_IN_GB
from rule_runner.debugger.profiler_report import ProfilerReport
from rule_runner.debugger.profiling_rule import ProfilerRule
from rule_runner.debugger.rule_base import BUILT_IN_IMAGE, RULE

PROCESSING_JOB: Final = "DetailedProfilerProcessingJobConfig"


def get_default_profiler_rule() -> ProfilerRule:
    """Return the built-in rule ProfilerReport under a unique name."""
    report = ProfilerReport()
    return ProfilerRule.sagemaker(report, name=f"{report.rule_name}-{uuid4().hex}")


def get_default_profiler_processing_job(
    instance_type: str | None = None, volume_size_in_gb: int | None = None
) -> ProfilerRule:
    """Return the rule that stands for the processing of detailed profiles; the time is in its name.

    Parameters
    ----------
    instance_type
        By default ``ml.m5.4xlarge``.
    volume_size_in_gb
        Size of the disk in GB; by default 128.
    """
    now = datetime.now(UTC)
    return ProfilerRule(
        name=f"{PROCESSING_JOB}-{now:%Y-%m-%d-%H-%M-%S}-{now.microsecond // 1000:03}",
        image_uri=BUILT_IN_IMAGE,
        instance_type=instance_type or INSTANCE_TYPE,
        container_local_output_path=None,
        s3_output_path=None,
        volume_size_in_gb=volume_size_in_gb or VOLUME_SIZE_IN_GB,
        rule_parameters={RULE: "DetailedProfilerProcessing"},
    )
