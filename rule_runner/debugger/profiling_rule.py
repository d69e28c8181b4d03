"""A profiling rule of a training job: built-in or custom."""

from typing import Any, Self

from rule_runner.debugger.rule_base import (
    BUILT_IN_IMAGE,
    RuleBase,
    built_in_parameters,
    source_parameters,
)
from rule_runner.debugger.rule_configs.bases import ProfilerRuleBase


class ProfilerRule(RuleBase):
    """A profiling rule: `ProfilerRule.sagemaker` makes a built-in one, `custom` one of yours."""

    @classmethod
    def sagemaker(
        cls,
        base_config: ProfilerRuleBase,
        name: str | None = None,
        container_local_output_path: str | None = None,
        s3_output_path: str | None = None,
        instance_type: str | None = None,
        volume_size_in_gb: int | None = None,
        rule_parameters: dict[str, Any] | None = None,
    ) -> Self:
        """Create a built-in rule.

        Parameters
        ----------
        base_config
            An object of a class of `rule_configs`. Without `rule_parameters`, the rule shares the
            parameters of the base, whose values become strings when the request is made.
        name
            Name of the rule configuration; by default that of the base.
        rule_parameters
            Values by name; they override those of the base, and are checked by the evaluation
            only.

        Raises
        ------
        AttributeError
            If the base is not the configuration of a profiling rule.
        RuntimeError
            If the parameters name a rule.
        """
        own = built_in_parameters(rule_parameters)
        rule_name, shared = _name_and_parameters(base_config)
        return cls(
            name=name or rule_name,
            image_uri=BUILT_IN_IMAGE,
            instance_type=instance_type,
            container_local_output_path=container_local_output_path,
            s3_output_path=s3_output_path,
            volume_size_in_gb=volume_size_in_gb,
            rule_parameters=shared | own if own else shared,
        )

    @classmethod
    def custom(
        cls,
        name: str,
        image_uri: str,
        instance_type: str,
        volume_size_in_gb: int,
        source: str | None = None,
        rule_to_invoke: str | None = None,
        container_local_output_path: str | None = None,
        s3_output_path: str | None = None,
        rule_parameters: dict[str, Any] | None = None,
    ) -> Self:
        """Create a custom rule; the arguments are those of `Rule.custom`.

        Raises
        ------
        ValueError
            If only one of `source` and `rule_to_invoke` is given.
        """
        located = source_parameters(source, rule_to_invoke)
        return cls(
            name=name,
            image_uri=image_uri,
            instance_type=instance_type,
            container_local_output_path=container_local_output_path,
            s3_output_path=s3_output_path,
            volume_size_in_gb=volume_size_in_gb,
            rule_parameters=located | dict(rule_parameters or {}),
        )

    def to_profiler_rule_config_dict(self) -> dict[str, Any]:
        """Return one of the `ProfilerRuleConfigurations` of a request: all values are strings.

        The parameters become strings in place, None and booleans too.
        """
        for name, value in (self.rule_parameters or {}).items():
            self.rule_parameters[name] = str(value)
        return self._to_request_dict()


def _name_and_parameters(base_config: ProfilerRuleBase) -> tuple[str, dict[str, Any]]:
    try:
        return base_config.rule_name, base_config.rule_parameters
    except AttributeError as err:
        msg = (
            "The base of a profiling rule must be an object of a class of rule_configs, "
            f"got {base_config!r}. Functions of rule_configs are for Rule.sagemaker."
        )
        raise AttributeError(msg) from err
