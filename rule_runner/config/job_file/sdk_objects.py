"""Turns Rule objects, of this package, SageMaker or alike, into rule configurations."""

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, TypeGuard

from rule_runner.config.defaults import ACTIONS
from rule_runner.config.job_file.definition import (
    Kind,
    RuleConfiguration,
    capitalized,
    configuration_of,
)
from rule_runner.config.sagemaker_contract import RULE
from rule_runner.errors import ClientError, JobError, user_code

_DEBUG: Final = "to_debugger_rule_config_dict"
_PROFILER: Final = "to_profiler_rule_config_dict"
_PREFIX: Final = "training_job_prefix"


class DebuggerRule(Protocol):
    """A Rule of `rule_runner.debugger` or `sagemaker.debugger`."""

    name: str

    def prepare_actions(self, training_job_name: str) -> None:
        """Put the actions into the rule's parameters."""

    def to_debugger_rule_config_dict(self) -> dict[str, Any]:
        """Return the rule configuration of a request."""


class ProfilerRule(Protocol):
    """A ProfilerRule of `rule_runner.debugger` or `sagemaker.debugger`."""

    name: str

    def to_profiler_rule_config_dict(self) -> dict[str, Any]:
        """Return the rule configuration of a request."""


def is_rule(value: object) -> TypeGuard[DebuggerRule | ProfilerRule]:
    """Return whether a value is a Rule or ProfilerRule, not the class."""
    return not isinstance(value, type) and (hasattr(value, _DEBUG) or hasattr(value, _PROFILER))


def configurations_of(rules: Iterable[object], place: str) -> tuple[RuleConfiguration, ...]:
    """Return the configurations of Rule objects, and of objects in the form of a request.

    No rule is changed. A rule that cannot be converted becomes a configuration with a problem.

    Raises
    ------
    JobError
        If one of `rules` is not a rule, or `rules` is empty.
    """
    configurations = tuple(
        _configuration(rule, f"rules[{number}]", place) for number, rule in enumerate(rules)
    )
    if not configurations:
        raise JobError(f"{capitalized(place)} holds no rules: the list is empty.")
    return configurations


def _configuration(rule: object, where: str, place: str) -> RuleConfiguration:
    if isinstance(rule, Mapping):
        return configuration_of(rule, _kind(rule), where)
    if not is_rule(rule):
        raise JobError(
            f"{where} of {place} must be a Rule or its configuration, got {type(rule).__name__}."
        )
    kind = Kind.DEBUG if hasattr(rule, _DEBUG) else Kind.PROFILER

    name = getattr(rule, "name", None)
    name = name if isinstance(name, str) and name else where
    try:  # the class of the rule is the user's
        with user_code(JobError, f"Rule {name!r}", lambda _: "while its request was made"):
            return configuration_of(_request_of(rule), kind, where)
    except ClientError as err:
        return RuleConfiguration(name, kind, problem=str(err))


def _request_of(rule: Any) -> dict[str, Any]:
    rule = copy.deepcopy(rule)  # actions go into its parameters
    if not hasattr(rule, _DEBUG):
        request: dict[str, Any] = rule.to_profiler_rule_config_dict()
        return request
    # The runner adds the name of the training job, and stops only the job of exactly that name.
    rule.prepare_actions("")
    request = rule.to_debugger_rule_config_dict()
    actions = (request.get("RuleParameters") or {}).get(ACTIONS)
    if isinstance(actions, str):
        request["RuleParameters"] = {**request["RuleParameters"], ACTIONS: _without_prefix(actions)}
    return request


def _without_prefix(actions: str) -> str:
    """Return the JSON of actions without empty prefixes of a training job's name."""
    decoded = json.loads(actions.replace('\\"', '"'))
    for action in decoded if isinstance(decoded, list) else [decoded]:
        if action.get(_PREFIX) == "":
            del action[_PREFIX]
    return json.dumps(decoded)


def _kind(configuration: Mapping[Any, Any]) -> Kind:
    """Return the list that a configuration belongs to, by the rule that it names."""
    from builtin_rules.profiler_table import PROFILER_RULES

    parameters = configuration.get("RuleParameters")
    rule = parameters.get(RULE) if isinstance(parameters, Mapping) else None
    return Kind.PROFILER if rule in PROFILER_RULES else Kind.DEBUG
