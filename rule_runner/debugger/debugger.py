"""Rules, collections and hooks, under the same path as in the SDK."""

from datetime import UTC, datetime
from inspect import signature
from typing import Any, Final, get_overloads, overload
from uuid import uuid4

from rule_runner.debugger import rule_configs as rule_configs
from rule_runner.debugger.hook_config import (
    CollectionConfig as CollectionConfig,
    DebuggerHookConfig as DebuggerHookConfig,
    TensorBoardOutputConfig as TensorBoardOutputConfig,
)
from rule_runner.debugger.profiler import INSTANCE_TYPE, VOLUME_SIZE_IN_GB
from rule_runner.debugger.rules import (
    BUILT_IN_IMAGE,
    RULE,
    ProfilerRule as ProfilerRule,
    Rule as Rule,
    RuleBase as RuleBase,
)

DEBUGGER_FLAG: Final = "USE_SMDEBUG"  # a variable of the training job; 0 turns the hook off
# Names of images, by which the SDK looks up their addresses.
framework_name: Final = "debugger"
detailed_framework_name: Final = "detailed-profiler"
PROCESSING_JOB: Final = "DetailedProfilerProcessingJobConfig"


@overload
def get_rule_container_image_uri(region: str, name: str | None = None) -> str: ...
@overload
def get_rule_container_image_uri(name: str | None, region: str) -> str: ...
def get_rule_container_image_uri(*args: Any, **named: Any) -> str:
    """Return the URI of AWS's own image for built-in rules.

    Parameters
    ----------
    *args, **named
        `region`, such as ``eu-west-1``, and optionally `name`, that of the rule configuration: the
        job that processes detailed profiles has a separate image. The order of the SDK, `name`
        before `region`, works too.

    Raises
    ------
    ValueError
        If AWS has no such image in the region.
    TypeError
        If the region is missing, or there are too many arguments.

    Examples
    --------
    >>> get_rule_container_image_uri("us-east-1")
    '503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest'
    """
    from rule_runner.images import get_rule_container_image_uri as uri
    from rule_runner.images.aws_images import AWS_IMAGES, ImageKind

    match args:
        case (name,) if "region" in named:
            return uri(name=name, **named)
        case (name, region) if name not in AWS_IMAGES[ImageKind.BUILTIN].accounts:
            return uri(region, name, **named)
        case _:
            return uri(*args, **named)


# What `help` shows; callables have no such attribute for type checkers.
get_rule_container_image_uri.__signature__ = signature(  # type: ignore[attr-defined]
    get_overloads(get_rule_container_image_uri)[0]
)


def get_default_profiler_rule() -> ProfilerRule:
    """Return the built-in rule ProfilerReport under a unique name."""
    report = rule_configs.ProfilerReport()
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
