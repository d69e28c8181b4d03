"""The rules of a training job, built-in or custom: debugging and profiling rules."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import InitVar, dataclass
from typing import Any, Final, Self

from rule_runner.debugger.hook_config import CollectionConfig
from rule_runner.debugger.rule_configs.actions import Action, ActionList, is_valid_action_object
from rule_runner.debugger.rule_configs.bases import BaseConfig, ProfilerRuleBase

BUILT_IN_IMAGE: Final = "DEFAULT_RULE_EVALUATOR_IMAGE"  # the service replaces it by its own
RULE: Final = "rule_to_invoke"
SOURCE: Final = "source_s3_uri"
ACTIONS: Final = "action_json"


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


@dataclass(eq=False, repr=False)
class Rule(RuleBase):
    """A debugging rule: `Rule.sagemaker` makes a built-in one, `Rule.custom` one of yours."""

    collections_to_save: InitVar[list[CollectionConfig]]
    actions: Action | ActionList | None = None

    def __post_init__(self, collections_to_save: list[CollectionConfig]) -> None:
        self.collection_configs = collections_to_save

    @classmethod
    def sagemaker(
        cls,
        base_config: BaseConfig,
        name: str | None = None,
        container_local_output_path: str | None = None,
        s3_output_path: str | None = None,
        other_trials_s3_input_paths: Iterable[str] | None = None,
        rule_parameters: dict[str, Any] | None = None,
        collections_to_save: list[CollectionConfig] | None = None,
        actions: Action | ActionList | None = None,
    ) -> Self:
        """Create a built-in rule.

        Parameters
        ----------
        base_config
            Result of a function of `rule_configs`; it is not changed.
        name
            Name of the rule configuration; by default that of the base.
        other_trials_s3_input_paths
            Trials to compare with; they become ``other_trial_0``, ``other_trial_1``...
        rule_parameters
            Values by name; they override those of the base.
        collections_to_save
            Replacements for the collections of the base; ignored if empty.
        actions
            One action, or an `ActionList` of several.

        Raises
        ------
        RuntimeError
            If the parameters name a rule, or `actions` are anything else.
        KeyError, TypeError
            If the base is not the configuration of a debugging rule.
        """
        own = _built_in_parameters(rule_parameters)
        _require_actions(actions)
        base = _debug_configuration(base_config)
        configured_name: Any = base.get("RuleConfigurationName")
        inherited = base.get("RuleParameters") or {}
        return cls(
            name=name or configured_name,
            image_uri=BUILT_IN_IMAGE,
            instance_type=None,
            container_local_output_path=container_local_output_path,
            s3_output_path=s3_output_path,
            volume_size_in_gb=None,
            rule_parameters=_other_trials(other_trials_s3_input_paths) | inherited | own,
            collections_to_save=collections_to_save or _base_collections(base_config),
            actions=actions,
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
        other_trials_s3_input_paths: Iterable[str] | None = None,
        rule_parameters: dict[str, Any] | None = None,
        collections_to_save: list[CollectionConfig] | None = None,
        actions: Action | ActionList | None = None,
    ) -> Self:
        """Create a custom rule; arguments shared with `sagemaker` have the same meaning.

        Parameters
        ----------
        name
            Name of the rule configuration.
        image_uri
            URI of the image that evaluates it.
        instance_type
            Such as ``ml.c4.xlarge``.
        volume_size_in_gb
            Size of the disk in GB.
        source
            The file with the rule: a path or an ``s3://`` URI.
        rule_to_invoke
            The class in that file.

        Raises
        ------
        ValueError
            If only one of `source` and `rule_to_invoke` is given, or `rule_parameters` is not a
            dictionary.
        RuntimeError
            If `actions` are neither an action nor an `ActionList`.
        """
        located = _source_parameters(source, rule_to_invoke)
        _require_actions(actions)
        return cls(
            name=name,
            image_uri=image_uri,
            instance_type=instance_type,
            container_local_output_path=container_local_output_path,
            s3_output_path=s3_output_path,
            volume_size_in_gb=volume_size_in_gb,
            rule_parameters=_other_trials(other_trials_s3_input_paths)
            | located
            | dict(rule_parameters or {}),
            collections_to_save=collections_to_save or [],
            actions=actions,
        )

    def prepare_actions(self, training_job_name: str) -> None:
        """Add the actions to the parameters, in the form that the evaluator reads.

        Parameters
        ----------
        training_job_name
            Prefix of the jobs to stop if none was given.
        """
        if self.actions is None:
            self.rule_parameters.pop(ACTIONS, None)
            return
        self.actions.update_training_job_prefix_if_not_specified(training_job_name)
        self.rule_parameters[ACTIONS] = self.actions.serialize()

    def to_debugger_rule_config_dict(self) -> dict[str, Any]:
        """Return one of the `DebugRuleConfigurations` of a CreateTrainingJob request."""
        return self._to_request_dict()


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
        own = _built_in_parameters(rule_parameters)
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
        located = _source_parameters(source, rule_to_invoke)
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


def _built_in_parameters(rule_parameters: dict[str, Any] | None) -> dict[str, Any]:
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
        raise RuntimeError(
            f"A built-in rule takes no parameter rule_to_invoke, got {own[RULE]!r}. "
            "Remove it, or make a custom rule."
        )
    return own


def _source_parameters(source: str | None, rule_to_invoke: str | None) -> dict[str, Any]:
    """Return the parameters that locate a custom rule; empty strings count as missing.

    Raises
    ------
    ValueError
        If only one is given.
    """
    if bool(source) != bool(rule_to_invoke):
        raise ValueError(
            f"Arguments source and rule_to_invoke go together, got {source!r} and "
            f"{rule_to_invoke!r}. If you provide one, you must also provide the other."
        )
    return {SOURCE: source, RULE: rule_to_invoke} if source else {}


def _require_actions(actions: object) -> None:
    if actions is not None and not is_valid_action_object(actions):
        raise RuntimeError(
            f"Argument actions must be an Action or an ActionList, got {actions!r}. "
            "Put several into rule_configs.ActionList(...)."
        )


def _debug_configuration(base_config: BaseConfig) -> dict[str, Any]:
    try:
        configuration: dict[str, Any] = base_config["DebugRuleConfiguration"]
    except TypeError as err:
        raise TypeError(
            "The base of a debugging rule must be what a function of rule_configs returns, "
            f"got {base_config!r}. Classes of rule_configs are for ProfilerRule.sagemaker."
        ) from err
    return configuration


def _base_collections(base_config: BaseConfig) -> list[CollectionConfig]:
    return [
        CollectionConfig(config.get("CollectionName"), config.get("CollectionParameters", {}))
        for config in base_config.get("CollectionConfigurations") or []
    ]


def _other_trials(paths: Iterable[str] | None) -> dict[str, Any]:
    other_paths = () if paths is None else paths
    return {f"other_trial_{index}": path for index, path in enumerate(other_paths)}


def _name_and_parameters(base_config: ProfilerRuleBase) -> tuple[str, dict[str, Any]]:
    try:
        return base_config.rule_name, base_config.rule_parameters
    except AttributeError as err:
        raise AttributeError(
            "The base of a profiling rule must be an object of a class of rule_configs, "
            f"got {base_config!r}. Functions of rule_configs are for Rule.sagemaker."
        ) from err
