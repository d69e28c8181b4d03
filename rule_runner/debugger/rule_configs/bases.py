"""What the base configurations of built-in rules are made of."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final, dataclass_transform

from rule_runner.debugger.checks import require

BaseConfig = dict[str, Any]
Parameters = dict[str, str]

EVERY_500: Final = {"save_interval": "500"}
COLLECTIONS: Final[dict[str, Parameters]] = {
    "gradients": EVERY_500,
    "input_image": {"include_regex": ".*hybridsequential0_input_0", **EVERY_500},
    "input_sequence": {"include_regex": ".*embedding0_input_0", **EVERY_500},
    "losses": EVERY_500,
    "relu_input": {"include_regex": ".*relu_input", **EVERY_500},
    "relu_output": {"include_regex": ".*relu_output", **EVERY_500},
    "weights": EVERY_500,
}
KIND: Final = "kind"
PERCENTILE: Final = "a valid percentile, 0 to 100"
POSITIVE: Final = "a positive number"
TEXT: Final = "a string if given"
HIGHEST_PERCENTILE: Final = 100
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def debug_rule(
    rule: str, summary: str, *usual: str, **others: Parameters
) -> Callable[[], BaseConfig]:
    """Return the function of `rule_configs` that configures a debugging rule.

    Parameters
    ----------
    rule
        Name of the rule; that of the function is the same in lower case.
    summary
        What the rule finds, for the documentation of the function.
    usual
        Names of collections to save, with the parameters in `COLLECTIONS`.
    others
        Parameters of further collections, by name.
    """
    collections = {name: COLLECTIONS[name] for name in usual} | others

    def configure() -> BaseConfig:
        config: BaseConfig = {
            "DebugRuleConfiguration": {
                "RuleConfigurationName": rule,
                "RuleParameters": {"rule_to_invoke": rule},
            }
        }
        if collections:
            named = [named_collection(*collection) for collection in collections.items()]
            config["CollectionConfigurations"] = named
        return config

    configure.__name__ = configure.__qualname__ = _WORD_START.sub("_", rule).lower()
    configure.__module__ = __package__
    configure.__doc__ = f"Configure {rule}: {summary}"
    return configure


def named_collection(name: str, parameters: Parameters) -> dict[str, Any]:
    """Return the configuration of a collection."""
    return {"CollectionName": name, "CollectionParameters": dict(parameters)}


def percentile(default: float) -> float:
    """Return a field of a profiler rule that takes a percentile."""
    value: float = field(default=default, metadata={KIND: PERCENTILE})
    return value


def positive(default: float) -> float:
    """Return a field of a profiler rule that takes a positive number."""
    value: float = field(default=default, metadata={KIND: POSITIVE})
    return value


def optional_text() -> str | None:
    """Return a field of a profiler rule that takes a string or None, its default."""
    value: str | None = field(default=None, metadata={KIND: TEXT})
    return value


class ProfilerRuleBase:
    """A profiler rule and its parameters.

    Attributes
    ----------
    rule_name
        Name of the rule.
    rule_parameters
        The parameters in the request, not converted: in the order of the arguments, then
        `rule_to_invoke`.

    Raises
    ------
    AssertionError
        If a percentile is not within 0 to 100, or a value is not positive.
    TypeError
        If a value is not a number, or an argument is unknown.
    """

    rule_name: str
    rule_parameters: dict[str, Any]

    def _take(self, parameters: dict[str, Any]) -> None:
        self.rule_name = type(self).__name__
        self.rule_parameters = parameters | {"rule_to_invoke": self.rule_name}


@dataclass_transform(eq_default=False)
@dataclass(eq=False)
class PlainRule(ProfilerRuleBase):
    """A profiler rule whose fields are its parameters."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False)(cls)

    def __post_init__(self) -> None:
        parameters = {}
        for item in fields(self):
            parameters[item.name] = value = getattr(self, item.name)
            check(item.name, item.metadata[KIND], value)
        self._take(parameters)


def check(name: str, kind: str, value: Any) -> None:
    """Reject a value that is not of its kind.

    Raises
    ------
    AssertionError
        If it is not.
    TypeError
        If it cannot be compared with numbers and must be.
    """
    if kind == TEXT:
        require(value is None or isinstance(value, str), name, kind, value)
        return
    try:
        holds = 0 <= value <= HIGHEST_PERCENTILE if kind == PERCENTILE else value > 0
    except TypeError as err:
        raise TypeError(f"Argument {name} must be a number, got {value!r}.") from err
    require(bool(holds), name, kind, value)
