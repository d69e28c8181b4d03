"""Checks the names and parameters of profiler rules, which are not evaluated yet."""

import inspect
from collections.abc import Mapping
from typing import Final

from rule_runner.contract import RULE, SOURCE, is_platform, is_reserved
from rule_runner.debugger import rule_configs
from rule_runner.debugger.profiler_rule_configs import ProfilerRuleBase
from rule_runner.definitions.definition import RuleConfiguration
from rule_runner.loader import look_at
from smdebug.rules.params import did_you_mean

PROCESSING: Final = "DetailedProfilerProcessing"  # no rule: what SageMaker's Profiler adds
_NOT_GIVEN: Final = ("", "None")


def names() -> Mapping[str, type]:
    """Return the classes of the built-in profiler rules by name."""
    base = ProfilerRuleBase
    return {
        name: found
        for name, found in vars(rule_configs).items()
        if isinstance(found, type) and issubclass(found, base) and found is not base
    }


def problem_of(configuration: RuleConfiguration) -> str:
    """Return what is wrong with a profiler rule's configuration; "" if nothing is.

    Raises
    ------
    ClientError
        If the file of a custom rule is not there, or has no such class; nothing of it runs.
    """
    rule, known = configuration.rule, names()
    given = configuration.parameters
    if given.get(SOURCE):
        look_at(given[SOURCE], given.get(RULE) or None)
        return ""
    if rule == PROCESSING:
        return ""
    if rule not in known:
        hint = did_you_mean(rule, known)
        return f"Unknown profiler rule {rule!r}.{hint} Profiler rules: {', '.join(known)}."
    return _parameter_problem(known[rule], rule, given)


def _parameter_problem(rule_class: type, rule: str, given: Mapping[str, str]) -> str:
    """Return what is wrong with the parameters of a built-in rule."""
    arguments = inspect.signature(rule_class).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in arguments.values())
    values: dict[str, object] = {}
    for name, text in given.items():
        if is_platform(name) or (is_reserved(name) and name not in arguments):
            continue
        if not takes_any and name not in arguments:
            hint = did_you_mean(name, arguments)
            return f"Unknown parameter {name!r} of rule {rule!r}.{hint}"
        number = _number(text)
        default = arguments[name].default if name in arguments else None
        if number is None and isinstance(default, (int, float)) and text not in _NOT_GIVEN:
            return f"Parameter {name!r} must be a number, got {text!r:.100}."
        if text not in _NOT_GIVEN:
            values[name] = text if number is None else number
    try:
        rule_class(**values)
    except (AssertionError, TypeError, ValueError) as err:
        return str(err)
    return ""


def _number(text: str) -> float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None
