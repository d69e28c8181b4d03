"""The common base of debugging and profiling rules, and their parameters."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Self

BUILT_IN_IMAGE: Final = "DEFAULT_RULE_EVALUATOR_IMAGE"  # the service replaces it by its own
RULE: Final = "rule_to_invoke"
SOURCE: Final = "source_s3_uri"


@dataclass
class RuleBase(ABC):
    """The abstract base of debugging and profiling rules: `Rule` and `ProfilerRule`.

    Parameters
    ----------
    name
        Name of the rule configuration.
    image_uri
        URI of the image that evaluates the rule.
    instance_type
        Such as ``ml.c4.xlarge``.
    container_local_output_path
        Output folder in the rule's container.
    s3_output_path
        Destination of that output.
    volume_size_in_gb
        Size of the disk in GB.
    rule_parameters
        Values of the rule's parameters by name.
    """

    name: str
    image_uri: str
    instance_type: str | None
    container_local_output_path: str | None
    s3_output_path: str | None
    volume_size_in_gb: int | None
    rule_parameters: dict[str, Any]

    @classmethod
    @abstractmethod
    def sagemaker(cls, base_config: Any, *args: Any, **named: Any) -> Self:
        """Create a built-in rule."""

    def _to_request_dict(self) -> dict[str, Any]:
        """Return its part of a request; empty values and zeros are omitted."""
        optional = {
            "InstanceType": self.instance_type,
            "VolumeSizeInGB": self.volume_size_in_gb,
            "LocalPath": self.container_local_output_path,
            "S3OutputPath": self.s3_output_path,
            "RuleParameters": self.rule_parameters,
        }
        request = {"RuleConfigurationName": self.name, "RuleEvaluatorImage": self.image_uri}
        return request | {name: value for name, value in optional.items() if value}


def built_in_parameters(rule_parameters: dict[str, Any] | None) -> dict[str, Any]:
    """Return the parameters that a user gave a built-in rule.

    Raises
    ------
    RuntimeError
        If they name a rule.
    AttributeError
        If they are not a dictionary.
    """
    own = {} if rule_parameters is None else rule_parameters
    if own.get(RULE) is not None:
        msg = (
            f"A built-in rule takes no parameter rule_to_invoke, got {own[RULE]!r}. "
            "Remove it, or make a custom rule."
        )
        raise RuntimeError(msg)
    return own


def source_parameters(source: str | None, rule_to_invoke: str | None) -> dict[str, Any]:
    """Return the parameters that locate a custom rule; empty strings count as missing.

    Raises
    ------
    ValueError
        If only one is given.
    """
    if bool(source) != bool(rule_to_invoke):
        msg = (
            f"Arguments source and rule_to_invoke go together, got {source!r} and "
            f"{rule_to_invoke!r}. If you provide one, you must also provide the other."
        )
        raise ValueError(msg)
    return {SOURCE: source, RULE: rule_to_invoke} if source else {}
