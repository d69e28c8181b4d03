"""Takes rule configurations from Rule objects: ours, SageMaker's, whatever has their methods."""

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, TypeGuard

from rule_runner.config.job_file.definition import (
    Kind,
    RuleConfiguration,
    begun,
    configuration_of,
)
from rule_runner.config.model import ACTIONS
from rule_runner.config.sagemaker_contract import RULE
from rule_runner.errors import JobError, raised

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
    """Say whether a value is a Rule or ProfilerRule, not the class."""
    return not isinstance(value, type) and (hasattr(value, _DEBUG) or hasattr(value, _PROFILER))


def configurations_of(rules: Iterable[object], place: str) -> tuple[RuleConfiguration, ...]:
    """Return the configurations of Rule objects, and of objects in the form of a request.

    No rule is changed. A rule that cannot be made a request has that as its problem.

    Raises
    ------
    JobError
        If one of `rules` is no rule, or there is none.
    """
    found = tuple(
        _configuration(one, f"rules[{number}]", place) for number, one in enumerate(rules)
    )
    if not found:
        msg = f"{begun(place)} holds no rules: the list is empty."
        raise JobError(msg)
    return found


def _configuration(rule: object, where: str, place: str) -> RuleConfiguration:
    if isinstance(rule, Mapping):
        return configuration_of(rule, _kind(rule), where)
    if not is_rule(rule):
        msg = f"{where} of {place} must be a Rule or its configuration, got {type(rule).__name__}."
        raise JobError(msg)
    kind = Kind.DEBUG if hasattr(rule, _DEBUG) else Kind.PROFILER
    try:
        return configuration_of(_request_of(rule), kind, where)
    except Exception as err:  # noqa: BLE001 - the class is the user's
        named = getattr(rule, "name", None)
        name = named if isinstance(named, str) and named else where
        problem = raised(f"Rule {name!r}", err, "while its request was made")
        return RuleConfiguration(name, kind, problem=problem)


def _request_of(rule: Any) -> dict[str, Any]:
    rule = copy.deepcopy(rule)  # actions go into its parameters
    if not hasattr(rule, _DEBUG):
        found: dict[str, Any] = rule.to_profiler_rule_config_dict()
        return found
    # The training job's name is left to the runner, which stops that job only and no other that
    # begins like it.
    rule.prepare_actions("")
    found = rule.to_debugger_rule_config_dict()
    actions = (found.get("RuleParameters") or {}).get(ACTIONS)
    if isinstance(actions, str):
        found["RuleParameters"] = {**found["RuleParameters"], ACTIONS: _without_prefix(actions)}
    return found


def _without_prefix(actions: str) -> str:
    """Return the JSON of actions without empty prefixes of a training job's name."""
    given = json.loads(actions.replace('\\"', '"'))
    listed = given if isinstance(given, list) else [given]
    for one in listed:
        if one.get(_PREFIX) == "":
            del one[_PREFIX]
    return json.dumps(given)


def _kind(configuration: Mapping[Any, Any]) -> Kind:
    """Return the list that a configuration belongs to: told by the rule that it names."""
    from builtin_rules.profiler_table import PROFILER_RULES

    parameters = configuration.get("RuleParameters")
    rule = parameters.get(RULE) if isinstance(parameters, Mapping) else None
    return Kind.PROFILER if rule in PROFILER_RULES else Kind.DEBUG
